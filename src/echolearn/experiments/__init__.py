"""The work behind the commands: the paper's table, and one network on one corpus."""

"""The paper's table and the other reproducible runs."""

"""The experiments of the paper: Table 1 and phones, from a corpus to their reports."""

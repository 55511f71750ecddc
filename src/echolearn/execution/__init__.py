"""Threads, limits on BLAS, sums in a fixed order, free memory, and where passes over data are made."""

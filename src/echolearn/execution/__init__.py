"""Threads, BLAS limits, ordered tree sums and free memory."""

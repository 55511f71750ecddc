"""A fitted network, and the features of speech before it, as headers in C."""

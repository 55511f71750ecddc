"""What the epoch loop minimises: squared error, cross entropy, and the error of a deep network."""

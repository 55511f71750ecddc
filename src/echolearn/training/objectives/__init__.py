"""What the epoch loop minimises: squared error, cross entropy, and the error at the top of a stack."""

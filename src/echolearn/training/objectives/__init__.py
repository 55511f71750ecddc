"""What the epoch loop minimises."""

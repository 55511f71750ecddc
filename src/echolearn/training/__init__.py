"""The epoch loop, its objectives and optimizers."""

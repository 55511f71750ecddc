"""The epoch loop, its objectives and optimizers, the cost model, and progress lines."""

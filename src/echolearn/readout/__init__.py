"""Statistics of the states and the readouts that are fitted to them."""

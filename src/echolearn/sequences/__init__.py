"""User input as checked sequences, datasets and batches."""

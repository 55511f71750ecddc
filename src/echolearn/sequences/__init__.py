"""What a user hands in, as checked sequences, datasets and batches."""

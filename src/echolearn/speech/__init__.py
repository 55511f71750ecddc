"""Speech: corpora, features, phones, alignment."""

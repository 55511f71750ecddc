"""Speech: corpora, features, phones and the alignment of phones to frames."""

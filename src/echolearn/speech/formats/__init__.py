"""Files of other programs: features and alignments of Kaldi, results as CTM, STM, TextGrid, MLF and JSON."""

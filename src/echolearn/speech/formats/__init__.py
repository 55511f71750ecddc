"""Files of other programs: features and alignments of Kaldi and HTK, results as CTM, STM, TextGrid, MLF and JSON."""

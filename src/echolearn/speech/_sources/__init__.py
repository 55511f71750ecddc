"""The corpora that `open_corpus` finds: TIMIT, folders of audio, data folders of Kaldi and feature files."""

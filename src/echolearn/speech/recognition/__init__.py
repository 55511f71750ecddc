"""From probabilities of states to phones and words: language models, lexicon, decoding graph, search, lattices."""

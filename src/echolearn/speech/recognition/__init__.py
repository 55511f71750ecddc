"""Recognisers of phones and words: from a fitted network to transcriptions of recordings and streams."""

from echolearn.speech.recognition._learner import learn_recognizer
from echolearn.speech.recognition._lexicon import Lexicon, read_lexicon
from echolearn.speech.recognition._ngrams import NGramModel, estimate, read_arpa, write_arpa
from echolearn.speech.recognition._recognizer import Recognizer, load_recognizer
from echolearn.speech.recognition._stream import RecognitionStream
from echolearn.speech.recognition._transcription import Transcription

__all__ = [
    "Lexicon",
    "NGramModel",
    "RecognitionStream",
    "Recognizer",
    "Transcription",
    "estimate",
    "learn_recognizer",
    "load_recognizer",
    "read_arpa",
    "read_lexicon",
    "write_arpa",
]

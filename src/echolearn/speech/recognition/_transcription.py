"""The results of recognisers: phones and words with their times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from echolearn.speech._features import FRAME_SECONDS
from echolearn.speech._labels import Segment
from echolearn.speech._phone_set import SILENCES
from echolearn.speech.formats._results import Recognised, TimedToken
from echolearn.speech.recognition._search import Token


def text_of(tokens: Iterable[Token]) -> str:
    """Return tokens as text, without silences."""
    return " ".join(token.name for token in tokens if token.name not in SILENCES)


@dataclass(frozen=True)
class Transcription:
    """The phones and words that were recognised in one utterance.

    Parameters
    ----------
    phones : tuple of Token
        The phones with their frames, silences included.
    words : tuple of Token or None
        The words with their frames; None if only phones were recognised.
    frames : int
        Frames of the utterance.

    Examples
    --------
    >>> found = Transcription((Token("sil", 0, 9), Token("n", 9, 14), Token("ow", 14, 30)), (Token("NO", 9, 30),), 30)
    >>> found.text, found.segments()
    ('NO', [Segment(start=0.09, end=0.3, name='NO')])
    """

    phones: tuple[Token, ...]
    words: tuple[Token, ...] | None
    frames: int

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The words, or the phones if there are no words."""
        return self.phones if self.words is None else self.words

    @property
    def text(self) -> str:
        """The tokens as text, without silences."""
        return text_of(self.tokens)

    @property
    def seconds(self) -> float:
        """The duration of the utterance in seconds."""
        return _seconds(self.frames)

    def segments(self, level: str | None = None) -> list[Segment]:
        """Return tokens with their times in seconds.

        Parameters
        ----------
        level : {"phones", "words"}, optional
            The tokens to return. By default the words, or the phones if there are no words.

        Returns
        -------
        list of Segment
            The tokens in order.
        """
        if level not in (None, "phones", "words"):
            raise ValueError(f"level is {level!r}, expected 'phones' or 'words'")
        tokens = self.tokens if level is None else self.phones if level == "phones" else self.words or ()
        return [Segment(_seconds(token.start), _seconds(token.end), token.name) for token in tokens]

    def as_result(self, utterance: str, *, level: str | None = None, channel: int = 1) -> Recognised:
        """Return the transcription in the form that the writers of formats take.

        Parameters
        ----------
        utterance : str
            Name of the utterance, without blanks.
        level
            As in `segments`.
        channel : int, default 1
            The channel of the recording.

        Returns
        -------
        Recognised
            The tokens with their times and confidences; below words also the phones.
        """
        words = None if level == "phones" else self.words
        phones = tuple(map(_timed, self.phones))
        tokens = phones if words is None else tuple(map(_timed, words))
        return Recognised(utterance, tokens, () if words is None else phones, channel, seconds=self.seconds)


def _timed(token: Token) -> TimedToken:
    return TimedToken(token.name, _seconds(token.start), _seconds(token.end), token.confidence)


def _seconds(frame: int) -> float:
    return round(frame * FRAME_SECONDS, 9)


@dataclass(frozen=True)
class Update:
    """The hypothesis of a stream after another piece of sound."""

    final: tuple[Token, ...]  # those that have become final with this piece
    partial: tuple[Token, ...]  # those after all that are final, by the best path so far; they may still change
    pause: bool  # whether a pause was found, so that all tokens before it are final
    text: str  # since the last pause before this piece, final or not: at most 1,000 tokens, without silences
    stable: str  # the part of the text that is final
    seconds: float  # length of the sound that the hypothesis covers so far

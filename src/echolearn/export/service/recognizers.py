"""Recognisers of speech, behind the service. They need the whole library and the extra `speech`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from echolearn.exceptions import CorpusError
from echolearn.export.service.limits import Refusal, not_acceptable
from echolearn.export.service.models import About, Json, Listener, SpeechModel
from echolearn.speech import read_audio
from echolearn.speech._audio import RATE_HZ
from echolearn.speech._features import FRAME_SECONDS
from echolearn.speech.recognition import Recognizer
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._transcription import Update


def served_recognizer(recognizer: Recognizer) -> SpeechModel:
    """Return a recogniser as the service asks it; its decoders are built now."""
    about = About(
        estimator="Recognizer",
        task="speech",
        n_features=int(recognizer.model.n_features_in_),
        classes=tuple(recognizer.words.lexicon.words) if recognizer.words is not None else recognizer.phones.states,
        units=recognizer.model.network_.N,
    )
    _ = recognizer.phone_decoder, recognizer.word_decoder
    recognize = partial(_recognize, recognizer)
    try:
        recognizer.stream()
    except ValueError as problem:
        return SpeechModel(about, recognize, why_no_stream=str(problem))
    if not recognizer.features.audio:
        return SpeechModel(about, recognize, why_no_stream="its features are not made from sound by a known recipe.")
    return SpeechModel(about, recognize, open_stream=partial(_open_stream, recognizer))


def _recognize(recognizer: Recognizer, sound: bytes, longest: float) -> Json:
    with tempfile.TemporaryDirectory(prefix="echolearn-") as folder:
        path = Path(folder) / "recording"
        path.write_bytes(sound)
        try:
            seconds = _duration(path)
            if seconds > longest:
                raise Refusal(413, "frames", f"the recording has {seconds:,.0f} s; this service takes {longest:,.0f}.")
            samples = read_audio(path, channels="mix")
            transcription = recognizer.recognize(samples, rate=RATE_HZ)
        except (CorpusError, ValueError) as problem:
            raise not_acceptable(str(problem).replace(str(path), "the body")) from problem
    answer: Json = {
        "text": transcription.text,
        "seconds": transcription.seconds,
        "phones": _timed(transcription.phones),
    }
    return answer if transcription.words is None else {**answer, "words": _timed(transcription.words)}


def _duration(path: Path) -> float:
    """Return the seconds that a file promises; readers stop there."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise ValueError(f"recordings need soundfile ({error}): pip install 'echolearn[speech]'.") from error
    try:
        return float(soundfile.info(str(path)).duration)
    except (RuntimeError, ValueError) as problem:
        raise not_acceptable("the body is not a recording in WAV, FLAC, OGG, AIFF or SPHERE format.") from problem


def _open_stream(recognizer: Recognizer, rate: int) -> Listener:
    stream = recognizer.stream(rate=rate)
    return lambda samples: _update(stream.finish() if samples is None else stream.push(samples))


def _update(update: Update) -> Json:
    return {
        "text": update.text,
        "stable": update.stable,
        "pause": update.pause,
        "seconds": round(update.seconds, 3),
        "final": _timed(update.final),
        "partial": _timed(update.partial),
    }


def _timed(tokens: Iterable[Token]) -> list[Json]:
    return [
        {"name": t.name, "start": round(t.start * FRAME_SECONDS, 3), "end": round(t.end * FRAME_SECONDS, 3)}
        for t in tokens
    ]

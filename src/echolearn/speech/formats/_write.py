"""Writing of recognition results in any format: CTM, STM, TextGrid, MLF or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._labels import Segment, write_mlf
from echolearn.speech.formats._json import write_json
from echolearn.speech.formats._nist import StmSegment, write_ctm, write_stm
from echolearn.speech.formats._results import Recognised
from echolearn.speech.formats._textgrid import textgrid_of

RESULT_FORMATS = ("ctm", "textgrid", "json", "mlf", "stm")
UNKNOWN_SPEAKER = "unknown"  # the speaker in an STM file


def write_results(path: str | Path, results: Iterable[Recognised], kind: str, *, level: str = "words") -> list[Path]:
    """Write results of recognition in one of the formats.

    Parameters
    ----------
    path : str or Path
        The file, or for TextGrids the folder. A file that exists is replaced, completely or not at all; a folder that
        does not exist is made.
    results : iterable of Recognised
        The results. CTM and STM files have the tokens sorted by utterance; an STM file has one line per utterance. A
        TextGrid has the name of its utterance, with folders if the name has slashes, and with `.2` and so on for
        channels other than 1. An MLF has the tokens of channel 1 only. An utterance that occurs twice, or whose name
        leads out of the folder, is a ValueError, and nothing is written.
    kind : {"ctm", "textgrid", "json", "mlf", "stm"}
        The format.
    level : {"words", "phones"}, default "words"
        Whether the tokens are words or phones. It is the name of their tier in a TextGrid.

    Returns
    -------
    list of Path
        The files that were written.

    Examples
    --------
    >>> import tempfile
    >>> from echolearn.speech.formats import TimedToken
    >>> result = Recognised("ann/u1", (TimedToken("yes", 0.1, 0.5),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.relative_to(folder).as_posix() for file in write_results(folder, [result], "textgrid")]
    ['ann/u1.TextGrid']
    """
    if kind not in RESULT_FORMATS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(RESULT_FORMATS)}")
    listed, path = list(results), Path(path)
    counts = Counter((result.utterance, result.channel) for result in listed)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        raise ValueError(f"the utterance {twice[0][0]!r}, channel {twice[0][1]}, occurs {counts[twice[0]]} times")
    if kind == "textgrid":
        return _write_textgrids(path, listed, level)
    if kind == "ctm":
        write_ctm(path, listed)
    elif kind == "json":
        write_json(path, listed)
    elif kind == "mlf":
        other = [result for result in listed if result.channel != 1]
        if other:
            raise ValueError(f"an MLF has no channels; {other[0].utterance!r} is of channel {other[0].channel}")
        write_mlf(path, {one.utterance: [Segment(t.start, t.end, t.name) for t in one.tokens] for one in listed})
    else:
        write_stm(path, [_stm_segment(result) for result in listed])
    return [path]


def place_of(folder: Path, utterance: str, ending: str) -> Path:
    """Return the file of an utterance below a folder."""
    names = utterance.split("/")
    wrong = [n for n in names if n in ("", ".", "..") or set(n) & set('\\:*?"<>|') or len(n.encode()) > 200]
    if wrong:
        raise ValueError(
            f"the utterance {utterance[:60]!r} cannot name a file below {folder}: {wrong[0][:60]!r} is no file name"
        )
    return folder.joinpath(*names[:-1], names[-1] + ending)


def _write_textgrids(folder: Path, results: Sequence[Recognised], level: str) -> list[Path]:
    endings = ["" if result.channel == 1 else f".{result.channel}" for result in results]
    files = [place_of(folder, r.utterance, f"{e}.TextGrid") for r, e in zip(results, endings, strict=True)]
    lower = Counter(str(file).lower() for file in files)
    twice = [file for file in files if lower[str(file).lower()] > 1]
    if twice:
        raise ValueError(f"two utterances would be written to {twice[0]} or to names that differ in case only")
    texts = [textgrid_of(result, level=level) for result in results]  # all of them before the first is written
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    return files


def _stm_segment(result: Recognised) -> StmSegment:
    label = "<>" if result.tokens and result.tokens[0].name[0] == "<" else ""
    words = tuple(token.name for token in result.tokens)
    return StmSegment(result.utterance, result.channel, UNKNOWN_SPEAKER, 0.0, result.end, words, label)

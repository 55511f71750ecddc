"""The command `recognize`: phones and words of recordings, printed or written in any format."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.corpora import opened_corpus, part_features
from echolearn.cli.options import FILE, PATH, CorpusOptions, corpus_options, force_option, part_option, word_options
from echolearn.cli.outputs import claim, report
from echolearn.cli.progress import stage_progress, stderr
from echolearn.exceptions import CorpusError, Problem
from echolearn.modelfile.atomic import write_atomically
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.speech import read_channels
from echolearn.speech._audio import RATE_HZ
from echolearn.speech._features import Frames
from echolearn.speech._sources.utterances import AUDIO_ENDINGS, pair_files
from echolearn.speech._text import read_lines
from echolearn.speech.formats import Recognised, write_results
from echolearn.speech.formats._textgrid import textgrid_of
from echolearn.speech.formats._write import RESULT_FORMATS
from echolearn.speech.recognition import Recognizer, load_recognizer, read_arpa, read_lexicon
from echolearn.speech.recognition._recognizer import batches

Input = tuple[str, int, Frames]  # of a recording: its name, its channel, and what the network sees
NBest = dict[str, list[tuple[str, float]]]  # of each recording the best hypotheses with their scores


def channels_of(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | str | None:
    """Parse `mix`, `split` or the number of a channel."""
    if text is None or text in ("mix", "split"):
        return text
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 99:
        return int(text)
    raise click.BadParameter(f"{text!r}; expected mix, split, or the number of a channel")


@click.command()
@click.argument("model", type=FILE)
@click.argument("recordings", nargs=-1, type=PATH)
@corpus_options()
@part_option
@click.option("--out",
              help="What to print: ctm, json, stm or mlf. Or textgrid, to write one beside each recording. "
                   "Or the file or folder to write.  [default: ctm]")  # fmt: skip
@force_option
@click.option("--format", "form", type=click.Choice(["ctm", "textgrid", "json", "mlf", "stm"]),
              help="The format of --out PATH.  [default: by its ending; textgrid for a folder]")  # fmt: skip
@click.option("--level", type=click.Choice(["words", "phones"]),
              help="What to recognise.  [default: words, if the model knows any]")  # fmt: skip
@word_options
@click.option("--words-list", type=FILE, help="A file of words: only these are recognised, in any order.")
@click.option("--channels", metavar="mix|split|NUMBER", callback=channels_of,
              help="Average channels, recognise each, or one.  [default: several are refused]")  # fmt: skip
@click.option("--confidences", is_flag=True, help="Compute how probable it is that each token is right.")
@click.option("--nbest", type=click.IntRange(min=0), default=0,
              help="Give this many hypotheses of each recording, as JSON.")  # fmt: skip
@click.pass_context
def recognize(
    ctx: click.Context,
    /,
    *,
    model: Path,
    recordings: tuple[Path, ...],
    part: str,
    out: str | None,
    form: str | None,
    level: str | None,
    lexicon: Path | None,
    language_model: Path | None,
    words_list: Path | None,
    channels: int | str | None,
    confidences: bool,
    nbest: int,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Recognise phones and words in RECORDINGS, files or folders, or in a part of a corpus, with MODEL.

    MODEL is a recogniser, made by: echolearn train --for recognition. If a recording cannot be read, it is listed, the
    others are recognised, and the exit code is 1.
    """
    if not recordings and corpus_settings["corpus"] is None:
        raise ValueError("there is nothing to recognise: name recordings or a folder of them, or give --corpus")
    place = Destination(out or ("json" if nbest else "ctm"), form)
    recognizer = with_words(open_recognizer(model), lexicon, language_model, words_list)
    files = find_recordings(recordings)
    place.check(files, nbest=nbest > 0)
    problems: list[Problem] = []
    if recordings:
        inputs, count = recording_inputs(recognizer, files, channels, problems), len(files)
    else:
        names, X = part_features(opened_corpus(recognizer.features, **corpus_settings), part)
        named = zip(names, X, strict=True)
        inputs, count = (("_".join(name.split()), 1, recognizer.inputs(x)) for name, x in named), len(names)
    with stage_progress(stderr()) as progress:
        found, hypotheses = recognize_inputs(
            recognizer,
            inputs,
            lambda done: progress("recognising", done, count),
            level=level,
            confidences=confidences,
            nbest=nbest,
        )
    if found:
        shown = level or ("phones" if recognizer.words is None else "words")
        place.put_nbest(hypotheses) if nbest else place.put(found, shown, files)
    for problem in problems:
        click.echo(f"not recognised: {problem}", err=True)
    if problems:
        click.echo(f"{len(problems)} of {len(files)} recordings could not be recognised.", err=True)
        ctx.exit(1)


def open_recognizer(path: Path) -> Recognizer:
    """Load a recogniser; ValueError for a plain network, with what to do."""
    if path.is_file() and file_kind(path) not in (RECOGNIZER, None):
        raise ValueError(
            f"{path} is a network without a decoder; make a recogniser with: echolearn train --corpus ... "
            "--for recognition --out NEW.safetensors"
        )
    return load_recognizer(path)


def with_words(
    recognizer: Recognizer, lexicon: Path | None, language_model: Path | None, words_list: Path | None
) -> Recognizer:
    if lexicon is not None or language_model is not None:
        recognizer = recognizer.with_words(
            None if lexicon is None else read_lexicon(lexicon),
            None if language_model is None else read_arpa(language_model),
        )
    return recognizer if words_list is None else recognizer.with_word_list(read_word_list(words_list))


def read_word_list(path: Path) -> list[str]:
    """Return the words of a text file, separated by blanks or line breaks; lines that begin with # do not count."""
    words = [word for _, line in read_lines(path, "a list of words") if line[0] != "#" for word in line.split()]
    if not words:
        raise CorpusError.one(path, "holds no word; expected one word per line")
    return words


def find_recordings(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the recordings among files and below folders by their names: paths without ending and without blanks."""
    found: list[tuple[Path, Path]] = []  # file, and its name from the folder on
    for path in paths:
        if path.is_dir():
            inside = [audio for audio, _ in pair_files(path).values() if audio is not None]
            if not inside:
                raise ValueError(f"{path} holds no recordings; expected files that end in {', '.join(AUDIO_ENDINGS)}")
            found += [(audio, audio.relative_to(path)) for audio in inside]
        else:
            found.append((path, Path(path.name)))
    counts = Counter(_name(short) for _, short in found)
    names = [_name(short if counts[_name(short)] == 1 else path) for path, short in found]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is given twice; give each recording once")
    return dict(zip(names, (path for path, _ in found), strict=True))


def _name(path: Path) -> str:
    return "_".join(path.with_suffix("").as_posix().lstrip("/.").split()) or "recording"


def recording_inputs(
    recognizer: Recognizer, recordings: Mapping[str, Path], channels: int | str | None, problems: list[Problem]
) -> Iterator[Input]:
    """Yield the features of recordings. Those that cannot be read are left out and added to the problems."""
    if not recognizer.features.audio:
        raise ValueError(
            f"this recogniser takes features, not sound ({recognizer.features.describe()}); recognise a part of a "
            "corpus of features with --corpus features:FILE.npz --part valid"
        )
    for name, path in recordings.items():
        try:
            for channel, samples in enumerate(read_channels(path, channels), 1):
                number = channels if isinstance(channels, int) else channel
                yield name, number, recognizer.inputs(samples, rate=RATE_HZ)
        except CorpusError as error:
            problems += [_several_channels(problem) for problem in error.problems]
        except ValueError as error:
            problems.append(Problem(str(path), str(error)))


def recognize_inputs(
    recognizer: Recognizer,
    inputs: Iterable[Input],
    report: Callable[[int], None],
    *,
    level: str | None,
    confidences: bool,
    nbest: int,
) -> tuple[list[Recognised], NBest]:
    """Recognise utterances, as many at a time as the network takes; `report` receives how many are done."""
    results: list[Recognised] = []
    hypotheses: NBest = {}
    words = None if level is None else level == "words"
    for batch in batches(inputs):

        def shown(_: str, count: int, total: int, before: int = len(results)) -> None:
            report(before + count)

        transcriptions = recognizer.recognize_all(
            {f"{name} {channel}": frames for name, channel, frames in batch},
            words=words,
            confidences=confidences,
            progress=shown,
        )
        for name, channel, frames in batch:
            key = f"{name} {channel}"
            results.append(transcriptions[key].as_result(name, level=level, channel=channel))
            if nbest:
                hypotheses[name if channel == 1 else key] = recognizer.nbest(frames, nbest, words=words)
    return results, hypotheses


def _several_channels(problem: Problem) -> Problem:
    if "channels, expected 1" not in problem.what:
        return problem
    return Problem(
        problem.file, problem.what.split(",")[0] + "; give --channels mix, --channels split, or the number of one"
    )


class Destination:
    """The place of `--out`: a format alone is printed, TextGrids go beside their recordings; others are paths."""

    def __init__(self, out: str, form: str | None) -> None:
        self.path = None if out in RESULT_FORMATS else Path(out)
        self.kind = out if self.path is None else form or _kind_of(self.path)
        self.beside = self.path is None and self.kind == "textgrid"  # results are written beside the recordings
        if self.path is None and form not in (None, out):
            raise ValueError(f"--out {out} prints {out}; --format {form} is the format of --out PATH")
        if self.path is not None and not self.path.absolute().parent.is_dir():
            raise ValueError(f"--out {out} cannot be written: the folder {self.path.parent} does not exist")
        if self.path is not None and (self.kind != "textgrid") == self.path.is_dir() and self.path.exists():
            found, expected = ("folder", "file") if self.path.is_dir() else ("file", "folder")
            raise ValueError(f"--out {out} is a {found}; results as {self.kind} are written to a {expected}")

    def check(self, recordings: Mapping[str, Path], *, nbest: bool) -> None:
        """Refuse n-best lists as anything but JSON, and to replace what no command wrote: TextGrids may be labels."""
        if nbest and self.kind != "json":
            raise ValueError("--nbest gives JSON: use --out json, or --out FILE.json")
        if self.beside:
            claim(*map(_beside, recordings.values()))
        elif self.path is not None:
            claim(*(self.path.rglob("*.TextGrid") if self.kind == "textgrid" else [self.path]))

    def put(self, results: Sequence[Recognised], level: str, recordings: Mapping[str, Path]) -> None:
        """Write the results, or print them."""
        if self.beside:
            if not recordings:
                raise ValueError("a part of a corpus has no place for TextGrids beside it; give --out FOLDER")
            texts = {_beside(recordings[r.utterance], r.channel): textgrid_of(r, level=level) for r in results}
            claim(*texts)  # also those of further channels
            for path, text in texts.items():
                write_atomically(path, text.encode())
            report(min(texts).parent, f" ({len(texts)} TextGrids beside their recordings)", tuple(texts))
        elif self.path is not None:
            written = write_results(self.path, results, self.kind, level=level)
            report(self.path, f" ({len(written)} TextGrids)" if self.kind == "textgrid" else "", tuple(written))
        else:
            with tempfile.TemporaryDirectory() as folder:
                write_results(Path(folder) / "results", results, self.kind, level=level)
                click.echo((Path(folder) / "results").read_text(encoding="utf-8"), nl=False)

    def put_nbest(self, nbest: NBest) -> None:
        found = {name: [{"text": text, "score": score} for text, score in best] for name, best in nbest.items()}
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        if self.path is None:
            click.echo(text, nl=False)
            return
        write_atomically(self.path, text.encode())
        report(self.path)


def _kind_of(path: Path) -> str:
    ending = path.suffix.lower().removeprefix(".")
    if path.is_dir() or not ending:
        return "textgrid"
    if ending not in RESULT_FORMATS:
        raise ValueError(
            f"--out {path}: expected a format ({', '.join(RESULT_FORMATS)}), a file that ends in one, or a folder"
        )
    return ending


def _beside(path: Path, channel: int = 1) -> Path:
    return path.with_suffix(".TextGrid" if channel == 1 else f".{channel}.TextGrid")

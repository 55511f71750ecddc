"""The command `recognize`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.options import FILE, PATH, CorpusOptions, corpus_options, part_option, word_options


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
@corpus_options
@part_option
@click.option("--out",
              help="What to print: ctm, json, stm or mlf. Or textgrid, to write one beside each recording. "
                   "Or the file or folder to write.  [default: ctm]")  # fmt: skip
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

    MODEL is a recogniser, made by: echolearn train MODEL --for recognition. Recordings that cannot be read are
    listed and the others recognised; the exit code is 1 then.
    """
    from echolearn.cli.corpora import opened_corpus
    from echolearn.cli.progress import stage_progress, stderr
    from echolearn.experiments import commands, recognition
    from echolearn.experiments.recognition_output import Destination

    if not recordings and ctx.get_parameter_source("corpus") is click.core.ParameterSource.DEFAULT:
        raise ValueError("there is nothing to recognise: name recordings or a folder of them, or give --corpus")
    place = Destination(out or ("json" if nbest else "ctm"), form)
    recognizer = recognition.open_recognizer(model)
    recognizer = recognition.with_words(recognizer, lexicon, language_model, words_list)
    options = recognition.RecognitionOptions(channels, level, confidences, nbest)
    found = recognition.find_recordings(recordings)
    place.check(found, nbest=nbest > 0)
    features = None if recordings else commands.part_features(opened_corpus(**corpus_settings), part)
    with stage_progress(stderr()) as progress:
        if features is None:
            done = recognition.recognize_recordings(recognizer, found, options, progress)
        else:
            done = recognition.recognize_features(recognizer, features, options, progress)
    if done.results:
        click.echo(place.put_nbest(done.nbest) if nbest else place.put(done.results, done.level, found), nl=False)
    for problem in done.problems:
        click.echo(f"not recognised: {problem}", err=True)
    if done.problems:
        click.echo(f"{len(done.problems)} of {len(found)} recordings could not be recognised.", err=True)
        ctx.exit(1)

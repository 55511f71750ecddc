"""The command `score`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from echolearn.cli.options import FILE, PATH, words


@click.command()
@click.argument("reference", type=PATH)
@click.argument("hypothesis", type=PATH)
@click.option("--ignore", callback=words, help="Tokens that do not count, such as sil,sp.  [default: silences]")
@click.option("--map", "phone_map", metavar="39|48|FILE",
              help="Fold phones into the 39 or 48 classes of Lee and Hon, or by a file, before comparing.")  # fmt: skip
@click.option("--speakers", type=FILE,
              help="Utterances and their speakers, as Kaldi's utt2spk.  [default: those of an STM file]")  # fmt: skip
@click.option("--level", type=click.Choice(["words", "phones"]), default="words", show_default=True,
              help="What to compare where a file has both.")  # fmt: skip
@click.option("--case", is_flag=True, help="Whether upper and lower case are different.")
@click.option(
    "--by", type=click.Choice(["speaker", "token"]), multiple=True, help="Add a table by speaker or by token."
)
@click.option("--against", type=PATH, help="Another hypothesis: is the difference between the two significant?")
@click.option("--json", "as_json", is_flag=True, help="Print numbers as JSON.")
def score(
    *,
    reference: Path,
    hypothesis: Path,
    ignore: tuple[str, ...] | None,
    phone_map: str | None,
    speakers: Path | None,
    level: str,
    case: bool,
    by: tuple[str, ...],
    against: Path | None,
    as_json: bool,
) -> None:
    """Print the errors of HYPOTHESIS against REFERENCE: substitutions, deletions and insertions.

    Each is a CTM, STM, MLF or JSON file, a TextGrid or a folder of them, or a list of transcripts (Kaldi's text, or
    WORDS (UTTERANCE) on every line).
    """
    from echolearn.experiments import transcript_scores as work

    settings = work.ScoreSettings(phone_map, ignore, case, level)
    true, who = work.read_any(reference, level), {} if speakers is None else work.read_speakers(speakers)
    found = work.score(true, work.read_any(hypothesis, level), who, settings)
    other = None if against is None else work.score(true, work.read_any(against, level), who, settings)
    if as_json:
        numbers = found.as_json()
        if other is not None:
            numbers["against"] = work.comparison_json(found, other)
        click.echo(json.dumps(numbers, indent=1))
        return
    click.echo(found.as_text())
    for group in by:
        click.echo(f"\n{found.table(group)}")
    if other is not None:
        click.echo(work.comparison_text(found, other, str(against)))

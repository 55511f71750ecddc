"""The command `score`: transcripts of any format, compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from echolearn.cli.options import FILE, PATH, words
from echolearn.display.facts import counted
from echolearn.exceptions import CorpusError
from echolearn.speech import Evaluation, evaluate, matched_pairs, read_mlf
from echolearn.speech._phone_set import SILENCES, fold, level_map, read_phone_map, split_state
from echolearn.speech._scoring import MIN_SPEAKERS, Counts, Pair
from echolearn.speech._text import line_problem, read_lines
from echolearn.speech._transcripts import read_transcripts
from echolearn.speech.formats import Recognised, read_ctm, read_json, read_stm, read_textgrid
from echolearn.speech.formats._write import UNKNOWN_SPEAKER


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
@click.option("--case", is_flag=True, help="Treat upper and lower case as different.")
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
    true, who = read_any(reference, level), {} if speakers is None else read_speakers(speakers)
    found, *others = (
        score_transcripts(true, read_any(path, level), who, phone_map=phone_map, ignore=ignore, case=case)
        for path in (hypothesis, against)
        if path is not None
    )
    if as_json:
        numbers = found.as_json()
        for other in others:
            test = matched_pairs(found.evaluation, other.evaluation)
            rate = other.evaluation.total.error_rate
            numbers["against"] = {"error": rate, "difference": test.difference, "p_value": test.p_value}
        click.echo(json.dumps(numbers, indent=1))
        return
    click.echo(found.as_text())
    for group in by:
        click.echo(f"\n{found.table(group)}")
    for other in others:
        click.echo(comparison_text(found, other, str(against)))


SHOWN_ERRORS = 8
TEXTGRID = ".textgrid"
LEE_AND_HON = ("39", "48")  # their numbers of classes
Tokens = dict[str, list[str]]  # of each utterance


@dataclass(frozen=True)
class TranscriptFile:
    """The tokens of each utterance, and who speaks where the file says it."""

    tokens: Tokens
    speakers: dict[str, str] = field(default_factory=dict)


def read_any(path: Path, level: str = "words") -> TranscriptFile:
    """Read a CTM, STM, MLF or JSON file, a TextGrid or a folder of them, or a list of transcripts, by its ending.
    level: words or phones, where a file has both."""
    kind = path.suffix.lower()
    if path.is_dir():
        return TranscriptFile(_textgrids(path, level))
    if not path.is_file():
        raise CorpusError.one(path, "no such file; expected a CTM, STM, MLF or JSON file, TextGrids, or transcripts")
    if kind == ".stm":
        return _stm(path)
    if kind in (".ctm", ".json"):
        return TranscriptFile(_results(read_ctm(path) if kind == ".ctm" else read_json(path), level))
    if kind == ".mlf":
        return TranscriptFile({name: _phones([s.name for s in found]) for name, found in read_mlf(path).items()})
    if kind == TEXTGRID:
        return TranscriptFile(_results([read_textgrid(path, level=level, silences=True)], level))
    return TranscriptFile({name: list(words) for name, words in read_transcripts(path).items()})


def _results(results: Iterable[Recognised], level: str) -> Tokens:
    """Return the tokens of results; with the level of phones those below words, if there are any."""
    return {
        result.utterance if result.channel == 1 else f"{result.utterance} {result.channel}": [
            token.name for token in (result.phones if level == "phones" and result.phones else result.tokens)
        ]
        for result in results
    }


def _textgrids(folder: Path, level: str) -> Tokens:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() == TEXTGRID)
    if not files:
        raise CorpusError.one(folder, "holds no TextGrids")
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in files]
    named = zip(("_".join(name.split()) for name in names), files, strict=True)
    return _results([read_textgrid(path, utterance=name, level=level, silences=True) for name, path in named], level)


def _stm(path: Path) -> TranscriptFile:
    """Return the words of each recording, all its stretches together."""
    tokens: Tokens = {}
    speakers: dict[str, set[str]] = {}
    for segment in read_stm(path):
        name = segment.file if segment.channel == 1 else f"{segment.file} {segment.channel}"
        tokens.setdefault(name, []).extend(segment.words)
        speakers.setdefault(name, set()).add(segment.speaker)
    known = {
        name: next(iter(found)) for name, found in speakers.items() if len(found) == 1 and found != {UNKNOWN_SPEAKER}
    }
    return TranscriptFile(tokens, known)


def _phones(names: Sequence[str]) -> list[str]:
    """Return labels as they are, or the phones of states: a phone ends where its states begin again."""
    parts = [split_state(name) for name in names]
    if any(state is None for _, state in parts):
        return list(names)
    found: list[str] = []
    last: tuple[str, int] | None = None
    for phone, state in parts:
        assert state is not None
        if last is None or last[0] != phone or state <= last[1]:
            found.append(phone)
        last = phone, state
    return found


@dataclass(frozen=True)
class Score:
    """A hypothesis against its reference. missing: utterances without hypothesis; extra: those without reference."""

    evaluation: Evaluation
    missing: int
    extra: int
    known_speakers: bool
    classes: str  # into which tokens are folded: " in the 39 classes of Lee and Hon"; "" if they are not

    def as_json(self) -> dict[str, object]:
        interval = self.evaluation.interval()
        return {
            **_counts(self.evaluation.total),
            "interval": [interval.low, interval.high] if interval.high < float("inf") else None,
            "utterances": len(self.evaluation.alignments),
            "speakers": len(self.evaluation.by_speaker()) if self.known_speakers else None,
            "without_hypothesis": self.missing,
            "without_reference": self.extra,
            "by_speaker": {s: _counts(c) for s, c in self.evaluation.by_speaker().items()}
            if self.known_speakers
            else {},
            "by_token": {token: _counts(counts) for token, counts in self.evaluation.by_token().items()},
            "confusions": [
                {"true": true, "recognised": found, "count": count}
                for (true, found), count in self.evaluation.confusions().most_common()
            ],
        }

    def as_text(self) -> str:
        total, interval = self.evaluation.total, self.evaluation.interval()
        groups, utterances = len(self.evaluation.by_speaker()), counted(len(self.evaluation.alignments), "utterance")
        lines = [
            f"error {100 * total.error_rate:.2f} %{self.classes} (S {total.substitutions:,}, D {total.deletions:,}, "
            f"I {total.insertions:,} of {total.reference:,} tokens in {utterances})"
        ]
        bounds = f"{100 * interval.low:.2f} to {100 * interval.high:.2f} %"
        if groups < MIN_SPEAKERS:
            bounds = f"cannot be given, at least {MIN_SPEAKERS} are required"
        over = counted(groups, "speaker" if self.known_speakers else "utterance")
        lines.append(f"95 % interval over {over}: {bounds}")
        for what in ("substitutions", "deletions", "insertions"):
            common = [(p, n) for p, n in self.evaluation.confusions().most_common() if _sort(p) == what][:SHOWN_ERRORS]
            shown = ", ".join(f"{' as '.join(token for token in pair if token)} ({n})" for pair, n in common)
            lines.append(f"most frequent {what}: {shown or 'none'}")
        if self.missing:
            lines.append(
                f"without hypothesis: {counted(self.missing, 'utterance')}; all their tokens count as deletions"
            )
        if self.extra:
            lines.append(f"without reference: {counted(self.extra, 'utterance')} of the hypothesis, which do not count")
        return "\n".join(lines)

    def table(self, by: str) -> str:
        """Return one line per speaker or token: the errors, worst first."""
        found = self.evaluation.by_speaker() if by == "speaker" else self.evaluation.by_token()
        width = max((len(name) for name in found), default=4)
        lines = [f"{by:{width}}  error %      S      D      I  tokens"]
        for name, c in sorted(found.items(), key=lambda item: (-item[1].errors, item[0])):
            rate = f"{100 * c.error_rate:7.2f}" if c.reference else "      –"
            lines.append(
                f"{name:{width}}  {rate}  {c.substitutions:5}  {c.deletions:5}  {c.insertions:5}  {c.reference:6}"
            )
        return "\n".join(lines)


def _sort(pair: Pair) -> str:
    return "insertions" if pair[0] is None else "deletions" if pair[1] is None else "substitutions"


def _counts(counts: Counts) -> dict[str, object]:
    return {
        "error": counts.error_rate if counts.reference else None,
        "substitutions": counts.substitutions,
        "deletions": counts.deletions,
        "insertions": counts.insertions,
        "reference": counts.reference,
    }


def score_transcripts(
    reference: TranscriptFile,
    hypothesis: TranscriptFile,
    speakers: Mapping[str, str],
    *,
    phone_map: str | None,
    ignore: tuple[str, ...] | None,
    case: bool,
) -> Score:
    """Compare a hypothesis with its reference; ValueError if they have no utterance in common. phone_map: "39", "48" or
    a file; ignore: tokens that do not count, None: silences; case: whether it matters."""

    def prepared(tokens: Iterable[str]) -> list[str]:
        return list(tokens) if case else [token.lower() for token in tokens]

    found, extra = _matched(reference.tokens, hypothesis.tokens)
    missing = sum(name not in found for name in reference.tokens)
    true = {name: prepared(tokens) for name, tokens in reference.tokens.items()}
    answers = {name: prepared(found.get(name, [])) for name in reference.tokens}
    if phone_map is not None:
        folds = _phone_map(phone_map, (*true.values(), *answers.values()), case)
        true, answers = ({name: fold(one, folds) for name, one in side.items()} for side in (true, answers))
    ignored = prepared(SILENCES if ignore is None else ignore)
    known = {**reference.speakers, **speakers}
    who = None
    if known:
        without = [name for name in reference.tokens if name not in known]
        if without:
            raise ValueError(f"{len(without)} utterances have no speaker, the first is {without[0]!r}")
        who = {name: known[name] for name in reference.tokens}
    classes = f"{phone_map} classes of Lee and Hon" if phone_map in LEE_AND_HON else f"classes of {phone_map}"
    classes = "" if phone_map is None else f" in the {classes}"
    return Score(evaluate(true, answers, speakers=who, ignore=ignored), missing, extra, who is not None, classes)


def _phone_map(word: str, transcripts: Iterable[Sequence[str]], case: bool) -> dict[str, str | None]:
    if word in LEE_AND_HON:
        return level_map(f"phone{word}", {token for tokens in transcripts for token in tokens})
    found = read_phone_map(Path(word))
    return found if case else {token.lower(): name and name.lower() for token, name in found.items()}


def _matched(reference: Tokens, hypothesis: Tokens) -> tuple[Tokens, int]:
    """Return the hypotheses by the names of the reference, and how many belong to none. If no name is the same, the
    last parts of names are compared: an4/ann/u1 and u1 are one utterance."""
    found = {name: hypothesis[name] for name in reference if name in hypothesis}
    if not found:
        short = {name.rpartition("/")[2]: name for name in hypothesis}
        wanted = {name.rpartition("/")[2]: name for name in reference}
        if len(short) == len(hypothesis) and len(wanted) == len(reference):
            found = {wanted[last]: hypothesis[short[last]] for last in wanted if last in short}
    if not found:
        ours, theirs = next(iter(reference), "nothing"), next(iter(hypothesis), "nothing")
        raise ValueError(
            f"no utterance is in both: the reference has {ours!r}, the hypothesis {theirs!r}; expected the same names"
        )
    return found, len(hypothesis) - len(found)


def read_speakers(path: Path) -> dict[str, str]:
    """Return the speakers of utterances: `utterance speaker` on every line, as Kaldi's utt2spk."""
    found: dict[str, str] = {}
    for number, line in read_lines(path, "a list of speakers"):
        fields = line.split()
        if len(fields) != 2:
            raise line_problem(path, number, f"{line[:60]!r}; expected an utterance and its speaker")
        if fields[0] in found:
            raise line_problem(path, number, f"{fields[0]} has a speaker already; keep one of the two lines")
        found[fields[0]] = fields[1]
    if not found:
        raise CorpusError.one(path, "names no speaker; expected an utterance and its speaker on every line")
    return found


def comparison_text(first: Score, second: Score, other: str) -> str:
    found = matched_pairs(first.evaluation, second.evaluation)
    better = "fewer" if found.difference > 0 else "more"
    difference = f"{100 * abs(found.difference):.2f} % {better} errors than {other}"
    if found.difference == 0:
        difference = f"as many errors as {other}"
    clear = "significant" if found.p_value < 0.05 else "not significant"
    rate = 100 * second.evaluation.total.error_rate
    return f"{difference} ({rate:.2f} %); matched pairs: p = {found.p_value:.3g}, {clear} at 5 %"

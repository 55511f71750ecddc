"""40,000 damaged files of speech: features of Kaldi, lexicons, language models, labels and results.

    python -m reliability.damaged_speech [--files 40000] [--seed 0]

A damaged file must be refused with CorpusError, which names the file and, for text, the line (for JSON the line or the
place in the document); or it must be read as exactly what it says. None of these formats has a checksum, so that some
damage makes another legal file: `0.52` becomes `0.53`. What a file says is decided by a witness that shares no code
with the readers (reliability/speech_witness.py): a second, slow reading by a plain grammar. Reader and witness must
agree on every file, in both directions: a file that the reader takes and the witness does not is wrong, one that both
take as different content is wrong, and so is one that the reader refuses although the grammar allows it. Nothing may
raise another exception, take longer than LIMIT seconds of processor time, or more memory than the file and ROOM: every
file is read in a process whose address space is limited to that.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reliability import results, speech_witness
from reliability.memory import limit_growth, process_bytes

LIMIT = 1  # seconds per file
ROOM = 100 * 2**20  # bytes of memory besides the file
COLUMNS = ("files", "refused", "equal", "legal", "wrong")
TEXT = ("scp", "lexicon", "arpa", "textgrid", "ctm", "stm", "mlf", "json", "text ark")
KINDS = ("ark", "text ark", *(kind for kind in TEXT if kind != "text ark"))
_ODD = """nan NaN inf -inf Infinity 1e999 -1e999 1e308 -1 -0 0 1 2 99999999999999999999 1e-400 0x10 1_0 1,5 ٣ ² "" " ;
 ;; # \\ \\end\\ \\data\\ \\2-grams: . [ ] [0:1] [5:2] [0:99] | - < <> { } null true NA *"""
ODD = [word.encode() for word in _ODD.split()] + [b"9" * 5000, b"x" * 3000, b"[" * 300]
BYTES = [
    b"\0",
    b"\n",
    b"\r",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    "\u00a0".encode(),
    "\u2028".encode(),
    b"\x0b",
    b" ",
]


def sound_files(folder: Path) -> dict[str, list[bytes]]:
    """Return sound files of every kind; script files name an archive that is written to the folder."""
    from echolearn.speech.formats import write_ark

    rng, path = np.random.default_rng(0), folder / "made"
    arrays = {
        "ann-1": rng.standard_normal((6, 3)).astype(np.float32),
        "ann-2": rng.standard_normal((2, 2)),
        "bob-1": rng.standard_normal(5).astype(np.float32),
        "bob-2": np.array([1, 1, 7, 7, -3], np.int32),
    }
    found: dict[str, list[bytes]] = {**_labels_and_models(), **_results(path)}

    def made(write: Callable[..., None], *arguments: Any, **options: Any) -> bytes:
        write(path, *arguments, **options)
        return path.read_bytes()

    plain = made(write_ark, arrays)
    found["ark"] = [plain, _compressed(rng), plain + _compressed(rng)]
    found["text ark"] = [made(write_ark, {k: v for k, v in arrays.items() if k != "ann-2"}, text=True)]
    target = folder / "feats.ark"
    write_ark(target, {"u": arrays["ann-1"], "v": arrays["ann-1"][:4]}, scp=path)
    lines = path.read_text().replace(f"{folder}/", "").splitlines()
    found["scp"] = [
        f"{lines[0]}\n{lines[1]}\nw {lines[0].split()[1]}[1:4]\nx {lines[1].split()[1]}[0:2,1:2]\n".encode()
    ]
    return found


def _compressed(rng: np.random.Generator) -> bytes:
    """Return an archive with a matrix of each compressed kind, written from the description of the format."""
    codes = rng.integers(0, 256, (2, 5), dtype=np.uint8)
    quantiles = np.sort(rng.integers(0, 65536, (2, 4)), axis=1).astype("<u2")
    head = np.array([-1.5, 4.0], "<f4").tobytes() + np.array([5, 2], "<i4").tobytes()
    wide = rng.integers(0, 65536, (5, 2)).astype("<u2")
    return b"".join(
        [
            b"cm \0BCM " + head + quantiles.tobytes() + codes.tobytes(),
            b"cm2 \0BCM2 " + head + wide.tobytes(),
            b"cm3 \0BCM3 " + head + codes.tobytes(),
        ]
    )


def _labels_and_models() -> dict[str, list[bytes]]:
    lexicon = ";;; words\nREAD  R IY D\nREAD(2)  R EH D  # past\nA.M.  EY EH M\nÜBER  UW B ER0\n"
    arpa = """made by hand

\\data\\
ngram 1=4
ngram 2=3
ngram 3=1

\\1-grams:
-1.2\t</s>
-99\t<s>\t-0.30103
-0.7\tyes\t-0.2
-0.5\tno\t-0.1

\\2-grams:
-0.4\t<s> yes\t0
-0.6\tyes no
-0.2 no </s>

\\3-grams:
-0.1\t<s> yes no

\\end\\
"""
    mlf = (
        '#!MLF!#\n"*/ann/u1.lab"\n0 5000000 sil\n5000000 7500000 iy -12.5\n.\n"*/u2.rec"\n0 100000 s2 -1.5 aa -3 word\n'
    )
    mlf += "100000 300000 s3 -2\n300000 400000 s2 -1 b\n.\n"
    return {"lexicon": [lexicon.encode()], "arpa": [arpa.encode()], "mlf": [mlf.encode()]}


def _results(path: Path) -> dict[str, list[bytes]]:
    from echolearn.speech.formats import Recognised, StmSegment, TimedToken, write_ctm, write_json, write_stm
    from echolearn.speech.formats._textgrid import textgrid_of

    words = (TimedToken("yes", 0.1, 0.5, 0.9), TimedToken('s"ir', 0.5, 0.75), TimedToken("näh", 1.0, 1.2, 1.0))
    phones = (TimedToken("Y", 0.1, 0.3), TimedToken("EH1", 0.3, 0.5))
    one = Recognised("ann/u1", words, phones, seconds=1.5)
    two = Recognised("bob/u2", words[:1], channel=2)
    found: dict[str, list[bytes]] = {}
    write_ctm(path, [one, two])
    found["ctm"] = [path.read_bytes(), b";; by hand\r\nu A .1 2e-1 yes NA\r\nu A 0.30 0.105 sir\r\nu A 0.4 0 x 1\r\n"]
    write_json(path, [one, two])
    found["json"] = [path.read_bytes(), json.dumps(json.loads(path.read_bytes()), indent=1).encode()]
    write_stm(path, [StmSegment("c", 1, "ann", 0, 2.5, ("yes", "<unk>"), "<o,f0>"), StmSegment("d", 2, "b", 1, 2, ())])
    found["stm"] = [path.read_bytes() + b"e A ann 0 1.5 no no\ne A bob 1 2\ne A ann 1.49 3 yes\n"]
    long = textgrid_of(one)
    short = short_form(long)
    tier = ' item [3]: class = "TextTier" name = "bell" xmin = 0 xmax = 1.5 '
    tier += 'points: size = 1 points [1]: time = 1 mark = ""'
    found["textgrid"] = [long.encode(), short.encode(), long.replace("size = 2\nitem", "size = 3\nitem").encode()]
    found["textgrid"][2] += tier.encode()
    found["textgrid"].append(short.encode("utf-16"))
    return found


def short_form(textgrid: str) -> str:
    """Return a TextGrid in the short text form, which has no names of fields."""
    head, rows = textgrid.splitlines()[:3], textgrid.splitlines()[3:]
    values = [row.rpartition(" = ")[2] for row in rows if " = " in row or "<exists>" in row]
    return "\n".join([*head, *values, ""]).replace("tiers? ", "")


def spoiled(content: bytes, rng: np.random.Generator, *, text: bool) -> bytes:
    """Return a damaged file: one to three of the ways below, one after another."""
    ways = [_flipped, _cut, _removed, _doubled, _moved, _inserted, _noise, _number]
    ways += [_lines, _lines, _word, _word, _digit, _digit, _encoded] if text else [_size, _float, _flipped]
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if content:
            content = ways[int(rng.integers(len(ways)))](content, rng)
    return content


def _stretch(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(len(content)))
    return start, min(len(content), start + 1 + int(rng.geometric(0.1)))


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    made = bytearray(content)
    made[int(rng.integers(len(made)))] ^= 1 << int(rng.integers(8))
    return bytes(made)


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def _removed(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _stretch(content, rng)
    return content[:start] + content[end:]


def _doubled(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _stretch(content, rng)
    return content[:end] + content[start:]


def _moved(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _stretch(content, rng)
    rest = content[:start] + content[end:]
    to = int(rng.integers(len(rest) + 1))
    return rest[:to] + content[start:end] + rest[to:]


def _inserted(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + BYTES[int(rng.integers(len(BYTES)))] + content[at:]


def _noise(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _stretch(content, rng)
    return content[:start] + rng.bytes(end - start) + content[end:]


def _number(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace a number by another one."""
    found = list(re.finditer(rb"\d+", content))
    if not found:
        return content
    match = found[int(rng.integers(len(found)))]
    value = int(match[0][:15]) + int(rng.choice([-1, 1, 2, 10, 1000, 10**9]))
    return content[: match.start()] + str(value).encode() + content[match.end() :]


def _digit(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove or add one digit."""
    found = [match.start() for match in re.finditer(rb"\d", content)]
    if not found:
        return content
    at = found[int(rng.integers(len(found)))]
    new = [b"", b"%d" % rng.integers(10), b"%d%d" % tuple(rng.integers(10, size=2)), b"."][int(rng.integers(4))]
    return content[:at] + new + content[at + 1 :]


def _lines(content: bytes, rng: np.random.Generator) -> bytes:
    """Double, remove, swap or move lines."""
    lines = content.splitlines(keepends=True)
    i, k = (int(rng.integers(len(lines))) for _ in range(2))
    way = int(rng.integers(4))
    if way == 0:
        lines.insert(k, lines[i])
    elif way == 1:
        del lines[i]
    elif way == 2:
        lines[i], lines[k] = lines[k], lines[i]
    else:
        lines.insert(k, lines.pop(i))
    return b"".join(lines)


def _word(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace a word by an odd one or by another word of the file."""
    found = list(re.finditer(rb"\S+", content))
    if not found:
        return content
    match = found[int(rng.integers(len(found)))]
    others = [other[0] for other in found] if rng.integers(2) else ODD
    return content[: match.start()] + others[int(rng.integers(len(others)))] + content[match.end() :]


def _encoded(content: bytes, rng: np.random.Generator) -> bytes:
    """Write the text in another encoding or with other line ends."""
    way = int(rng.integers(6))
    if way == 0:
        return b"\xef\xbb\xbf" + content
    if way == 1:
        return content.replace(b"\n", b"\r\n")
    if way == 2:
        return content.replace(b"\n", b"\r")
    try:
        text = content.decode("utf-8")
        return text.encode(("utf-16", "utf-16-be", "latin-1")[way - 3])
    except UnicodeError:
        return content


def _size(content: bytes, rng: np.random.Generator) -> bytes:
    """Write another whole number over four bytes, in either order of bytes."""
    at = int(rng.integers(len(content)))
    value = int(rng.choice([0, 1, 2, 5, 255, 2**16, 2**30, 2**31 - 1, -1, -(2**31)]))
    order = "little" if rng.integers(2) else "big"
    return content[:at] + value.to_bytes(4, order, signed=True) + content[at + 4 :]


def _float(content: bytes, rng: np.random.Generator) -> bytes:
    """Write another number over four or eight bytes."""
    at = int(rng.integers(len(content)))
    value = float(rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 3e38, 1e-45]))
    form = ("<f4", "<f8", ">f4")[int(rng.integers(3))]
    raw = np.array(value if form != "<f8" else value * 1e100, form).tobytes()
    return content[:at] + raw + content[at + len(raw) :]


def reader_of(kind: str, folder: Path) -> Callable[[Path], Any]:
    """Return a function that reads a file and returns its content as the witness does."""
    from echolearn.speech import read_mlf
    from echolearn.speech.formats import _json, _kaldi, _nist, _textgrid
    from echolearn.speech.recognition import read_arpa, read_lexicon

    def array(found: Any) -> tuple[Any, ...]:
        return found.dtype.str[1:], found.shape, found.ravel().tolist()

    def read_model(path: Path) -> Any:
        found = read_arpa(path)
        return found.order, sorted((g, (p, found.backoff.get(g))) for g, p in found.probability.items())

    readers: dict[str, Callable[[Path], Any]] = {
        "ark": lambda path: [(name, *array(found)) for name, found in _kaldi.read_ark(path).items()],
        "scp": lambda path: [(name, found.tolist()) for name, found in _kaldi.open_scp(path).items()],
        "lexicon": lambda path: sorted((w, list(p)) for w, p in read_lexicon(path).pronunciations.items()),
        "arpa": read_model,
        "textgrid": lambda path: [
            (tier.name, [interval[:3] for interval in tier.intervals]) for tier in _textgrid.read_tiers(path)
        ],
        "ctm": lambda path: [((r.utterance, r.channel), [tuple(t) for t in r.tokens]) for r in _nist.read_ctm(path)],
        "stm": lambda path: [(*s[:5], s.label, s.words) for s in _nist.read_stm(path)],
        "mlf": lambda path: [(name, [(s[2], s[0], s[1]) for s in found]) for name, found in read_mlf(path).items()],
        "json": lambda path: [
            (
                r.utterance,
                r.channel,
                r.seconds,
                *([tuple(t) for t in level] for level in (r.tokens, r.phones, r.states)),
            )
            for r in _json.read_json(path)
        ],
    }
    return readers["ark" if kind == "text ark" else kind]


def witness_of(kind: str, folder: Path) -> Callable[[bytes], Any]:
    """Return the witness of a kind."""
    if kind != "scp":
        name = {"text ark": "ark", "json": "json_results"}.get(kind, kind)
        found: Callable[[bytes], Any] = getattr(speech_witness, name)
        return found
    content = (folder / "feats.ark").read_bytes()
    places: dict[tuple[str, int], Any] = {}
    for name, _, (rows, columns), values, _ in speech_witness.ark(content):
        offset = content.index(f"{name} \0B".encode()) + len(name) + 1
        places["feats.ark", offset] = [values[columns * k : columns * (k + 1)] for k in range(rows)]
    return lambda raw: speech_witness.scp(raw, places)


def same(kind: str, read: Any, said: Any) -> bool:
    """Return whether two contents are equal; numbers that were compressed may differ by rounding."""
    if kind in ("ark", "text ark"):
        return len(read) == len(said) and all(
            list(map(repr, a[:-1])) == list(map(repr, b[:-2]))
            and len(a[-1]) == len(b[-2])
            and all(x == y or abs(x - y) <= b[-1] for x, y in zip(a[-1], b[-2], strict=True))
            for a, b in zip(read, said, strict=True)
        )
    return bool(read == said)


def named(kind: str, problem: Any, path: Path) -> bool:
    """Return whether an error names the file and, for text, the line."""
    place = r"line \d+|the document: |utterances(\[\d+\])?" if kind == "json" else r"line \d+"
    for one in problem.problems:
        either = rf"{place}|offset \d+" if kind == "text ark" else place  # damage may make an entry binary
        if one.file != str(path) or (kind in TEXT and not re.match(either, one.what)):
            return False
    return bool(problem.problems)


class Judge:
    """Compares the reading of damaged files with that of the witness."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.path, self.slowest = kind, folder / "file", 0.0
        self.read, self.witness = reader_of(kind, folder), witness_of(kind, folder)

    def verdict(self, made: bytes, sound: Any) -> str:
        """Return refused, equal, legal, or what is wrong. sound: what the witness says of the sound file."""
        from echolearn.exceptions import CorpusError

        read, refusal, started = None, None, time.process_time()
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            read = self.read(self.path)
        except CorpusError as problem:
            refusal = problem
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)  # the witness may take its time
            self.slowest = max(self.slowest, time.process_time() - started)
        try:
            said = self.witness(made)
        except speech_witness.Invalid as problem:
            if refusal is None:
                return f"wrong: read, although the grammar refuses it ({problem})"
            return "refused" if named(self.kind, refusal, self.path) else f"wrong: no place named: {refusal}"
        if refusal is not None:
            return f"wrong: a legal file was refused: {refusal}"
        if not same(self.kind, read, said):
            return f"wrong: read as {str(read)[:150]}, it says {str(said)[:150]}"
        return "equal" if repr(said) == repr(sound) else "legal"


def judge_all(kind: str, count: int, seed: list[int], folder: Path) -> dict[str, Any]:
    """Return the verdicts on `count` damaged files of a kind, the slowest one, and the largest growth of memory."""
    sound = sound_files(folder)[kind]
    rng, judge = np.random.default_rng(seed), Judge(kind, folder)
    truth = [judge.witness(content) for content in sound]
    counts: Counter[str] = Counter()
    failures: list[list[Any]] = []
    for content in sound:
        judge.path.write_bytes(content)
        if judge.verdict(content, judge.witness(content)) != "equal":
            failures.append([-1, "wrong: a sound file is not read as it is"])
    before = process_bytes("VmRSS")
    for number in range(count):
        which = number % len(sound)
        made = spoiled(sound[which], rng, text=kind in TEXT)
        judge.path.write_bytes(made)
        limit_growth(len(made) + ROOM)
        try:
            verdict = judge.verdict(made, truth[which])
        except BaseException as problem:
            verdict = f"wrong: {type(problem).__name__}: {problem}"[:300]
        counts["files"] += 1
        counts[verdict.split(":")[0]] += 1
        if verdict.startswith("wrong") and len(failures) < 20:
            failures.append([number, verdict, made[:3000].decode("latin-1")])
    counts["wrong"] += any(number == -1 for number, *_ in failures)
    grown = process_bytes("VmHWM") - before
    return {"counts": counts, "slowest": judge.slowest, "grown": grown, "failures": failures}


def child(job: dict[str, Any], folder: Path) -> None:
    """Judge the files of one kind in a process with little memory, and print a line of JSON at the end."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {LIMIT} seconds")

    signal.signal(signal.SIGPROF, too_long)
    print(json.dumps(judge_all(job["kind"], job["count"], job["seed"], folder)))


def campaign(total: int, seed: int = 0) -> dict[str, Any]:
    """Return all figures of `total` damaged files, the same number of each kind."""
    rows: dict[str, Counter[str]] = {}
    slowest, grown, failures = 0.0, 0, []
    for k, kind in enumerate(KINDS):
        job = {"kind": kind, "count": -(-total // len(KINDS)), "seed": [seed, k]}
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "reliability.damaged_speech", "--job", json.dumps(job), "--folder", folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=3600)
        if done.returncode:
            rows[kind] = Counter(files=1, wrong=1)
            failures.append(f"{kind}: exit code {done.returncode}")
            continue
        answer = json.loads(done.stdout.splitlines()[-1])
        rows[kind] = Counter(answer["counts"])
        slowest, grown = max(slowest, answer["slowest"]), max(grown, answer["grown"])
        failures += [f"{kind}, file {number}: {what}" for number, what, *_ in answer["failures"]]
    table = {kind: dict(row) for kind, row in rows.items()}
    table["all"] = dict(sum(rows.values(), Counter()))
    return {
        "files": table,
        "slowest seconds": round(slowest, 3),
        "resident memory grew by at most": grown,
        "failures": failures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=40_000, help="files in all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        child(options.job, options.folder)
        return 0
    figures = {"seed": options.seed, **campaign(options.files, options.seed)}
    results.show("damaged files of speech", COLUMNS, figures["files"])
    print(f"slowest: {figures['slowest seconds']} s of processor time; limit {LIMIT} s per file")
    print(f"resident memory grew by at most {figures['resident memory grew by at most']:,} bytes")
    for failure in figures["failures"]:
        print("FAILED", failure)
    results.keep("damaged_speech", figures)
    return 1 if figures["files"]["all"].get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())

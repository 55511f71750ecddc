"""Cases of speech: a toy language of tones, from recordings to features, alignments, a recogniser and its scores."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from basis import Run, arrays_of, case, new, public, refusal

from exports import exported

RATE = 16_000
TONES = {"sil": 0.0, "n": 300.0, "ow": 700.0, "y": 2600.0, "eh": 1500.0, "s": 5200.0}
LEXICON = {"NO": (("n", "ow"),), "YES": (("y", "eh", "s"), ("y", "eh")), "SO": (("s", "ow"),)}
PARTS = (*("train",) * 24, *("valid",) * 6, *("test",) * 4)
NETWORK = {"hidden_units": 30, "learn": "none", "readout": "ridge", "random_state": 0}


# ---------------------------------------------------------------- toy speech


def _sound(tone: float, seconds: float, rng: np.random.Generator) -> Any:
    t = np.arange(round(seconds * RATE)) / RATE
    noise = rng.normal(size=len(t)) * 400
    return np.round(noise + (2500 * np.sin(2 * np.pi * tone * t) if tone else 0)).astype(np.int16)


@cache
def utterances(count: int = len(PARTS), seed: int = 0) -> list[tuple[list[str], Any, list[tuple[str, int]]]]:
    """Words, samples, and phones with the samples at which they end; silence surrounds all words."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        words = [("NO", "YES", "SO")[k] for k in rng.integers(3, size=rng.integers(1, 4))]
        phones = ["sil"]
        for word in words:
            phones += [*LEXICON[word][rng.integers(len(LEXICON[word]))], "sil"]
        pieces = [_sound(TONES[p], rng.uniform(0.07, 0.14) * (1 + (p == "sil")), rng) for p in phones]
        ends = np.cumsum([len(piece) for piece in pieces]).tolist()
        found.append((words, np.concatenate(pieces), list(zip(phones, ends, strict=True))))
    return found


def write_sound(path: Path, samples: Any, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def toy(run: Run) -> Path:
    """The folder of the toy corpus, which all cases share: recordings with phones and words, and a lexicon."""
    root = run.work.parent / "toy"
    if root.exists():
        return root
    for k, ((words, samples, phones), part) in enumerate(zip(utterances(), PARTS, strict=True)):
        stem = root / "speech" / part / f"speaker{k % 4}" / f"u{k:02}"
        write_sound(stem.with_suffix(".wav"), samples)
        starts = [0, *(end for _, end in phones)]
        rows = [f"{start} {end} {phone}\n" for start, (phone, end) in zip(starts, phones, strict=False)]
        stem.with_suffix(".phn").write_text("".join(rows))
        stem.with_suffix(".txt").write_text(f"0 {len(samples)} {' '.join(words)}\n")
    (root / "speech" / "phones.txt").write_text("\n".join(TONES))
    entries = [(word, phones) for word, variants in LEXICON.items() for phones in variants]
    (root / "toy.dic").write_text("".join(f"{word}  {' '.join(phones)}\n" for word, phones in entries))
    return root


def opened(run: Run, normalise: str = "running") -> Any:
    root = toy(run)
    return public("open_corpus")(f"wav:{root / 'speech'}", cache=root / "cache", normalise=normalise)


_kept: dict[str, Any] = {}


def recognizer(run: Run) -> Any:
    """A recogniser of the toy language, which all cases share; only one is made in a run."""
    if "recognizer" not in _kept:
        corpus = opened(run)
        X, y = corpus.part("train")
        network = new("ESNClassifier", **NETWORK).fit(X, [np.array(corpus.state_names)[one] for one in y])
        lexicon = public("read_lexicon")(toy(run) / "toy.dic")
        _kept["recognizer"] = public("learn_recognizer")(network, corpus, lexicon=lexicon)
    return _kept["recognizer"]


# ---------------------------------------------------------------- from sound to labels


@case
def features_of_sound(run: Run) -> Any:
    """MFCC, differences, context and normalisation; recipes on whole recordings and on pieces; recordings of files."""
    mfcc, differences = public("mfcc"), public("with_differences")
    samples = utterances()[0][1].astype(np.float32)
    rows = differences(mfcc(samples))
    found: dict[str, Any] = {"mfcc": mfcc(samples), "rows": rows, "normalised": public("normalised")(rows)}
    found["context"] = public("with_context")(rows)
    scale = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    for normalise in ("utterance", "corpus", "running", "none"):
        how = {"scale": scale} if normalise in ("corpus", "running") else {}
        recipe = public("FeatureRecipe")(normalise=normalise, **how)
        found[normalise] = [recipe.of_samples(samples), recipe.of_frames(mfcc(samples))]
        if normalise != "utterance":
            stream = recipe.stream()
            pieces = [stream.push_samples(piece) for piece in np.split(samples, [100, 3000, 3001, 9000])]
            found[f"{normalise}, pieces"] = [*pieces, stream.finish()]
    both = np.stack([utterances()[k][1][:8000] for k in (0, 1)], axis=1)
    for rate in (RATE, 8000, 44_100):
        path = write_sound(run.work / f"{rate}.wav", both, rate)
        found[str(rate)] = [public("read_audio")(path, channels="mix"), public("read_channels")(path)]
    return found


@case
def corpora(run: Run) -> Any:
    """A folder of recordings with labels by a GMM-HMM, a file of features, and one of Kaldi."""
    found: dict[str, Any] = {}
    for normalise in ("utterance", "corpus", "running"):
        corpus = opened(run, normalise)
        found[normalise] = [corpus.labels, list(corpus.features)[:6], list(corpus.state_names), list(corpus.split)]
        found[f"{normalise}, names"] = [list(corpus.utterances), list(corpus.speakers), [list(w) for w in corpus.words]]
    corpus.write_mlf(run.work / "states.mlf")
    found["mlf"] = (run.work / "states.mlf").read_text()
    arrays = {f"u{k}": corpus.features[k][:20] for k in range(3)}
    for text in (False, True):
        public("write_ark")(run.work / "a.ark", arrays, scp=run.work / "a.scp", text=text)
        found[f"ark {text}"] = [(run.work / "a.ark").read_bytes(), public("read_ark")(run.work / "a.ark")]
    script = public("open_scp")(run.work / "a.scp")
    found["scp"] = {name: script[name] for name in script}
    return found


@case
def alignments(run: Run) -> Any:
    """Phones aligned from their times and from a flat start."""
    align, boundary_errors, Segment = public("align"), public("boundary_errors"), public("Segment")
    rows = [public("with_differences")(public("mfcc")(samples.astype(np.float32))) for _, samples, _ in utterances()]
    timed = []
    for _, _, phones in utterances():
        starts = [0, *(end for _, end in phones)]
        timed.append([Segment(a / RATE, b / RATE, p) for a, (p, b) in zip(starts, phones, strict=False)])
    names, found = [[phone for phone, _ in phones] for _, _, phones in utterances()], {}
    ways = {"timed": (timed, {}), "flat": (names, {"mixtures": 2}), "part": (timed, {"train": range(20)})}
    for name, (transcripts, how) in ways.items():
        done = align(rows, transcripts, list(TONES), **how)
        found[name] = [[one.labels, one.starts, one.score] for one in done], boundary_errors(done, timed)
    return found


# ---------------------------------------------------------------- recognition


def tokens(found: Any) -> list[Any]:
    return [[token.name, token.start, token.end, token.confidence] for token in found]


def update(found: Any) -> list[Any]:
    return [tokens(found.final), tokens(found.partial), found.pause, found.text, found.stable, found.seconds]


def streamed(made: Any, samples: Any, **how: Any) -> Iterator[Any]:
    """What a stream says after each piece of sound."""
    stream = made.stream(**{"rate": RATE, **how})
    for piece in np.array_split(samples, 7):
        yield update(stream.push(piece))
    yield update(stream.finish())


def transcribed(made: Any, samples: Any, **how: Any) -> Any:
    found = made.recognize(samples, **{"rate": RATE, **how})
    return [found.text, tokens(found.phones), None if found.words is None else tokens(found.words), found.seconds]


def transcriptions(made: Any, run: Run) -> dict[str, Any]:
    """All that a recogniser says about four new utterances."""
    spoken = {f"u{k}": samples for k, (_, samples, _) in enumerate(utterances(4, seed=1))}
    first, together = spoken["u0"], np.concatenate([*spoken.values(), np.zeros(RATE, np.int16), *spoken.values()])
    inputs = {name: made.inputs(samples, rate=RATE) for name, samples in spoken.items()}
    found: dict[str, Any] = {"facts": repr(made)}
    for name, how in {
        "words": {},
        "phones": {"words": False},
        "confidences": {"confidences": True},
        "pauses": {"pause": 0.2},
        "rate": {"rate": 8000},
    }.items():
        found[name] = [transcribed(made, samples, **how) for samples in spoken.values()]
    found["floats"] = transcribed(made, first / np.float32(32768), full_scale=1.0)
    found["nbest"] = [made.nbest(inputs["u0"], 5), made.nbest(inputs["u0"], 5, words=False)]
    found["probabilities"] = made.probabilities(list(inputs.values()))
    found["stream"] = list(streamed(made, first))
    found["long stream"] = list(streamed(made, together, pause=0.3))
    found["stream without pauses"] = list(streamed(made, together, pause=None, words=False))
    few = made.with_word_list(["NO", "SO"])
    found["few words"] = [few.recognize(samples, rate=RATE).text for samples in spoken.values()]
    results = [one.as_result(name) for name, one in made.recognize_all(inputs, confidences=True).items()]
    for kind in ("ctm", "json", "mlf", "stm", "textgrid"):
        written = public("write_results")(run.work / f"results {kind}", results, kind)
        found[kind] = [path.read_text() for path in written]
    return found


@case
def recognition(run: Run) -> Any:
    """A recogniser: its file, that of the first commit, and what both recognise."""
    made, path = recognizer(run), run.work / "recogniser.safetensors"
    made.save(path)
    loaded = public("load_recognizer")(run.handed(path))
    loaded.save(run.work / "again.safetensors")
    files = [arrays_of(path), arrays_of(run.work / "again.safetensors")]
    return files, transcriptions(made, run), [transcribed(loaded, samples) for _, samples, _ in utterances(4, seed=1)]


@case
def recognition_by_other_networks(run: Run) -> Any:
    """Recognisers with learned, bidirectional and deep networks, and one of phones without words."""
    corpus = opened(run)
    X, y = corpus.part("train")
    states, found = [np.array(corpus.state_names)[one] for one in y], {}
    short = {"hidden_units": 15, "epochs": 2}
    networks = {
        "learned": new("ESNClassifier", **short),
        "both ways": new("ESNClassifier", **short, bidirectional=True),
        "deep": new("DeepESNClassifier", units=16, layers=2, epochs=5),
    }
    for name, network in networks.items():
        made = public("learn_recognizer")(network.fit(X, states), corpus, order=3)
        made.save(run.work / "made.safetensors")
        found[name] = [arrays_of(run.work / "made.safetensors"), transcribed(made, utterances(4, seed=1)[1][1])]
        found[f"{name}, stream"] = refusal(lambda made=made: list(streamed(made, utterances()[0][1])), ValueError)
    return found


@case
def exports_of_recognition(run: Run) -> Any:
    """The network of a recogniser as a header in C, with the features of sound, as ONNX and as a page."""
    made, found = recognizer(run), {}
    for numbers in (None, "float64", "int16", "int8"):
        found[f"header {numbers}"] = exported(made, run.work / "toy.h", numbers=numbers, name="toy")
    for step in (False, True):
        found[f"onnx {step}"] = exported(made, run.work / "toy.onnx", step=step)
    page = exported(made, run.work / "toy.html")
    return found, page if isinstance(page, str) else [
        text.split('id="payload">')[1].split("</script>")[0] for text in page.values()
    ]


@case
def language_models(run: Run) -> Any:
    """N-grams of words, their ARPA files, and what words other models and lexica make of the same sound."""
    estimate, write_arpa, read_arpa = public("estimate"), public("write_arpa"), public("read_arpa")
    said, found = [words for words, _, _ in utterances()], {}
    for order in (1, 2, 3):
        model = estimate(said, order=order, vocabulary=["MAYBE"])
        write_arpa(run.work / "words.arpa", model)
        found[str(order)] = [
            (run.work / "words.arpa").read_text(),
            [model.log_probability(words) for words in said[:5]],
        ]
        again = read_arpa(run.work / "words.arpa")
        found[f"{order}, read"] = [again.log_probability(words) for words in said[:5]]
        other = recognizer(run).with_words(language_model=again)
        found[f"{order}, recognised"] = [transcribed(other, samples) for _, samples, _ in utterances(4, seed=1)]
    return found


@case
def scores_of_recognition(run: Run) -> Any:
    """Counts, intervals and the comparison of two systems."""
    rng, truth = np.random.default_rng(0), {f"u{k}": list(words) for k, (words, _, _) in enumerate(utterances())}
    systems: list[Any] = []
    for share in (0.2, 0.4):
        guess = {}
        for name, words in truth.items():
            kept = [word if rng.random() > share else "SO" for word in words if rng.random() > share / 2]
            guess[name] = kept + ["NO"] * int(rng.random() < share)
        speakers = {name: f"s{k % 5}" for k, name in enumerate(truth)}
        systems.append(public("evaluate")(truth, guess, speakers=speakers, ignore=["YES"] if share == 0.4 else ()))
    found = [
        [list(s.total), s.total.error_rate, list(s.interval()), {n: list(c) for n, c in s.by_speaker().items()}]
        for s in systems
    ]
    return (
        found,
        [{n: list(c) for n, c in s.by_token().items()} for s in systems],
        list(public("matched_pairs")(*systems)),
    )

"""The arrays and facts of a recogniser's file, and a recogniser's parts from them (docs/reference/model_file.md).

Decoding graphs are not stored: they are built from the phones, n-grams and lexicon, which can be checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from echolearn.modelfile.layout import Entry, Facts
from echolearn.modelfile.schema import NETWORK, check_contents
from echolearn.modelfile.values import as_count, as_words
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._phone_set import split_state
from echolearn.speech.recognition._decoder import DecodingWeights, PhoneTask, WordTask
from echolearn.speech.recognition._lexicon import Lexicon
from echolearn.speech.recognition._ngrams import NGramModel
from echolearn.speech.recognition._phone_models import PhoneModel
from echolearn.validation import Array

_ARRAY_TYPES = {
    "priors": "F64", "phones.labels": "I64", "phones.entry": "F64", "phones.leaving": "F64", "phones.next": "F64",
    "lexicon.words": "U8", "lexicon.word": "I64", "lexicon.length": "I64", "lexicon.phone": "I64",
    "recipe.mean": "F64", "recipe.deviation": "F64",
}  # fmt: skip
_NGRAM_ARRAY = re.compile(r"(?:phones|words)\.ngrams\.(?:(?P<text>tokens)|\d(?:\.(?:probability|backoff))?)")
MAX_NGRAM_ORDER = 9


def task_parts(phones: PhoneTask, words: WordTask | None, recipe: FeatureRecipe) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts of all that a recogniser knows beside its network."""
    tensors = {"priors": phones.priors, **_phone_tensors(phones), **_gram_tensors("phones", phones.language_model)}
    facts: Facts = {
        "states": list(phones.states),
        "phones": [[phone.name, len(phone.labels)] for phone in phones.phones],
        "phone_order": phones.language_model.order,
        "phone_weights": _floats(phones.weights),
        "recipe": {name: value for name, value in recipe.facts().items() if name != "scale"},
    }
    if words is not None:
        tensors |= {
            **_lexicon_tensors(words.lexicon, phones.phone_names),
            **_gram_tensors("words", words.language_model),
        }
        facts |= {"word_order": words.language_model.order, "word_weights": _floats(words.weights)}
    if recipe.scale is not None:
        tensors |= {"recipe.mean": recipe.scale[0], "recipe.deviation": recipe.scale[1]}
    return tensors, facts


def check_arrays(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those that a recogniser has, and its network is complete."""
    network: dict[str, Entry] = {}
    for name, entry in entries.items():
        grams = _NGRAM_ARRAY.fullmatch(name)
        if name.startswith(f"{NETWORK}/"):
            network[name.removeprefix(f"{NETWORK}/")] = entry
            continue
        if grams is not None:
            expected = "U8" if grams["text"] else ("F64" if name.endswith(("probability", "backoff")) else "I64")
        elif name in _ARRAY_TYPES:
            expected = _ARRAY_TYPES[name]
        else:
            raise ValueError(f"it holds arrays that no recogniser has: {name!r:.40}")
        if entry.dtype != expected:
            raise ValueError(f"{name} holds {entry.dtype}; expected {expected}")
    if not isinstance(facts[NETWORK], dict):
        raise ValueError("a recogniser without a network")
    check_contents(network, facts[NETWORK])


def restore_tasks(tensors: Mapping[str, Array], facts: Facts) -> tuple[PhoneTask, WordTask | None, FeatureRecipe]:
    """Return what `task_parts` was given; raise an error of the usual kinds where something does not fit."""
    states = tuple(as_words(facts["states"]))
    if len(set(states)) != len(states):
        raise ValueError("two states have the same name")
    priors = tensors["priors"]
    if priors.shape != (len(states),) or not (priors > 0).all() or not math.isclose(priors.sum(), 1, abs_tol=1e-6):
        raise ValueError("the priors are not the shares of the states")
    phones = PhoneTask(
        states,
        _phones(tensors, facts["phones"], states),
        _grams("phones", tensors, facts["phone_order"]),
        priors,
        _weights(facts["phone_weights"]),
    )
    words = None
    if "word_order" in facts:
        lexicon = _lexicon(tensors, phones.phone_names)
        words = WordTask(lexicon, _grams("words", tensors, facts["word_order"]), _weights(facts["word_weights"]))
    scale = [tensors[name] for name in ("recipe.mean", "recipe.deviation") if name in tensors]
    recipe = FeatureRecipe.from_facts(facts["recipe"] | ({"scale": scale} if scale else {}))
    return phones, words, recipe


def _phone_tensors(task: PhoneTask) -> dict[str, Array]:
    """Return the phone models, one row per state; rows of `next` are filled with zeros to the longest."""
    widest = max(len(phone.labels) for phone in task.phones) + 1
    moves = [np.pad(phone.next, ((0, 0), (0, widest - phone.next.shape[1]))) for phone in task.phones]
    return {
        "phones.labels": np.concatenate([phone.labels for phone in task.phones]).astype(np.int64),
        "phones.entry": np.concatenate([phone.entry for phone in task.phones]),
        "phones.leaving": np.concatenate([phone.leaving for phone in task.phones]),
        "phones.next": np.concatenate(moves),
    }


def _phones(tensors: Mapping[str, Array], listed: object, states: Sequence[str]) -> tuple[PhoneModel, ...]:
    """Return the phone models."""
    if not isinstance(listed, list) or not listed:
        raise ValueError("there are no phones")
    names, sizes = as_words([name for name, _ in listed]), [as_count(size) for _, size in listed]
    labels, entry, leaving, moves = (tensors[f"phones.{part}"] for part in ("labels", "entry", "leaving", "next"))
    if not len(set(names)) == len(names) or not sum(sizes) == len(labels) == len(entry) == len(leaving) == len(moves):
        raise ValueError("the phones and their states do not fit together")
    if leaving.ndim != 2 or moves.ndim != 2 or not leaving.shape[1] or moves.shape[1] <= max(sizes):
        raise ValueError("the durations of the phones have another shape")
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(states):
        raise ValueError("a phone has an unknown state")
    if not ((leaving > 0) & (leaving < 1)).all() or not _are_shares(moves):
        raise ValueError("the durations of the phones are not probabilities")
    models: list[PhoneModel] = []
    start = 0
    for name, size in zip(names, sizes, strict=True):
        rows = slice(start, start + size)
        start += size
        model = PhoneModel(name, tuple(labels[rows].tolist()), entry[rows], leaving[rows], moves[rows, : size + 1])
        if any(split_state(states[label])[0] != name for label in model.labels) or moves[rows, size + 1 :].any():
            raise ValueError(f"the states of {name!r:.40} belong to another phone")
        if not _are_shares(model.entry[None]) or np.tril(model.next).any():
            raise ValueError(f"{name!r:.40} is not a phone from left to right")
        models.append(model)
    return tuple(models)


def _are_shares(rows: Array) -> bool:
    """Return whether all rows are probabilities."""
    return bool((rows >= 0).all()) and bool(np.allclose(rows.sum(axis=1), 1, atol=1e-6))


def _gram_tensors(kind: str, model: NGramModel) -> dict[str, Array]:
    """Return the n-grams of each order as rows of indices; NaN for a history without a back-off weight."""
    tokens = sorted({token for gram in model.probability for token in gram})
    index = {token: k for k, token in enumerate(tokens)}
    tensors: dict[str, Array] = {f"{kind}.ngrams.tokens": _text(tokens)}
    for order in range(1, model.order + 1):
        grams = sorted(gram for gram in model.probability if len(gram) == order)
        rows = [[index[token] for token in gram] for gram in grams]
        tensors |= {
            f"{kind}.ngrams.{order}": np.array(rows, dtype=np.int64).reshape(-1, order),
            f"{kind}.ngrams.{order}.probability": np.array([model.probability[gram] for gram in grams], dtype=float),
            f"{kind}.ngrams.{order}.backoff": np.array(
                [model.backoff.get(gram, np.nan) for gram in grams], dtype=float
            ),
        }
    lost = [gram for gram in model.backoff if gram not in model.probability]
    if lost:
        raise ValueError(f"the language model has a back-off weight for {lost[0]}, which is not one of its n-grams")
    return tensors


def _grams(kind: str, tensors: Mapping[str, Array], order: object) -> NGramModel:
    """Return a language model."""
    if as_count(order) > MAX_NGRAM_ORDER:
        raise ValueError(f"n-grams of order {order}")
    assert isinstance(order, int)
    tokens = _texts(tensors[f"{kind}.ngrams.tokens"])
    probability: dict[tuple[str, ...], float] = {}
    backoff: dict[tuple[str, ...], float] = {}
    for n in range(1, order + 1):
        name = f"{kind}.ngrams.{n}"
        rows, scores, weights = tensors[name], tensors[f"{name}.probability"], tensors[f"{name}.backoff"]
        if rows.ndim != 2 or rows.shape[1] != n or not scores.shape == weights.shape == rows.shape[:1]:
            raise ValueError(f"{name} has shape {rows.shape}")
        if rows.size and not 0 <= rows.min() <= rows.max() < len(tokens):
            raise ValueError(f"{name} has an unknown token")
        if not (scores <= 1e-6).all() or (weights == np.inf).any():
            raise ValueError(f"{name} has numbers that are not logarithms of probabilities")
        for row, score, weight in zip(rows.tolist(), scores.tolist(), weights.tolist(), strict=True):
            gram = tuple(tokens[k] for k in row)
            if gram in probability or (n > 1 and (gram[:-1] not in probability or gram[-1:] not in probability)):
                raise ValueError(f"{name} has {gram!r:.60} twice, or without its history")
            probability[gram] = score
            if not math.isnan(weight):
                backoff[gram] = weight
    if not probability:
        raise ValueError(f"{kind} have no n-grams")
    return NGramModel(order, probability, backoff)


def _lexicon_tensors(lexicon: Lexicon, phones: Sequence[str]) -> dict[str, Array]:
    """Return the pronunciations one after another, as indices of words and phones."""
    index, words = {phone: k for k, phone in enumerate(phones)}, lexicon.words
    every = [(k, variant) for k, word in enumerate(words) for variant in lexicon.pronunciations[word]]
    return {
        "lexicon.words": _text(words),
        "lexicon.word": np.array([k for k, _ in every], dtype=np.int64),
        "lexicon.length": np.array([len(variant) for _, variant in every], dtype=np.int64),
        "lexicon.phone": np.array([index[phone] for _, variant in every for phone in variant], dtype=np.int64),
    }


def _lexicon(tensors: Mapping[str, Array], phones: Sequence[str]) -> Lexicon:
    """Return the pronunciations."""
    words = _texts(tensors["lexicon.words"])
    word, length, phone = (tensors[f"lexicon.{part}"] for part in ("word", "length", "phone"))
    if not word.ndim == length.ndim == phone.ndim == 1 or len(word) != len(length) or length.sum() != len(phone):
        raise ValueError("the pronunciations do not fit together")
    if not len(word) or (length < 1).any() or not 0 <= phone.min() <= phone.max() < len(phones):
        raise ValueError("a pronunciation is empty or has an unknown phone")
    if set(word.tolist()) != set(range(len(words))):
        raise ValueError("a word has no pronunciation, or a pronunciation no word")
    pronunciations: dict[str, list[tuple[str, ...]]] = {name: [] for name in words}
    ends = np.cumsum(length).tolist()
    for k, size, end in zip(word.tolist(), length.tolist(), ends, strict=True):
        pronunciations[words[k]].append(tuple(phones[p] for p in phone[end - size : end].tolist()))
    return Lexicon({name: tuple(variants) for name, variants in pronunciations.items()})


def _floats(weights: DecodingWeights) -> dict[str, float]:
    return {name: float(value) for name, value in asdict(weights).items()}


def _weights(known: object) -> DecodingWeights:
    """Return the weights of a decoder."""
    names = set(asdict(DecodingWeights()))
    if not isinstance(known, dict) or set(known) != names:
        raise ValueError(f"{known!r:.60} are not the weights of a decoder")
    for name, value in known.items():
        if type(value) is not float or math.isnan(value) or (math.isinf(value) and (name, value) != ("beam", math.inf)):
            raise ValueError(f"{name}={value!r:.40} is not a weight of a decoder")
    if known["beam"] <= 0:
        raise ValueError(f"beam={known['beam']}")
    return DecodingWeights(**known)


def _text(names: Sequence[str]) -> Array:
    """Return names as bytes, one per line."""
    if any("\n" in name for name in names):
        raise ValueError("a name contains a line break, which a file cannot hold")
    return np.frombuffer("\n".join(names).encode(), dtype=np.uint8)


def _texts(value: Array) -> list[str]:
    names = value.tobytes().decode().split("\n")
    if len(set(names)) != len(names) or not all(names):
        raise ValueError("a name is empty or listed twice")
    return names

"""The choice of a decoder's weights and of the scale of confidences, whose measures are worked out by hand."""

import json
import math

import numpy as np
import pytest

from echolearn.speech import Evaluation
from echolearn.speech._phone_set import timit_map
from echolearn.speech.recognition import estimate
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights, learn_phone_task
from echolearn.speech.recognition._graph import phone_graph
from echolearn.speech.recognition._phone_models import spoken_phones
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._tuning import (
    CONFIDENCE_SCALES,
    WEIGHT_CHOICES,
    Trials,
    calibrate,
    confidence_quality,
    evaluate_phones,
    tune,
    tune_phones,
)
from speech.recognition.test_decoder import LEXICON, NAMES, labels_of, models, word_decoder

STATES = ["sil_s2", "k_s2", "k_s3", "ae_s2", "ae_s3", "t_s2"]


def utterance(rng, phones=("sil", "k", "ae", "t", "sil")):
    states = {"sil": [0], "k": [1, 2], "ae": [3, 4], "t": [5]}
    return np.repeat([s for p in phones for s in states[p]], 3 + rng.integers(0, 3)).astype(np.int64)


@pytest.fixture
def speech():
    rng = np.random.default_rng(0)
    train = [utterance(rng, ("sil", *rng.permutation(["k", "ae", "t"]), "sil")) for _ in range(40)]
    valid = {f"u{k}": utterance(rng, ("sil", *rng.permutation(["k", "ae", "t"]), "sil")) for k in range(6)}
    noisy = {}
    for name, y in valid.items():
        scores = 2.0 * np.eye(len(STATES))[y] + rng.normal(size=(len(y), len(STATES)))
        noisy[name] = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return train, valid, noisy


def test_phones_are_found_in_clean_probabilities(speech):
    train, valid, _ = speech
    decoder = learn_phone_task(train, STATES).decoder()
    for y in valid.values():
        tokens = decoder.decode(np.maximum(np.eye(len(STATES))[y], 1e-4))
        assert [t.name for t in tokens] == spoken_phones(y, STATES)


def test_priors_and_durations_come_from_the_training_labels(speech):
    train, _, _ = speech
    decoder = learn_phone_task(train, STATES).decoder()
    counts = np.bincount(np.concatenate(train), minlength=len(STATES)) + 1
    np.testing.assert_allclose(decoder.priors, counts / counts.sum())
    assert decoder.graph.tokens == ("sil", "k", "ae", "t")


def test_tuned_weights_are_no_worse_than_those_it_began_with(speech):
    train, valid, noisy = speech
    references = {name: spoken_phones(y, STATES) for name, y in valid.items()}
    decoder = learn_phone_task(train, STATES).decoder()

    def error(d):
        return evaluate_phones(references, {n: d.decode(P) for n, P in noisy.items()}).total.error_rate

    tuned, found = tune_phones(decoder, references, noisy)
    assert found == error(tuned) <= error(decoder)


def test_silences_do_not_count_and_classes_are_folded_before_they_are_compared():
    recognised = {"u": [Token("h#", 0, 3), Token("ix", 3, 6), Token("zh", 6, 9)]}
    spoken = {"u": ["ih", "sh", "h#"]}
    assert evaluate_phones(spoken, recognised).total.errors == 2
    assert evaluate_phones(spoken, recognised, phone_map=timit_map(39)).total.errors == 0


def tokens(*pairs):
    return [Token(name, k, k + 1, value) for k, (name, value) in enumerate(pairs)]


def test_the_measures_of_a_case_worked_out_by_hand():
    recognised = {"u": tokens(("a", 0.8), ("x", 0.8), ("c", 0.6)), "v": tokens(("sil", 0.1), ("b", 0.9), ("c", 0.2))}
    found = confidence_quality({"u": ["a", "b", "c"], "v": ["b", "sil"]}, recognised)
    # right 0.8, 0.6, 0.9; wrong 0.8 and the insertion 0.2: of 6 pairs, 4 in order and one equal
    assert found[:3] == (3, 2, 4.5 / 6)
    entropy = -3 * math.log2(0.6) - 2 * math.log2(0.4)
    bits = math.log2(0.8) + math.log2(0.6) + math.log2(0.9) + math.log2(0.2) + math.log2(0.8)
    assert found.cross_entropy == pytest.approx((entropy + bits) / entropy)


def test_confidences_equal_to_the_share_of_right_tokens_say_nothing():
    found = confidence_quality({"u": ["a", "b"]}, {"u": tokens(("a", 0.5), ("x", 0.5))})
    assert found.roc_area == 0.5
    assert found.cross_entropy == pytest.approx(0.0)


def test_sure_and_wrong_is_bad_but_finite():
    found = confidence_quality({"u": ["a", "b"]}, {"u": tokens(("a", 0.0), ("x", 1.0))})
    assert -10 < found.cross_entropy < -5


def test_without_errors_there_is_nothing_to_measure():
    found = confidence_quality({"u": ["a"]}, {"u": tokens(("a", 0.5))})
    assert math.isnan(found.roc_area)
    assert math.isnan(found.cross_entropy)


def test_tokens_without_confidence_are_reported():
    with pytest.raises(ValueError, match="confidences=True"):
        confidence_quality({"u": ["a"]}, {"u": [Token("a", 0, 1)]})


def noisy(rng, words):
    labels = np.concatenate([labels_of(LEXICON.pronunciations[word][0]) for word in words])
    scores = rng.normal(size=(len(labels), len(NAMES))) * 1.5
    scores[np.arange(len(labels)), labels] += 1.5
    P = np.exp(scores)
    return P / P.sum(axis=1, keepdims=True)


def test_the_scale_of_the_largest_cross_entropy_is_chosen():
    rng = np.random.default_rng(0)
    spoken = {str(k): [str(word) for word in rng.choice(list(LEXICON.words), size=4)] for k in range(15)}
    probabilities = {name: noisy(rng, words) for name, words in spoken.items()}
    decoder = word_decoder(1)
    chosen, quality = calibrate(decoder, spoken, probabilities)
    found = {}
    lattices = {name: decoder.lattice(P) for name, P in probabilities.items()}
    for scale in (*CONFIDENCE_SCALES, decoder.weights.confidence_scale):
        recognised = {name: lattice.confidences(lattice.best, scale) for name, lattice in lattices.items()}
        found[scale] = confidence_quality(spoken, recognised)
    best = max(found, key=lambda scale: found[scale].cross_entropy)
    assert quality == found[best]
    assert chosen.weights.confidence_scale == best
    assert quality.wrong >= 5
    assert quality.roc_area > 0.6
    again = {name: chosen.decode(P, confidences=True) for name, P in probabilities.items()}
    assert confidence_quality(spoken, again) == quality


def test_a_scale_needs_utterances_with_references():
    with pytest.raises(ValueError, match="no utterance"):
        calibrate(word_decoder(1), {}, {})
    with pytest.raises(ValueError, match="no reference: u"):
        calibrate(word_decoder(1), {}, {"u": np.zeros((1, len(NAMES)))})


class Watched(Decoder):
    """A decoder that recognises its own weights."""

    def decode(self, probabilities):
        return [self.weights]


def tuned_by(errors, utterances):
    """Return what `tune` finds if errors(weights) is the list of the errors of utterances with one token each."""
    graph = phone_graph(models(), estimate([["sil", "n", "ow", "sil"]]))
    tried = []

    def evaluated(recognised):
        (weights,) = next(iter(recognised.values())) or (DecodingWeights(),)
        tried.append(weights)
        pairs = {str(k): [("a", "a")] + count * [(None, "a")] for k, count in enumerate(errors(weights))}
        return Evaluation(pairs, {})

    nothing = {str(k): np.zeros((1, len(NAMES))) for k in range(utterances)}
    best, error = tune(Watched(graph, np.full(len(NAMES), 1 / len(NAMES))), evaluated, nothing)
    return best.weights, error, tried


def test_tuning_takes_the_weights_of_the_smallest_error():
    wanted = DecodingWeights(prior_exponent=0.2, language_weight=3.0, duration_weight=0.5, penalty=4.0, beam=60.0)

    def distances(weights):
        """The errors grow with every weight's distance, and when the beam is narrower than 60."""
        steps = [
            abs(values.index(getattr(weights, name)) - values.index(getattr(wanted, name)))
            for name, values in WEIGHT_CHOICES.items()
        ]
        return 9 * [2 + sum(steps) + (weights.beam < 60)]

    best, error, tried = tuned_by(distances, 9)
    assert best == wanted
    assert error == 2
    assert len(tried) < 70


@pytest.mark.parametrize(("better", "worse", "moves"), [(9, 7, False), (4, 0, False), (5, 0, True), (9, 1, True)])
@pytest.mark.parametrize(("name", "lucky"), [("language_weight", 1.0), ("penalty", 16.0), ("duration_weight", 0.25)])
def test_a_weight_is_changed_for_a_gain_beyond_chance_but_not_for_one_lucky_value(name, lucky, better, worse, moves):
    """At one value, some utterances have one error less and some one error more than at all others."""
    lucky_errors = better * [0] + worse * [2] + (20 - better - worse) * [1]
    best, error, _ = tuned_by(lambda weights: lucky_errors if getattr(weights, name) == lucky else 20 * [1], 20)
    assert getattr(best, name) == (lucky if moves else getattr(DecodingWeights(), name))
    assert error == (1 - (better - worse) / 20 if moves else 1)


class Killed(Exception):
    """Ends a search in the middle."""


class Search:
    """A search for the weights of the smallest phone error that counts what it decodes, and may be killed."""

    def __init__(self, speech):
        self.train, valid, self.noisy = speech
        self.references = {name: spoken_phones(y, STATES) for name, y in valid.items()}

    def run(self, record=None, kill_at=None):
        """Return the weights that are found, their error and how many weights were decoded with, each once."""
        decoded = []

        class Counted(Decoder):
            def decode(decoder, P, **how):
                if P is first:
                    if len(decoded) == kill_at:
                        raise Killed
                    decoded.append(decoder.weights)
                return super().decode(P, **how)

        first = next(iter(self.noisy.values()))
        plain = learn_phone_task(self.train, STATES).decoder()
        try:
            best, error = tune_phones(Counted(plain.graph, plain.priors), self.references, self.noisy, record=record)
        finally:
            assert len(set(decoded)) == len(decoded)
            self.count = len(decoded)
        return best.weights, error


@pytest.mark.parametrize("kills", [[0], [1], [17], [3, 9, 2], [30]])
def test_a_search_that_was_stopped_resumes(speech, tmp_path, kills):
    search, record = Search(speech), tmp_path / "decoder.json"
    expected, whole = search.run(), search.count
    for count in kills:
        with pytest.raises(Killed):
            search.run(record, kill_at=count)
    assert search.run(record) == expected
    assert search.count == whole - sum(kills)
    assert [path.name for path in tmp_path.iterdir()] == ["decoder.json"]
    assert search.run(record) == expected
    assert search.count == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[1, 2]",
        lambda text: text.replace('"about": "', '"about": "0'),
        lambda text: json.dumps({**json.loads(text), "errors": {"a": "b"}}),
        lambda text: json.dumps({**json.loads(text), "errors": {"a": 0.5}}),
        lambda text: json.dumps({"about": json.loads(text)["about"]}),
    ],
)
def test_a_record_that_is_damaged_or_of_other_data_is_not_used(speech, tmp_path, damage):
    search, record = Search(speech), tmp_path / "decoder.json"
    expected, whole = search.run(record), search.count
    text = record.read_text()
    record.write_text(damage(text))
    assert search.run(record) == expected
    assert search.count == whole
    assert record.read_text() == text


def test_a_record_belongs_to_decoder_references_and_probabilities(speech, tmp_path):
    train, _, noisy = speech
    record, decoder = tmp_path / "decoder.json", learn_phone_task(train, STATES).decoder()
    other = learn_phone_task(train[:20], STATES).decoder()
    spoken = {name: ["sil"] for name in noisy}
    Trials.of(record, decoder, spoken, noisy).errors_with(DecodingWeights(), lambda: Evaluation({}, {}))
    assert len(Trials.of(record, decoder, dict(spoken), dict(noisy)).errors) == 1
    for made in (
        (other, spoken, noisy),
        (decoder, {**spoken, "u0": ["sil", "k"]}, noisy),
        (decoder, spoken, {**noisy, "u0": noisy["u0"] + 1e-9}),
        (decoder, spoken, noisy, {"k": "t"}),
    ):
        assert not Trials.of(record, *made).errors

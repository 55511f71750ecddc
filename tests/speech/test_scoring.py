"""Scores of recognition: counts by hand, against the edit distance, over speakers, and between systems."""

import itertools

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import TIMIT_61, evaluate, matched_pairs
from echolearn.speech._phone_set import fold, level_map, read_phone_map, timit_map
from echolearn.speech._scoring import Counts, align_tokens, count


def cheapest(reference, hypothesis):
    """Return the smallest cost of turning one into the other, by trying everything."""
    if not reference or not hypothesis:
        return 3 * (len(reference) + len(hypothesis))
    return min(
        cheapest(reference[1:], hypothesis[1:]) + (0 if reference[0] == hypothesis[0] else 4),
        cheapest(reference[1:], hypothesis) + 3,
        cheapest(reference, hypothesis[1:]) + 3,
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_alignment_is_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    reference, hypothesis = (list(rng.choice(list("abc"), rng.integers(0, 7))) for _ in range(2))
    pairs = align_tokens(reference, hypothesis)
    assert [true for true, _ in pairs if true is not None] == reference
    assert [found for _, found in pairs if found is not None] == hypothesis
    counts = count(pairs)
    assert 4 * counts.substitutions + 3 * (counts.deletions + counts.insertions) == cheapest(reference, hypothesis)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a b c", "a b c", Counts(3, 0, 0, 0)),
        ("a b c", "a x c", Counts(2, 1, 0, 0)),
        ("a b c", "a c", Counts(2, 0, 1, 0)),
        ("a c", "a b c", Counts(2, 0, 0, 1)),
        ("a b c", "", Counts(0, 0, 3, 0)),
        ("", "a b", Counts(0, 0, 0, 2)),
        ("", "", Counts(0, 0, 0, 0)),
        # sclite's costs: keeping two right at three deletions and three insertions (18) beats five substitutions (20)
        ("a b c d e", "d e x y z", Counts(2, 0, 3, 3)),
    ],
)
def test_counts_by_hand(reference, hypothesis, expected):
    assert count(align_tokens(reference.split(), hypothesis.split())) == expected


def test_an_empty_reference_has_no_error_rate():
    assert np.isnan(Counts(0, 0, 0, 2).error_rate)


def two_systems():
    names = [f"u{k}" for k in range(30)]
    truth = {name: list("abcdefgh") for name in names}
    speakers = {name: f"s{k % 5}" for k, name in enumerate(names)}
    rng = np.random.default_rng(0)

    def spoiled(share):
        return {n: [t if rng.random() > share else "x" for t in tokens] for n, tokens in truth.items()}

    good, poor = (evaluate(truth, spoiled(share), speakers=speakers) for share in (0.1, 0.4))
    return good, poor


def test_speakers_phones_and_utterances_add_up_to_the_total():
    good, _ = two_systems()
    for table in (good.by_utterance(), good.by_speaker(), good.by_token()):
        assert [sum(column) for column in zip(*table.values(), strict=True)] == list(good.total)
    assert sum(good.confusions().values()) == good.total.errors
    assert list(good.by_speaker()) == ["s0", "s1", "s2", "s3", "s4"]


def test_silences_do_not_count():
    found = evaluate({"u": ["sil", "a", "sil"]}, {"u": ["a", "sil", "b"]}, ignore=["sil"])
    assert found.total == Counts(1, 0, 0, 1)


def test_the_interval_lies_around_the_rate_and_is_wider_for_speakers_who_differ():
    good, _ = two_systems()
    rate, low, high = good.interval()
    assert low < rate < high
    alike = {f"u{k}": ["a", "b"] for k in range(40)}
    halves = {name: ["a", "x"] for name in alike}
    same = evaluate(alike, halves, speakers={name: name[-1] for name in alike}).interval()
    assert (same.low, same.high) == (0.5, 0.5)
    uneven = {name: ["a", "b"] if name[-1] < "5" else ["x", "y"] for name in alike}
    by_speaker = evaluate(alike, uneven, speakers={name: name[-1] for name in alike}).interval()
    by_utterance = evaluate(alike, uneven).interval()
    assert by_speaker.high - by_speaker.low > 1.5 * (by_utterance.high - by_utterance.low)


@pytest.mark.parametrize("speakers", [1, 2, 3, 4, 10])
def test_an_interval_needs_more_draws_than_its_ends_leave_out(speakers):
    true = {f"u{k}": ["a"] * 10 for k in range(3 * speakers)}
    errors = {name: ["x"] * (k % speakers) + ["a"] * (10 - k % speakers) for k, name in enumerate(true)}
    who = {name: str(k % speakers) for k, name in enumerate(true)}
    rate, low, high = evaluate(true, errors, speakers=who).interval()
    if speakers**-speakers > 0.025:  # one speaker alone is drawn more often than 2.5 % of the time
        assert (low, high) == (0.0, float("inf"))
    else:
        assert 0 < low < rate < high < (speakers - 1) / 10


def test_matched_pairs_tell_systems_apart_and_equal_ones_not():
    good, poor = two_systems()
    found = matched_pairs(good, poor)
    assert found.difference == pytest.approx(poor.total.error_rate - good.total.error_rate)
    assert found.statistic > 3
    assert found.p_value < 0.001
    assert matched_pairs(poor, good).statistic == pytest.approx(-found.statistic)
    assert matched_pairs(good, good) == (0.0, 0.0, 1.0)


def test_matched_pairs_by_hand():
    truth = {f"u{k}": ["a"] * 4 for k in range(3)}
    first = evaluate(truth, truth)
    second = evaluate(truth, {f"u{k}": ["a"] * (4 - k) for k in range(3)})
    found = matched_pairs(first, second)  # differences 0, 1, 2: mean 1, deviation 1
    assert found.statistic == pytest.approx(np.sqrt(3))
    assert found.p_value == pytest.approx(0.0833, abs=1e-4)


def test_utterances_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="1 utterances have no hypothesis, the first is 'u'"):
        evaluate({"u": []}, {})
    with pytest.raises(ValueError, match="1 utterances have no reference, the first is 'u'"):
        evaluate({}, {"u": []})
    with pytest.raises(ValueError, match="no speaker"):
        evaluate({"u": []}, {"u": []}, speakers={})
    with pytest.raises(ValueError, match="same utterances"):
        matched_pairs(evaluate({"u": []}, {"u": []}), evaluate({"v": []}, {"v": []}))


def test_folding_gives_the_published_numbers_of_classes():
    for classes in (48, 39):
        folded = timit_map(classes)
        assert set(folded) == set(TIMIT_61)
        assert len({name for name in folded.values() if name is not None}) == classes
        assert folded["q"] is None


def test_39_classes_by_the_groups_of_lee_and_hon():
    groups = [
        *("aa ao", "ah ax ax-h", "er axr", "hh hv", "ih ix", "l el", "m em", "n en nx", "ng eng", "sh zh", "uw ux"),
        "pcl tcl kcl bcl dcl gcl h# pau epi",
    ]
    folded = timit_map(39)
    together = {frozenset(group.split()) for group in groups}
    found = {}
    for phone, name in folded.items():
        if name is not None:
            found.setdefault(name, set()).add(phone)
    assert {frozenset(group) for group in found.values() if len(group) > 1} == together


def test_a_map_from_a_file(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text("# 61 48 39\naa aa aa\nax-h ax ah\nq\n\nzh sh\n")
    phone_map = read_phone_map(path)
    assert phone_map == {"aa": "aa", "ax-h": "ah", "q": None, "zh": "sh"}
    assert fold(["aa", "q", "zh", "zh"], phone_map) == ["aa", "sh", "sh"]
    with pytest.raises(ValueError, match="does not name 'b'"):
        fold(["b"], phone_map)


@pytest.mark.parametrize(
    ("text", "said"), [("a b c d\n", "line 1"), ("a b\na c\n", "line 2: a has a class"), ("", "names no phone")]
)
def test_a_wrong_map_is_refused(tmp_path, text, said):
    path = tmp_path / "map.txt"
    path.write_text(text)
    with pytest.raises(CorpusError, match=said):
        read_phone_map(path)


def test_levels_for_other_phone_lists():
    assert level_map("phone39", ["zh", "ir", "sil"]) == {"zh": "sh", "ir": "ir", "sil": "sil"}
    with pytest.raises(ValueError, match="level is 'phone40'"):
        level_map("phone40", [])
    assert list(itertools.islice(timit_map(48), 2)) == ["aa", "ae"]

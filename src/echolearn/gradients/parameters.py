"""Rules for the parameters that decide which targets and which steps a gradient covers."""

from __future__ import annotations

from echolearn.validation import Rule, any_of, one_of, or_none, whole_number

GRADIENT_RULES: dict[str, Rule] = {
    "washout": whole_number(0),
    "pooling": any_of(
        one_of("mean", "last"),
        whole_number(1),
        expected="'mean', 'last', or a whole number >= 1 (into how many parts time is cut, each with its own mean)",
    ),
    "lookback": or_none(whole_number(1), "the whole sequence"),
    "targets": one_of("all", "last"),
    "gradient": one_of("exact", "printed"),
}

"""Tests of the record of a search in a file."""

import pytest

import toys
from echolearn import ESNClassifier
from echolearn.tuning import tune

X, _ = toys.echoes(sequences=12)
_, LABELS = toys.labels(sequences=12)
FIXED = {**toys.FAST, "hidden_units": 8, "readout": "ridge", "learn": "none"}


def test_a_search_resumes_after_its_last_trial(tmp_path, capsys):
    esn, path = ESNClassifier(**FIXED), tmp_path / "search.sqlite"
    first = tune(esn, X, LABELS, trials=3, storage=path, refit=False)
    more = tune(esn, X, LABELS, trials=5, storage=path, refit=False, verbose=1)
    assert more.trials[:3] == first.trials
    assert len({str(t.settings) for t in more.trials}) == 5  # none proposed twice
    printed = capsys.readouterr().err
    assert "resuming after 3 finished trials" in printed
    assert "trial 5/5  score" in printed
    assert tune(esn, X, LABELS, trials=5, storage=path, refit=False).trials == more.trials


def test_resuming_with_other_data_or_settings_is_refused(tmp_path):
    path = tmp_path / "search.sqlite"
    tune(ESNClassifier(**FIXED), X, LABELS, trials=1, storage=path, refit=False)
    with pytest.raises(ValueError, match="holds another search: data differ"):
        tune(ESNClassifier(**FIXED), [2 * x for x in X], LABELS, storage=path)
    with pytest.raises(ValueError, match="estimator differ"):
        tune(ESNClassifier(**{**FIXED, "direct": False}), X, LABELS, storage=path)
    with pytest.raises(ValueError, match="space"):
        tune(ESNClassifier(**FIXED), X, LABELS, storage=path, space={"leak": [0.05, 1.0]})
    with pytest.raises(ValueError, match="its folder does not exist"):
        tune(ESNClassifier(**FIXED), X, LABELS, storage=tmp_path / "none" / "search.sqlite")

"""What fit and predict accept: forms and types of input, and data that do not fit the network."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import toys
from echolearn import ESNClassifier, ESNRegressor

X, Y = toys.labels(sequences=6)


def fit(X=X, y=Y, **settings):
    how = {k: settings.pop(k) for k in ("lengths", "validation") if k in settings}
    return ESNClassifier(**{**toys.FAST, **settings}).fit(X, y, **how)


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_the_washout_limits_lengths_at_predict_only_where_states_are_pooled():
    esn = fit(washout=5)
    assert esn.predict(X[0][:3]).shape == (3,)
    pooled = fit(X, ["a", "b"] * 3, washout=5)
    with pytest.raises(ValueError, match=r"washout=5, but sequence 0 has 3 steps"):
        pooled.predict([X[0][:3]])


def test_another_number_of_features_is_refused_at_predict(fitted):
    with pytest.raises(ValueError, match=r"X has 3 features, but ESNClassifier is expecting 2 features"):
        fitted.predict(np.ones((5, 3)))


def test_predict_score_and_save_need_a_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().predict(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNRegressor().score(X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().save("nowhere")


def test_validation_labels_that_the_fit_does_not_know_are_refused():
    with pytest.raises(ValueError, match=r"labels that were not there when fitting: \['middle'\]"):
        fit(validation=(X, [np.where(y == "low", "middle", y) for y in Y]))


def test_validation_targets_of_another_kind_are_refused():
    with pytest.raises(ValueError, match=r"validation: its y must be of the same kind as y"):
        fit(validation=(X, ["low"] * 6))


def test_validation_values_of_another_width_are_refused():
    esn = ESNRegressor(**toys.FAST)
    Y2 = toys.echoes(sequences=6)[1]
    with pytest.raises(ValueError, match=r"y has 1 .*expected 2"):
        esn.fit(
            [x[:10] for x in X],
            [y[:10] for y in Y2],
            validation=([x[:10] for x in X], [y[:10, :1] for y in Y2]),
        )


def test_settings_that_need_one_target_per_step_are_refused_without():
    one_each = ["low", "high"] * 3
    with pytest.raises(ValueError, match=r"feedback=True needs one target per step.*Set feedback=False"):
        fit(X, one_each, feedback=True)
    with pytest.raises(ValueError, match=r"targets='last' needs one target per step.*Use targets='all'"):
        fit(X, one_each, targets="last")


UNUSUAL = {
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "Fortran": np.asfortranarray,
    "big-endian": lambda x: x.astype(">f8"),
    "nested lists": lambda x: x.tolist(),
    "data frame": lambda x: pd.DataFrame(x),
    "objects that are numbers": lambda x: x.astype(object),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_arrays_give_the_same_fit_and_are_left_alone(kind, fitted):
    unusual = [UNUSUAL[kind](x.copy()) for x in X]
    before = [np.array(x, dtype=float) for x in unusual]
    other = fit(unusual, Y)
    np.testing.assert_array_equal(other.network_.readout.U, fitted.network_.readout.U)
    for a, b in zip(other.predict(unusual), fitted.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    for old, now in zip(before, unusual, strict=True):
        np.testing.assert_array_equal(old, np.array(now, dtype=float))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "int64", "bool", "float16", ">i4", ">f4"])
def test_every_type_of_number_gives_the_same_fit(dtype):
    whole = [np.abs(3 * x).astype(np.uint8).astype(dtype) for x in X]
    a, b = fit(whole, Y), fit([x.astype(np.float64) for x in whole], Y)
    np.testing.assert_allclose(a.network_.readout.U, b.network_.readout.U, rtol=1e-9)


def test_predictions_come_in_the_form_of_the_input():
    stack = np.stack([x[:12] for x in X])
    labels = np.stack([y[:12] for y in Y])
    esn = fit(stack, labels)
    assert esn.predict(stack).shape == (6, 12)
    assert esn.predict_proba(stack).shape == (6, 12, 2)
    joined = esn.predict(np.concatenate(X), lengths=[len(x) for x in X])
    assert joined.shape == (sum(map(len, X)),)
    assert isinstance(esn.predict(X), list)
    assert isinstance(esn.predict(tuple(X)), list)
    assert esn.predict(X[0]).shape == (len(X[0]),)
    objects = np.empty(6, dtype=object)
    objects[:] = X
    for a, b in zip(esn.predict(objects), esn.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_label_per_sequence_may_come_in_any_list():
    one_each = ["low", "high"] * 3
    for y in (
        one_each,
        tuple(one_each),
        np.array(one_each),
        pd.Series(one_each),
        np.array(one_each, dtype=object),
    ):
        esn = fit(X, y)
        assert not esn.per_step_
        assert esn.predict(X).shape == (6,)
    joined = fit(np.concatenate(X), one_each, lengths=[len(x) for x in X])
    np.testing.assert_array_equal(joined.predict(X), esn.predict(X))

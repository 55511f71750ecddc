"""Which axis of X is time: the table of layouts, what decides, and what follows after the fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from benchmarks.layouts import (
    EQUAL,
    LABELS,
    LAYOUTS,
    RAGGED,
    SINGLE,
    masked,
    padded,
    padded_labels,
    steps_of,
    try_layout,
)
from echolearn import (
    DeepESNClassifier,
    ESNClassifier,
    ESNRegressor,
    FrameWise,
    SeriesClassifier,
    SeriesRegressor,
    load,
)
from echolearn.exceptions import InputWarning, LayoutWarning
from echolearn.sequences.layouts import check_steps, choose_layout, has_padding, steps_there, without_mask
from echolearn.sequences.opening import open_sequences, unpack
from toys import grouped

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none", "readout": "ridge"}
AEON, UCR = np.stack(EQUAL).swapaxes(1, 2), np.stack(SINGLE)[:, :, 0]


def esn(layout="auto"):
    return ESNClassifier(layout=layout, **grouped(SMALL))


def series(layout="auto"):
    return SeriesClassifier(5, layout=layout)


def test_there_are_at_least_forty_layouts_with_names_of_their_own():
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS) >= 40


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_is_read_right_or_refused_with_the_line_that_mends_it(layout):
    seen = try_layout(layout)
    assert (seen.verdict, layout.words in seen.said) == (layout.expected, True), seen
    if layout.like is not None:
        assert issubclass(seen.answer, layout.answer)


def chosen(X, y, *, series, layout="auto", lengths=None):
    """Return the layout that a fit takes, where a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return choose_layout(unpack(X), y, layout, lengths, series=series)


BOTH_LINES = r"Set layout='time_first' or layout='channels_first'\."


# ---------------- What decides: the targets of steps, lengths, shape and padding, and the job of the estimator


@pytest.mark.parametrize("said", ["time_first", "channels_first", "rows"])
@pytest.mark.parametrize("series", [True, False])
def test_what_the_user_says_decides(said, series):
    for X in (AEON, UCR, np.stack(EQUAL), EQUAL, [x.T for x in RAGGED]):
        assert chosen(X, LABELS, series=series, layout=said) == said


def test_targets_of_steps_decide_for_a_network():
    """Time is the axis that is as long as the targets, for one shape and for any lengths, for labels and values."""
    turned = [x.T for x in RAGGED]
    for y in (steps_of(RAGGED), [x[:, 0] for x in RAGGED]):
        assert chosen(RAGGED, y, series=False) == "time_first"
        assert chosen(turned, y, series=False) == "channels_first"
    for y in (np.stack(steps_of(EQUAL)), np.stack(EQUAL)[:, :, :2]):
        assert chosen(np.stack(EQUAL), y, series=False) == "time_first"
        assert chosen(AEON, y, series=False) == "channels_first"


def test_targets_of_series_say_nothing_of_time():
    """Rows of values may be as many as channels or as steps: shapes decide, and where these do not, the user does."""
    for count in (3, 30):
        rows = np.random.default_rng(0).standard_normal((len(EQUAL), count))
        assert chosen(np.stack(EQUAL), rows, series=True) == "time_first"
        with pytest.raises(ValueError, match=BOTH_LINES):
            chosen(AEON, rows, series=True)
    three = np.random.default_rng(0).standard_normal((len(EQUAL), 3))
    plain = SeriesRegressor(5).fit(EQUAL, three)
    turned = SeriesRegressor(5, layout="channels_first").fit(AEON, three)
    np.testing.assert_array_equal(turned.predict(AEON), plain.predict(EQUAL))


@pytest.mark.parametrize("series", [True, False])
def test_the_axis_of_different_lengths_is_time(series):
    assert chosen(RAGGED, LABELS, series=series) == "time_first"
    assert chosen([x.T for x in RAGGED], LABELS, series=series) == "channels_first"
    wide = [np.ones((n, 40)) for n in (5, 6, 7)]  # also where there are more features than steps
    assert chosen(wide, [0, 1, 0], series=series) == "time_first"
    assert chosen([x.T for x in wide], [0, 1, 0], series=series) == "channels_first"


def test_one_step_is_no_time():
    assert chosen(np.ones((6, 1, 5)), LABELS[:6], series=True) == "channels_first"
    assert chosen(np.ones((6, 5, 1)), LABELS[:6], series=True) == "time_first"


def test_at_least_as_many_rows_as_columns_have_time_first():
    for shape in ((6, 9, 8), (6, 9, 9), (6, 9, 2)):
        assert chosen(np.ones(shape), LABELS[:6], series=True) == "time_first"


@pytest.mark.parametrize("many", [np.stack, list])
def test_more_columns_than_rows_are_refused_with_both_lines(many):
    """Whatever the numbers are: smooth along one axis, along the other, or along none."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((12, 3, 30))
    for X in (AEON, noise, np.cumsum(noise, axis=1), np.cumsum(noise, axis=2)):
        with pytest.raises(ValueError, match=rf"3 steps with 30 features, or 30 steps with 3 channels\? {BOTH_LINES}"):
            chosen(many(list(X)), LABELS, series=True)
        for said in ("time_first", "channels_first"):
            assert chosen(many(list(X)), LABELS, series=True, layout=said) == said


def test_both_lines_work():
    time, channels = (SeriesClassifier(5, layout=said).fit(AEON, LABELS) for said in ("time_first", "channels_first"))
    assert (time.n_features_in_, channels.n_features_in_) == (30, 3)
    plain = SeriesClassifier(5).fit(EQUAL, LABELS)
    np.testing.assert_array_equal(channels.predict_proba(AEON), plain.predict_proba(EQUAL))


def test_shape_and_padding_that_agree_decide():
    filled = padded(RAGGED)
    assert filled.shape[1] > filled.shape[2]
    assert chosen(filled, LABELS, series=True) == "time_first"
    assert chosen(filled.swapaxes(1, 2), LABELS, series=True) == "channels_first"


def test_shape_and_padding_that_contradict_each_other_are_refused():
    short = padded([np.random.default_rng(k).standard_normal((n, 9)) for k, n in enumerate((3, 4, 5, 6, 7, 8))])
    for X in (short, short.swapaxes(1, 2)):
        with pytest.raises(ValueError, match=BOTH_LINES):
            chosen(X, LABELS[:6], series=True)
    both = padded(RAGGED).swapaxes(1, 2)
    both[0, -1] = np.nan  # along both axes
    with pytest.raises(ValueError, match=BOTH_LINES):
        chosen(both, LABELS, series=True)


def test_a_network_refuses_targets_of_series_before_it_asks_for_a_layout():
    """The line that helps is the class to use, not a layout."""
    for X in (AEON, np.stack(EQUAL), list(AEON)):
        with pytest.raises(ValueError, match="Use SeriesClassifier for one target per series"):
            ESNClassifier(5).fit(X, LABELS)
    with pytest.raises(ValueError, match="Use SeriesRegressor for one target per series"):
        ESNRegressor(5).fit(AEON, np.random.default_rng(0).standard_normal((len(AEON), 5)))


def test_square_sequences_with_labels_per_step_are_announced():
    square = np.random.default_rng(0).standard_normal((6, 9, 9))
    with pytest.warns(
        LayoutWarning, match=r"time first.*Set layout='time_first' to confirm it, or layout='channels_first'"
    ):
        assert choose_layout(unpack(square), np.zeros((6, 9), int), "auto") == "time_first"
    assert chosen(square[:, :1, :1], np.zeros((6, 1), int), series=False) == "time_first"  # one step each: no question


def test_rows_of_values_that_are_as_long_as_there_are_features_are_no_steps():
    """y (cases, 3) of X (cases, steps, 3): three values per series, not a value per step of three."""
    targets = np.random.default_rng(0).standard_normal((len(EQUAL), 3))
    for y in (targets, targets > 0, (targets > 0).astype(int)):
        assert chosen(np.stack(EQUAL), y, series=False) == "time_first"
    assert chosen(AEON, np.zeros((len(EQUAL), AEON.shape[2])), series=False) == "channels_first"
    assert chosen(np.stack(EQUAL), np.full((len(EQUAL), 3), "a"), series=False) == "channels_first"  # no row of labels


def test_labels_of_other_steps_than_any_axis_decide_nothing():
    """The error says that labels and steps differ, whatever the axes look like."""
    X = [np.cumsum(np.random.default_rng(k).standard_normal((5, 40)), axis=1) for k in range(3)]
    labels = [np.array(["a", "b"] * 10 + ["a"])] * 3
    assert chosen(X, labels, series=False) == "time_first"
    with pytest.raises(ValueError, match=r"y\[0\] has 21 entries, but sequence 0 has 5 steps"):
        ESNClassifier(5).fit(X, labels)
    with pytest.raises(ValueError, match=r"y\[0\] has 21 entries, but sequence 0 has 20 steps"):
        ESNClassifier(5).fit([x.T for x in RAGGED[:3]], labels)
    assert chosen([np.ones((3, 5)), np.ones((4, 6))], [np.array(["a"] * 5), np.array(["a"] * 6)], series=False) == (
        "time_first"  # what has as many columns as labels, but no number of channels in common, is not turned
    )


# ---------------- 2-D arrays: the job of the estimator decides


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (12, 12), (12, 2)])
@pytest.mark.parametrize("kind", ["noise", "smooth along rows", "smooth along columns"])
def test_as_many_targets_as_rows_are_steps_of_a_network_and_series_of_a_series_estimator(shape, kind):
    X = np.random.default_rng(1).standard_normal(shape)
    X = X if kind == "noise" else np.cumsum(X, axis=1 if kind == "smooth along rows" else 0)
    y = np.arange(len(X)) % 2
    for table in (X, X.tolist(), pd.DataFrame(X)):
        assert chosen(table, y, series=False) == "time_first"
        assert chosen(table, y, series=True) == "rows"
    for rows in (np.zeros((len(X), 3)), np.ones((len(X), 2), int)):  # and rows of values or labels
        assert chosen(X, rows, series=True) == "rows"
        assert chosen(X, rows, series=False) == "time_first"


def test_joined_series_with_lengths_are_no_rows():
    joined = np.concatenate(EQUAL)
    assert chosen(joined, LABELS, series=True, lengths=[30] * 12) == "time_first"
    assert chosen(np.ones((12, 5)), [0, 1] * 6, series=True, lengths=[6, 6]) == "time_first"
    found = SeriesClassifier(5).fit(joined, LABELS, lengths=[30] * 12)
    np.testing.assert_array_equal(found.predict(EQUAL), SeriesClassifier(5).fit(EQUAL, LABELS).predict(EQUAL))


def test_as_many_targets_as_columns_are_refused_with_the_line_to_write():
    with pytest.raises(ValueError, match=r"12 entries, but X has 30 rows.*Pass X.T for one series per row"):
        chosen(UCR.T, LABELS, series=True)
    assert chosen(UCR.T.T, LABELS, series=True) == "rows"
    x = EQUAL[0].T
    with pytest.raises(ValueError, match=r"30 entries, but X has 3 rows.*pass X.T, or set layout='channels_first'"):
        chosen(x, [0, 1] * 15, series=False)
    plain = esn().fit(x.T, [0, 1] * 15)
    for other in (esn("channels_first").fit(x, [0, 1] * 15), esn().fit(x.T, [0, 1] * 15)):
        np.testing.assert_array_equal(other.readout_weights_, plain.readout_weights_)


# ---------------- Lists of 1-D arrays


def test_lists_of_one_dimensional_arrays_are_series_of_a_series_estimator():
    noise = list(np.random.default_rng(0).standard_normal((12, 20)))
    frames = list(np.cumsum(np.random.default_rng(0).standard_normal((12, 20)), axis=0))
    for X in (noise, frames, [x[:2] for x in noise], [x[: 5 + i] for i, x in enumerate(noise)]):
        assert chosen(X, LABELS, series=True) == "rows"


def test_a_network_refuses_lists_of_one_dimensional_arrays_with_both_lines():
    """Unless they have different lengths, or an array of targets each: then they are univariate series."""
    X = list(np.random.default_rng(0).standard_normal((12, 20)))
    both = r"12 univariate series, or 12 steps of one sequence\? Use SeriesClassifier or .*, or pass numpy.array\(X\)"
    with pytest.raises(ValueError, match=both):
        chosen(X, LABELS, series=False)
    assert chosen(np.array(X), LABELS, series=False) == "time_first"
    assert chosen(X, [np.arange(20)] * 12, series=False) == "rows"
    assert chosen([x[: 5 + i] for i, x in enumerate(X)], LABELS, series=False) == "rows"


@pytest.mark.parametrize("series", [True, False])
def test_features_in_a_list_or_dictionary_are_refused_with_the_line_that_joins_them(series):
    X, y = list(np.random.default_rng(0).standard_normal((3, 20))), [0, 1] * 10
    with pytest.raises(ValueError, match=r"3 series of 20 steps, and y 20 entries.*numpy.column_stack\(list\(X\)\)"):
        chosen(X, y, series=series)
    with pytest.raises(ValueError, match=r"numpy.column_stack\(list\(X.values\(\)\)\)"):
        chosen(dict(enumerate(X)), y, series=series)


def test_a_dictionary_of_series_is_keyed_by_series():
    X = dict(zip("abcd", np.random.default_rng(0).standard_normal((4, 20)), strict=True))
    for series in (True, False):
        assert chosen(X, dict.fromkeys("abcd", 1), series=series) == "rows"


# ---------------- What follows after the fit


@pytest.mark.parametrize("layout", ["channels_first", "rows"])
def test_predictions_read_as_the_fit_did(layout, tmp_path):
    X = AEON if layout == "channels_first" else UCR
    like = EQUAL if layout == "channels_first" else SINGLE
    fitted, plain = series(layout).fit(X, LABELS), series("time_first").fit(like, LABELS)
    assert (fitted.layout_, plain.layout_) == (layout, "time_first")
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(like))
    np.testing.assert_array_equal(fitted.predict(list(X)), plain.predict(like))
    assert fitted.score(X, LABELS) == plain.score(like, LABELS)
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.layout_ == layout
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    if layout == "rows":
        taken = series().fit(X, LABELS)
        assert taken.layout_ == layout
        np.testing.assert_array_equal(taken.predict(X), fitted.predict(X))


def test_one_case_has_the_layout_of_the_fit():
    fitted = series("channels_first").fit(AEON, LABELS)
    assert fitted.predict(AEON[0]).shape == (1,)
    with pytest.raises(ValueError, match=r"X has 30 features.*expecting 3.*The other axis has 3: pass X.T"):
        fitted.predict(EQUAL[0])
    with pytest.raises(ValueError, match=r"expecting 3.*pass X.transpose\(0, 2, 1\)"):
        fitted.predict(np.stack(EQUAL))
    with pytest.raises(ValueError, match=r"expecting 3.*pass \[x.T for x in X\]"):
        series("time_first").fit(EQUAL, LABELS).predict([x.T for x in EQUAL])
    rows = series("rows").fit(UCR, LABELS)
    assert rows.predict(UCR[:1]).shape == (1,)
    with pytest.raises(ValueError, match=r"pass X\[None, :\]"):
        rows.predict(UCR[0])
    with pytest.raises(ValueError, match=r"one step in each row.*Pass X.T"):
        rows.predict(UCR[:1].T)
    np.testing.assert_array_equal(rows.predict(SINGLE), rows.predict(UCR))
    np.testing.assert_array_equal(rows.predict([x.T for x in SINGLE]), rows.predict(UCR))


def test_series_after_a_fit_to_sequences_of_one_feature():
    fitted = series("time_first").fit(SINGLE, LABELS)
    np.testing.assert_array_equal(fitted.predict([x[:, 0] for x in SINGLE]), fitted.predict(SINGLE))
    with pytest.raises(ValueError, match="X has 30 features"):
        fitted.predict(UCR)


def test_validation_and_partial_fit_have_the_layout_of_the_fit():
    y = np.stack(steps_of(EQUAL))
    plain = esn("time_first").fit(EQUAL, list(y), validation=(EQUAL, list(y))).partial_fit(EQUAL, list(y))
    turned = esn("channels_first").fit(AEON, y, validation=(AEON, y)).partial_fit(AEON, y)
    np.testing.assert_array_equal(plain.readout_weights_, turned.readout_weights_)


def test_answers_per_step_of_channels_first_data_have_time_first():
    steps = [x[:, 0] for x in EQUAL]
    fitted = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(AEON, np.stack(steps))
    assert fitted.layout_ == "channels_first"
    assert fitted.predict(AEON).shape == (len(AEON), AEON.shape[2])
    joined = np.stack([np.stack([s, 2 * s], axis=1) for s in steps])
    assert ESNRegressor(5, learn="none").fit(AEON, joined).predict(AEON).shape == joined.shape


def test_a_deep_network_has_a_layout(tmp_path):
    X, y = AEON, np.where(AEON[:, 0] > 0, "up", "down")
    deep = DeepESNClassifier(6, 2, epochs=10, layout="channels_first").fit(X, y)
    plain = DeepESNClassifier(6, 2, epochs=10).fit(EQUAL, list(y))
    np.testing.assert_array_equal(deep.predict(X), np.stack(plain.predict(EQUAL)))
    assert deep.score(X, y) == plain.score(EQUAL, list(y))
    deep.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), deep.predict(X))


@pytest.mark.parametrize("bad", ["channels", "TIME_FIRST", None, 1])
def test_other_layouts_are_refused(bad):
    with pytest.raises(ValueError, match=r"layout=.*expected one of 'auto', 'time_first', 'channels_first', 'rows'"):
        esn(bad).fit(EQUAL, steps_of(EQUAL))
    with pytest.raises(ValueError, match=r"layout=.*expected one of 'auto', 'time_first', 'channels_first', 'rows'"):
        series(bad).fit(EQUAL, LABELS)


def test_rows_are_for_two_dimensions():
    for X in (np.stack(EQUAL), AEON, EQUAL):
        with pytest.raises(ValueError, match=r"layout='rows' is for univariate series.*shape \("):
            series("rows").fit(X, LABELS)


def test_frame_wise_transformers_and_lists_tell_of_turned_sequences():
    with pytest.warns(LayoutWarning, match=r"of shape \(3, 30\), which were taken as time first.*\[x.T for x in X\]"):
        FrameWise(StandardScaler()).fit(AEON)
    with pytest.raises(ValueError, match=r"different numbers of features.*pass \[x.T for x in X\]"):
        FrameWise(StandardScaler()).fit([x.T for x in RAGGED])


def test_a_layout_warning_is_an_input_warning():
    assert issubclass(LayoutWarning, InputWarning)


# ---------------- Padding


def test_the_last_steps_that_lack_every_feature_are_padding():
    x = np.arange(12.0).reshape(6, 2)
    assert steps_there(x) == 6
    x[5] = np.nan
    assert steps_there(x) == 5
    x[4, 0] = np.nan  # a step with one feature is a step
    x[1] = np.nan  # and one before others is not padding
    assert steps_there(x) == 5
    x[:] = np.nan
    assert steps_there(x) == 0
    assert steps_there(np.ma.masked_array(np.ones((3, 2)), [[0, 0], [1, 1], [1, 1]])) == 1


def test_the_axis_of_padding():
    filled = padded(RAGGED)
    assert has_padding(filled, 1)
    assert not has_padding(filled, 2)
    assert has_padding(filled.swapaxes(1, 2), 2)
    assert not has_padding(np.stack([x[:20] for x in RAGGED]), 1)


def test_nan_inside_a_sequence_is_no_padding():
    filled = padded(RAGGED)
    filled[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        open_sequences(filled)


def test_a_sequence_of_padding_is_refused():
    filled = padded(RAGGED)
    filled[3] = np.nan
    with pytest.raises(ValueError, match="sequence 3 is nothing but padding"):
        open_sequences(filled)


def test_answers_to_padded_data_are_masked():
    filled, labels = padded(RAGGED), padded_labels(RAGGED)
    esn = ESNClassifier(**grouped(SMALL)).fit(filled, labels)
    answer = esn.predict(filled)
    assert answer.shape == labels.shape
    np.testing.assert_array_equal(~answer.mask, ~np.isnan(filled[:, :, 0]))
    plain = ESNClassifier(**grouped(SMALL)).fit(RAGGED, steps_of(RAGGED))
    np.testing.assert_array_equal(answer.compressed(), np.concatenate(plain.predict(RAGGED)))
    assert esn.score(filled, labels) == plain.score(RAGGED, steps_of(RAGGED))
    assert esn.predict_proba(filled).shape == (*labels.shape, 2)


def test_values_behind_the_end_do_not_count():
    y = padded([x[:, :1] for x in RAGGED])[:, :, 0]
    esn = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(masked(RAGGED), y)
    plain = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(RAGGED, [x[:, 0] for x in RAGGED])
    np.testing.assert_array_equal(esn.readout_weights_, plain.readout_weights_)


def test_masked_tails_of_one_sequence_and_of_lists():
    x = np.ma.masked_array(np.ones((5, 2)), np.repeat([0, 0, 0, 1, 1], 2).reshape(5, 2))
    one = open_sequences(x)
    assert one.X[0].shape == (3, 2)
    assert one.in_given_form([np.arange(3)]).mask.tolist() == [False] * 3 + [True] * 2
    both = open_sequences([x, np.ones((4, 2))])
    assert [len(part) for part in both.X] == [3, 4]
    assert [len(part) for part in both.in_given_form([np.arange(3), np.arange(4)])] == [5, 4]


@pytest.mark.parametrize("lengths", [[1, 2], [1, 2, 0], [1, 2, 9], [1.0, 2.0, 3.0], "abc", [[1], [2, 3], [4]]])
def test_lengths_of_padded_sequences_are_checked(lengths):
    with pytest.raises(ValueError, match=r"lengths of a 3-D array .* whole numbers from 1 to 5"):
        check_steps(lengths, 3, 5)


def test_lengths_cut_padded_sequences():
    cut = SeriesClassifier(5).fit(np.nan_to_num(padded(RAGGED)), LABELS, lengths=[len(x) for x in RAGGED])
    plain = SeriesClassifier(5).fit(RAGGED, LABELS)
    np.testing.assert_array_equal(cut.readout_weights_, plain.readout_weights_)


def test_an_empty_mask_is_none():
    assert type(without_mask(np.ma.masked_array([1.0], [False]))) is np.ndarray

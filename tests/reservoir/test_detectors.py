"""Units for whole sequences: what they read, and that no scale of the inputs changes them."""

import numpy as np
import pytest

from echolearn.modelfile.schema import TAPS_PER_UNIT, spacings, tap_delays
from echolearn.readout.summary import delayed
from echolearn.reservoir._detectors import draw_change_detectors, draw_level_detectors
from echolearn.states import harvest

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3))


def test_delays_grow_to_the_length_of_a_sequence():
    assert spacings(100).tolist() == [1, 2, 4, 8]
    assert spacings(2).tolist() == [1]
    assert tap_delays(100).max() == 64
    assert set(np.arange(TAPS_PER_UNIT)) <= set(tap_delays(9).tolist())


def test_detectors_of_changes_do_not_see_a_level():
    delays = tap_delays(60)
    units = draw_change_detectors(delayed(X, delays), delays, 60, 20, np.random.default_rng(1))
    of_feature = units.W.reshape(len(delays), 3, 20).sum(axis=0)
    np.testing.assert_allclose(of_feature, 0, atol=1e-9)
    assert ((np.abs(units.W.reshape(len(delays), 3, 20)) > 0).sum(axis=0) <= TAPS_PER_UNIT).all()


def test_detectors_of_changes_at_one_distance_differ_as_far_as_they_can():
    """Eight rows of nine taps that add up to 0 can be orthogonal."""
    delays, x = tap_delays(60), X[:, :1]
    units = draw_change_detectors(delayed(x, delays), delays, 60, 40, np.random.default_rng(1))
    distances = spacings(60)
    for which, distance in enumerate(distances):
        taps = units.W[np.searchsorted(delays, distance * np.arange(TAPS_PER_UNIT)), which :: len(distances)][:, :8]
        products = taps.T @ taps
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9 * products.max())


def test_the_scale_and_offset_of_features_do_not_matter():
    other = X * [1e-3, 1.0, 1e4] + [5.0, -1e3, 1e5]
    for seed in range(3):
        a, b = (draw_level_detectors(Z, 10, np.random.default_rng(seed)) for Z in (X, other))
        np.testing.assert_allclose(harvest(a, X), harvest(b, other), atol=1e-6)
    delays = tap_delays(60)
    a, b = (draw_change_detectors(delayed(Z, delays), delays, 60, 10, np.random.default_rng(0)) for Z in (X, 7 * X + 3))
    np.testing.assert_allclose(harvest(a, delayed(X, delays)), harvest(b, delayed(7 * X + 3, delays)), atol=1e-6)


def test_a_feature_that_never_changes_is_not_read():
    still = np.column_stack([X[:, 0], np.full(300, 4.0)])
    units = draw_level_detectors(still, 6, np.random.default_rng(0))
    assert (units.W[1] == 0).all()
    assert draw_level_detectors(still, 1, np.random.default_rng(0)).N == 1


@pytest.mark.parametrize("N", [5, 30, 199, 200, 300])
def test_spectral_radii_are_those_of_the_kind(N):
    """All radii are below 1, so that the units forget how a series began."""
    delays = tap_delays(60)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        levels, changes = draw_level_detectors(X, N, rng), draw_change_detectors(delayed(X, delays), delays, 60, N, rng)
        for units, radius in ((levels, 0.9), (changes, 0.5)):
            assert units.backward is None
            found = np.abs(np.linalg.eigvals(units.W_rec.toarray())).max()
            assert found == pytest.approx(radius, rel=0.1 if N >= 200 else 1e-4)

"""The compiled loops of smoothing that have no caller in `smoothing.py`; the others are tested there."""

import numpy as np

from echolearn.forecasting._loops import advance_features


def test_inputs_of_the_network():
    z, expected = np.array([2.0, 3.0, np.nan, 5.0]), np.array([2.0, 2.5, 3.5, 4.0])
    out, past, level = np.empty((4, 3)), np.zeros(2), np.zeros(1)
    advance_features(z, expected, 0, past, level, 0.5, out)
    np.testing.assert_allclose(out[:, 0], [0, 0.5, 0, 1.0])
    np.testing.assert_allclose(out[:, 1], [0, 0, 1.5, 2.0])  # against two steps ago; the gap stands as expected
    np.testing.assert_allclose(out[:, 2], [0, 0.5, 0.5, 1.0])  # level 2, 2.5, 3, 4

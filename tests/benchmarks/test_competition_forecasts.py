"""Forecasts of competition series: which values are known, and that forecasts are made once."""

import numpy as np

import competition_forecasts


def test_before_leaves_the_test_part_out_and_both_parts_draw_the_same_series(tmp_path):
    whole = [np.arange(20.0) + 100 * i for i in range(9)]
    values = {"a_values": np.concatenate(whole), "a_lengths": np.full(9, 20), "a_horizon": np.array(4)}
    np.savez(tmp_path / "a.npz", **values)
    before, test = (competition_forecasts.read_series(tmp_path / "a.npz", "a", part, 5) for part in ("before", "test"))
    assert len(before) == len(test) == 5
    for (known, truth), (longer, last) in zip(before, test, strict=True):
        np.testing.assert_array_equal([*known, *truth], longer)
        assert len(truth) == len(last) == 4
        assert last[0] == longer[-1] + 1
    assert [known[0] for known, _ in before] != sorted(known[0] for known, _ in before)


def test_a_forecast_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(competition_forecasts, "KEPT", tmp_path)
    made = []

    def make():
        made.append(1)
        return [1.0, 2.0], {"seasons": [24]}

    for _ in range(2):
        entry = competition_forecasts.Kept("before", "a").get("echolearn x 0", make)
        assert entry["forecast"] == [1.0, 2.0]
        assert entry["seasons"] == [24]
    assert len(made) == 1

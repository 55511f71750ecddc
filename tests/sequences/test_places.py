"""Where a missing value stands: row, column and sequence, by their names where they have any."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.layouts import IDS, RAGGED, dated, panel
from echolearn.sequences.validation import open_sequences


def with_gap(x, value=np.nan):
    x = np.array(x)
    x[3, 1] = value
    return x


GAPS = [RAGGED[0], RAGGED[1], with_gap(RAGGED[2]), *RAGGED[3:]]
DATES = pd.date_range("2024-01-01", periods=len(RAGGED[0]))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (GAPS, r"Input sequence 2 contains NaN\. The first is in row 3, column 1\. .*missing='carry'"),
        (with_gap(RAGGED[0]), r"Input X contains NaN\. The first is in row 3, column 1\."),
        (with_gap(RAGGED[0], np.inf), r"contains infinity.* The first is in row 3, column 1\."),
        (dict(zip(IDS, GAPS, strict=True)), rf"first is in row 3 of the sequence '{IDS[2]}', column 1\."),
        (panel(GAPS), rf"first is in row 3 \(\w+ 3\) of the sequence '{IDS[2]}', column 'b'\."),
        (dated(with_gap(RAGGED[0]), DATES), r"first is in row 3 \(index 2024-01-04 00:00:00\), column 'b'\."),
        (pd.DataFrame(with_gap(RAGGED[0]), columns=list("abc")), r"first is in row 3, column 'b'\."),
        ([panel(GAPS).loc[name] for name in IDS], r"first is in row 3 \(\w+ 3\), column 'b'\."),
    ],
)
def test_the_first_gap_is_named(X, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        open_sequences(X)

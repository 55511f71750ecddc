"""Sums in a fixed tree of neighbours."""

from functools import reduce
from operator import add

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echolearn.execution.tree_sum import TERMS_PER_NODE, tree_sum


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(-1e6, 1e6), max_size=70))
def test_each_node_adds_its_neighbours_from_left_to_right(values):
    def level_by_level(parts):
        while len(parts) > 1:
            nodes = [parts[start : start + TERMS_PER_NODE] for start in range(0, len(parts), TERMS_PER_NODE)]
            parts = [reduce(add, node) for node in nodes]  # `sum` adds differently from Python 3.12 on
        return parts[0] if parts else None

    assert tree_sum(values) == level_by_level(values)


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(0, 3))
def test_few_partial_sums_wait(count, seed):
    """Terms are taken one at a time, and only one sum per level of the tree stays alive."""
    alive = peak = 0

    class Term:
        def __init__(self, value):
            nonlocal alive, peak
            self.value = value
            alive += 1
            peak = max(peak, alive)

        def __iadd__(self, other):
            self.value += other.value
            return self

        def __del__(self):
            nonlocal alive
            alive -= 1

    values = np.random.default_rng(seed).integers(0, 100, count)
    assert tree_sum(Term(v) for v in values).value == values.sum()
    levels = 1 + int(np.ceil(np.log(count) / np.log(TERMS_PER_NODE)))
    assert peak <= levels + 2

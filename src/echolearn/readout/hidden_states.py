"""The hidden states of a fitted network for given sequences, whole and in their order."""

from __future__ import annotations

import numpy as np

from echolearn.readout.network import Network
from echolearn.readout.observation import ReadoutView, frames_at_once, time_chunks
from echolearn.readout.summary import delayed
from echolearn.sequences.batch import group_sequences, pack, unpack
from echolearn.sequences.dataset import Dataset
from echolearn.states.closed_loop import Start
from echolearn.states.run import run
from echolearn.validation import Array


def hidden_states(network: Network, data: Dataset, start: Start | None = None) -> list[Array]:
    """Return the state after every step, one array (steps, N) per sequence. The targets of the data are not used.

    A network with feedback is fed its own outputs, as in a prediction. start: where each sequence starts; by default,
    in the reservoir's initial state with nothing fed back.
    """
    reservoir, whole, summary = network.reservoir, ReadoutView(), network.view.summary
    fed_back: list[Array] = []
    if reservoir.W_fb is not None:
        fed_back = [network.readout.feed_back(Y) for Y in network.outputs(data, start)]

    def part(data: Dataset, which: Array, fed_back: list[Array], start: Start | None) -> list[Array]:
        found: list[Array] = []
        h0 = y0 = None
        for steps in time_chunks(reservoir, whole, data.lengths[which]):
            X = [data.X[i] if summary is None else delayed(data.X[i], summary.delays) for i in which]
            batch = pack([x[steps] for x in X], data.dtype, fed_back or None)
            if start is not None and not found:
                begin = start.of(batch.order)
                h0, y0 = begin.h.astype(data.dtype), begin.y
            H = run(reservoir, batch, h0, keep_F=False, y0=y0).H
            found.append(H)
            h0 = H[-1:].copy()
        return unpack(batch, found[0]) if len(which) > 1 else [np.concatenate(found)]

    result: list[Array] = [np.empty((0, reservoir.N), data.dtype)] * len(data.X)
    groups = list(group_sequences(data.lengths, frames_at_once(reservoir.N)))
    items = [
        (which, [fed_back[i] for i in which] if fed_back else [], None if start is None else start.of(which))
        for which in groups
    ]
    for which, states in zip(groups, data.map(part, items), strict=True):
        for i, H in zip(which, states, strict=True):
            result[i] = H
    return result

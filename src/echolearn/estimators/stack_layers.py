"""The fitted layers of a stack, and what each passes on to the one above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order
from echolearn.gradients.stacked_network import passed_on
from echolearn.readout.network import Network, apply_readout
from echolearn.readout.observation import frames_at_once
from echolearn.sequences.batch import group_sequences, pack, unpack
from echolearn.sequences.checks import check_finite
from echolearn.states.run import run
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class StackLayer:
    """A fitted layer. scale (n_out,): the factors of the outputs that it passes on; dtype: of its states."""

    network: Network
    scale: Array
    dtype: str


@dataclass(frozen=True)
class Passing:
    """What a layer sees of the one below.

    sees: "output", "output+input" or "output+hidden"; softmax: whether the outputs are passed on as probabilities.
    """

    sees: str
    softmax: bool

    def up(self, layer: StackLayer, X: Sequence[Array], source: Sequence[Array], *, number: int) -> list[Array]:
        """Return what layer `number` passes on, one array per sequence, for its inputs X and those of the stack."""
        reservoir, readout, view = layer.network.reservoir, layer.network.readout, layer.network.view
        dtype = np.dtype(layer.dtype)
        result = list(X)

        def part(which: Array) -> tuple[Array, list[Array]]:
            batch, first = (pack([M[i] for i in which], dtype) for M in (X, source))
            H = run(reservoir, batch, keep_F=False).H
            Y = apply_readout(H, batch.X if view.direct else batch.X[:, :0], readout.U.astype(dtype))
            passed = passed_on(H, Y, first.X, scale=layer.scale, sees=self.sees, softmax=self.softmax)
            return which, unpack(batch, passed)

        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            groups = group_sequences(np.array([len(x) for x in X]), frames_at_once(reservoir.N))
            for which, parts in map_in_order(part, groups):
                for i, passed in zip(which, parts, strict=True):
                    check_finite(passed, f"outputs of layer {number}")
                    result[i] = passed
        return result

    def inputs(self, layers: Sequence[StackLayer], X: Sequence[Array]) -> list[Sequence[Array]]:
        """Return the inputs of every layer, for inputs X of the stack."""
        result = [X]
        for number, layer in enumerate(layers[:-1], 1):
            result.append(self.up(layer, result[-1], X, number=number))
        return result

"""DeepReservoir: the weights of a residual stack of leaky, rotating layers.

    x_t = W_0' input_t + b_0                     the stream of C channels through all layers
    in each layer, with m = C / 2 pairs of units:
        z_t = x_t / rms(x_t)                     normalisation
        h_t = a R(θ) h_{t-1} + (1 - a) W_in' z_t     every pair of states turns by its angle θ and decays by its a
        x_t ← x_t + W_out' relu(h_t + b) + b_out    residual connection
    q_t = relu(x_t / rms(x_t) + c)               what the readout sees

W_rec of a layer consists of 2 x 2 blocks a R(θ), whose eigenvalues a exp(±iθ) are learned themselves. a is the logistic
function of a logit, so that 0 < a < 1 whatever is learned: two initial states approach each other by the factor a at
every step, in every network (echo states).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from echolearn.display.facts import counted, one_line
from echolearn.modelfile.schema import MAX_LOGIT
from echolearn.validation import Array

TURNING_SHARE = 0.5  # of the pairs that are drawn with an angle; the others begin with 0


@dataclass(frozen=True, eq=False)
class DeepReservoir:
    """All weights below the readout, by name.

    W_0 (n_in, C), b_0 (C,), c (C,); of layer l from 1 on: l/W_in (C, C), l/alpha (m,) the logits of a, l/theta (m,),
    l/b (C,), l/W_out (C, C), l/b_out (C,). backward_pairs: of each layer, how many of its last pairs read a sequence
    from its end.
    """

    weights: Mapping[str, Array]
    backward_pairs: int = 0
    W_fb: None = None

    def __repr__(self) -> str:
        return one_line(self, [counted(self.layers, "layer"), counted(self.units, "unit"), counted(self.n_in, "input")])

    @classmethod
    def random(
        cls,
        n_in: int,
        units: int,
        layers: int,
        *,
        leak: tuple[float, float],
        angle: float,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> DeepReservoir:
        """Draw uniform matrices of the variance 1 / (3 rows), leaks 1 - a evenly in logarithm, and angles evenly."""
        m = units // 2

        def matrix(rows: int) -> Array:
            return np.asarray(rng.uniform(-1, 1, (rows, units)) / np.sqrt(rows))

        weights = {"W_0": matrix(n_in), "b_0": np.zeros(units)}
        for layer in range(1, layers + 1):
            a = 1 - np.exp(rng.uniform(np.log(leak[0]), np.log(leak[1]), m))
            turning = rng.random(m) < TURNING_SHARE
            weights |= {
                f"{layer}/W_in": matrix(units),
                f"{layer}/alpha": np.log(a / (1 - a)),
                f"{layer}/theta": np.where(turning, rng.uniform(0, angle, m), 0.0),
                f"{layer}/b": np.zeros(units),
                f"{layer}/W_out": matrix(units),
                f"{layer}/b_out": np.zeros(units),
            }
        return cls(weights | {"c": np.zeros(units)}, m // 2 if bidirectional else 0)

    @property
    def n_in(self) -> int:
        """The number of inputs."""
        return len(self.weights["W_0"])

    @property
    def units(self) -> int:
        """The number of units of each layer, and of channels between them."""
        return len(self.weights["b_0"])

    @cached_property
    def layers(self) -> int:
        """The number of layers."""
        return sum(name.endswith("/W_in") for name in self.weights)

    @property
    def N(self) -> int:
        """The number of states: the units of all layers."""
        return self.layers * self.units

    @property
    def backward(self) -> Array | None:
        """Which states (N,) run backward; None: no one."""
        if not self.backward_pairs:
            return None
        pairs = np.arange(self.units // 2) >= self.units // 2 - self.backward_pairs
        return np.tile(pairs, 2 * self.layers)

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of all matrices."""
        of_layers = (f"{layer}/{name}" for layer in range(1, self.layers + 1) for name in ("W_in", "W_out"))
        return ("W_0", *of_layers)

    def with_weights(self, weights: Mapping[str, Array]) -> DeepReservoir:
        """Return the network with other weights of the same names."""
        return replace(self, weights={name: weights[name] for name in self.weights})


def decay(alpha: Array) -> Array:
    """Return a, the logistic function of its logit, inside its limits."""
    return np.asarray(1 / (1 + np.exp(-np.clip(alpha, -MAX_LOGIT, MAX_LOGIT))))

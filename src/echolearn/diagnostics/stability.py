"""The stability of a reservoir: its linearised step, its Lyapunov exponent, and its echo state property."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.display.facts import brief
from echolearn.display.figures import BLUE, GREY, ORANGE, prepared_axes
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import slope
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences.batch import pack
from echolearn.sequences.opening import open_sequences
from echolearn.states.run import States, run
from echolearn.validation import Array, as_generator, check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def driven_states(reservoir: Reservoir, X: ArrayLike) -> States:
    """Return states H and activities F (steps, N) for one sequence X (steps, n_in), in float64."""
    if reservoir.W_fb is not None:
        raise ValueError(
            "diagnostics drive a reservoir by its inputs alone, and this one has feedback weights. Look at "
            "reservoir.with_weights(W_fb=None), or make y one more input."
        )
    refuse_backward(reservoir)
    sequences = open_sequences(X, n_features=reservoir.n_in)
    if sequences.kind != "one":
        raise ValueError(
            f"X holds {len(sequences.X)} sequences; diagnostics take one, an array (steps, {reservoir.n_in})."
        )
    return run(reservoir, pack(sequences.X, np.float64))


def refuse_backward(reservoir: Reservoir) -> None:
    """Raise ValueError for a reservoir with backward units."""
    if reservoir.backward is not None:
        raise ValueError(
            "diagnostics follow one direction in time, and this reservoir has both. Look at each on its own: "
            "reservoir.subreservoir(~reservoir.backward), reservoir.subreservoir(reservoir.backward)."
        )


@dataclass(frozen=True, eq=False)
class Linearised:
    """The result of `linearised`: the effect of one step of a reservoir on a small disturbance of its state."""

    A: sparse.csr_array  # (N, N): the derivative of eq. 1 by the state, (1 - a) I + a f' W_rec
    __repr__ = brief

    @property
    def radius(self) -> float:
        """The effective spectral radius: the share of a disturbance that a step leaves, in the long run."""
        return spectral_radius_of(self.A)

    @property
    def eigenvalues(self) -> Array:
        """The N eigenvalues of A."""
        return np.asarray(np.linalg.eigvals(self.A.toarray()))

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the eigenvalues in the complex plane, with the unit circle and the circle through the largest."""
        axes = prepared_axes(axes, (4.4, 4.4))
        from matplotlib.patches import Circle

        values, radius = self.eigenvalues, self.radius
        axes.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
        axes.add_patch(Circle((0, 0), radius, fill=False, color=BLUE, linewidth=1, linestyle=":"))
        axes.scatter(values.real, values.imag, s=14, color=BLUE, alpha=0.7, linewidth=0)
        reach = 1.1 * max(1.0, radius)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set(xlabel="real part", ylabel="imaginary part")
        axes.set_title(f"effective spectral radius {radius:.3f}", fontsize=10)
        return axes.figure


def linearised(reservoir: Reservoir, X: ArrayLike | None = None) -> Linearised:
    """Linearise a reservoir around the states that inputs drive it to.

    Parameters
    ----------
    reservoir : Reservoir
        A reservoir whose units all run forward, without feedback.
    X : array of shape (n_steps, n_in) or None, default None
        One sequence of inputs; the result is the mean over its frames. None: the reservoir at rest, with state and
        input 0 (here feedback weights are allowed, and ignored).

    Returns
    -------
    Linearised
        The mean derivative A of the next state with respect to the state, its `radius`, `eigenvalues` and `plot()`.

    Notes
    -----
    Units that are driven away from 0 are flatter, so that the same W_rec forgets faster under strong inputs, and slow
    leaks put eigenvalues near 1. The spectral radius of W_rec alone shows neither.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.diagnostics import linearised
    >>> reservoir = Reservoir.random(1, 50, spectral_radius=0.9, random_state=0)
    >>> round(linearised(reservoir).radius, 3)
    0.9
    >>> strong = np.random.default_rng(0).normal(size=(200, 1)) * 20
    >>> linearised(reservoir, strong).radius < 0.7
    True
    """
    if X is None:
        at_rest = replace(reservoir, W_fb=None, initial_state=None)
        F = driven_states(at_rest, np.zeros((1, reservoir.n_in))).F
    else:
        F = driven_states(reservoir, X).F
    a, mean_slope = reservoir.leak, slope(reservoir.activation, F).mean(axis=0)
    A = sparse.diags_array(1 - a) + sparse.diags_array(a * mean_slope) @ reservoir.W_rec
    return Linearised(sparse.csr_array(A))


@dataclass(frozen=True, eq=False)
class Lyapunov:
    """The result of `lyapunov`: the growth of a disturbance of the state at each step under the same inputs."""

    growth: Array  # log |v_t| / |v_{t-1}| of the disturbance v; minus infinity after it has died out
    washout: int  # the number of first steps that do not count
    __repr__ = brief

    @property
    def exponent(self) -> float:
        """The largest Lyapunov exponent, given the inputs: below 0 the reservoir forgets, above 0 it is chaotic."""
        return float(self.growth[self.washout :].mean())

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the growth at each step after the washout, and its mean so far."""
        axes = prepared_axes(axes)
        counted = self.growth[self.washout :]
        steps = np.arange(self.washout, len(self.growth)) + 1
        with np.errstate(invalid="ignore"):
            running = np.cumsum(counted) / np.arange(1, len(counted) + 1)
        axes.axhline(0, color=GREY, linewidth=1)
        axes.plot(steps, counted, color=BLUE, linewidth=0.5, alpha=0.35, label="each step")
        axes.plot(steps, running, color=ORANGE, linewidth=1.8, label="mean so far")
        axes.set(xlabel="step", ylabel="log growth of a disturbance")
        axes.set_title(f"largest Lyapunov exponent {self.exponent:.3f} per step", fontsize=10)
        axes.legend(frameon=False, fontsize=9)
        return axes.figure


def lyapunov(reservoir: Reservoir, X: ArrayLike, *, washout: int | None = None) -> Lyapunov:
    """Measure the largest Lyapunov exponent of a reservoir that is driven by inputs.

    Parameters
    ----------
    reservoir
        As in `linearised`.
    X : array of shape (n_steps, n_in)
        One sequence of inputs; some hundred steps.
    washout : int or None, default None
        Number of first steps that do not count, in which the disturbance turns to the direction that grows most. None:
        a fifth of the steps.

    Returns
    -------
    Lyapunov
        The `growth` at each step, the `exponent` (its mean after the washout) and `plot()`.

    Notes
    -----
    A tangent vector is carried along the states, v_t = (1 - a) v_{t-1} + a f'(z_t) W_rec v_{t-1}, and brought back to
    length 1 after every step.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.diagnostics import lyapunov
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> linear = Reservoir.random(1, 50, activation="identity", spectral_radius=0.8, random_state=0)
    >>> round(lyapunov(linear, X).exponent, 2)  # log 0.8
    -0.22
    """
    slopes = slope(reservoir.activation, driven_states(reservoir, X).F)
    washout = len(slopes) // 5 if washout is None else check_integer("washout", washout, 0)
    if not 0 <= washout < len(slopes):
        raise ValueError(f"washout={washout} of {len(slopes)} steps leaves nothing; give a longer X.")
    a = reservoir.leak
    v = np.random.default_rng(0).standard_normal(reservoir.N)
    v /= np.linalg.norm(v)
    growth = np.full(len(slopes), -np.inf)  # where v has died out
    for t, s in enumerate(slopes):
        v = (1 - a) * v + a * s * (reservoir.W_rec @ v)
        length = float(np.linalg.norm(v))
        if length == 0:
            break
        growth[t] = np.log(length)
        v /= length
    return Lyapunov(growth, washout)


@dataclass(frozen=True, eq=False)
class Echo:
    """The result of `echo`: the distance of two runs with the same inputs from different initial states."""

    distances: Array  # root mean square difference of the states, before the first step and after each
    __repr__ = brief

    def forgotten_after(self, share: float = 1e-3) -> int | None:
        """Return after how many steps the distance is below a share of the first for good; None: not within these."""
        above = np.flatnonzero(self.distances > share * self.distances[0])
        steps = int(above[-1]) + 1
        return steps if steps < len(self.distances) else None

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the distance at each step, and when the initial state is forgotten."""
        axes, after = prepared_axes(axes), self.forgotten_after()
        axes.semilogy(np.maximum(self.distances, 1e-17), color=BLUE, linewidth=1.8)
        if after is not None:
            axes.axvline(after, color=ORANGE, linewidth=1, linestyle="--")
        axes.set(xlabel="step", ylabel="distance of two runs")
        title = "start not forgotten" if after is None else f"start forgotten after {after} steps"
        axes.set_title(title, fontsize=10)
        return axes.figure


def echo(reservoir: Reservoir, X: ArrayLike, *, random_state: int | np.random.Generator | None = 0) -> Echo:
    """Test the echo state property: runs from two random initial states with the same inputs must converge.

    Parameters
    ----------
    reservoir
        As in `linearised`.
    X
        As in `lyapunov`.
    random_state : int, numpy.random.Generator or None, default 0
        For the two initial states.

    Returns
    -------
    Echo
        The `distances` of the two runs, `forgotten_after()` and `plot()`.

    References
    ----------
    Jaeger, The "echo state" approach to analysing and training recurrent neural networks, GMD report 148 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.diagnostics import echo
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> ring = Reservoir.random(1, 20, topology="ring", spectral_radius=0.5, activation="identity", random_state=0)
    >>> echo(ring, X).forgotten_after()  # 0.5^10 is less than a thousandth
    10
    """
    rng = as_generator(random_state)
    low = 0.0 if reservoir.activation == "sigmoid" else -1.0
    starts = rng.uniform(low, 1, (2, reservoir.N))
    runs = [np.vstack([h0, driven_states(replace(reservoir, initial_state=h0), X).H]) for h0 in starts]
    return Echo(np.sqrt(((runs[0] - runs[1]) ** 2).mean(axis=1)))

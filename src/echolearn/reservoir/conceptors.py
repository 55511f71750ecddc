"""Conceptors: the directions that a reservoir's states occupy while it is driven by one pattern.

C = R (R + aperture^-2 I)^-1 with the correlation matrix R = H'H / n of the states H is a soft projection onto their
directions: along a direction of mean square s its eigenvalue is s / (s + aperture^-2), between 0 and 1. Conceptors obey
rules of logic, and show which of several patterns drives a reservoir.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echolearn.validation import Array, check_positive, finite_array

CLIP = 1e-12  # eigenvalues are kept this far from 0 and 1 where they are inverted


@dataclass(frozen=True, eq=False)
class Conceptor:
    """A symmetric matrix C with eigenvalues between 0 and 1, and the operations on it.

    Parameters
    ----------
    matrix : array of shape (N, N)
        The matrix C.

    See Also
    --------
    conceptor : Compute a conceptor from states.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.reservoir.conceptors import conceptor
    >>> H = np.random.default_rng(0).normal(size=(100, 1)) @ np.array([[1.0, 0.0]])  # only the first unit is active
    >>> c = conceptor(H, aperture=10.0)
    >>> c.matrix.round(2)
    array([[0.99, 0.  ],
           [0.  , 0.  ]])
    >>> (~c).matrix.round(2)
    array([[0.01, 0.  ],
           [0.  , 1.  ]])
    """

    matrix: Array

    def __invert__(self) -> Conceptor:
        """Return NOT C = I - C: what is left out by C."""
        return Conceptor(np.eye(len(self.matrix)) - self.matrix)

    def __and__(self, other: Conceptor) -> Conceptor:
        """Return C AND D = (C^-1 + D^-1 - I)^-1: the directions that both have."""
        I = np.eye(len(self.matrix))
        return Conceptor(_symmetric(np.linalg.inv(_inverse(self.matrix) + _inverse(other.matrix) - I)))

    def __or__(self, other: Conceptor) -> Conceptor:
        """Return C OR D = NOT (NOT C AND NOT D): the directions that either has."""
        return ~(~self & ~other)

    def with_aperture(self, factor: float) -> Conceptor:
        """Return the conceptor of an aperture that is `factor` times as large: C (C + factor^-2 (I - C))^-1.

        Parameters
        ----------
        factor : float
            Above 1 for a wider conceptor, below 1 for a narrower one.

        Returns
        -------
        Conceptor
            The new conceptor.
        """
        check_positive("factor", factor)
        values, V = np.linalg.eigh(self.matrix)
        values = np.clip(values, 0, 1)
        return Conceptor((V * (values / (values + (1 - values) / factor**2))) @ V.T)

    @property
    def quota(self) -> float:
        """The mean eigenvalue: the share of the reservoir's directions that the conceptor takes."""
        return float(np.trace(self.matrix)) / len(self.matrix)

    def project(self, H: ArrayLike) -> Array:
        """Return states in the conceptor's directions, H C.

        Parameters
        ----------
        H : array of shape (n_steps, N)
            States.

        Returns
        -------
        array of shape (n_steps, N)
            The states, softly projected.
        """
        return np.asarray(np.asarray(H, float) @ self.matrix)

    def evidence(self, H: ArrayLike) -> float:
        """Return the mean of h' C h / h' h over states: near 1 where they lie in the conceptor's directions.

        Parameters
        ----------
        H : array of shape (n_steps, N)
            States.

        Returns
        -------
        float
            Between 0 and 1.
        """
        states = np.asarray(H, float)
        square = (states**2).sum(axis=1)
        live = square > 0
        if not live.any():
            raise ValueError("all states are zero; there is no evidence for or against a conceptor.")
        along = ((states @ self.matrix) * states).sum(axis=1)
        return float((along[live] / square[live]).mean())


def conceptor(H: ArrayLike, *, aperture: float = 10.0) -> Conceptor:
    """Return the conceptor of the states of a reservoir under one pattern.

    Parameters
    ----------
    H : array of shape (n_steps, N)
        States, for example of `echolearn.states.harvest`, after a washout.
    aperture : float, default 10.0
        How weak a direction of the states may be and still count: those of mean square aperture^-2 count half.

    Returns
    -------
    Conceptor
        The conceptor.

    References
    ----------
    Jaeger, Controlling recurrent neural networks by conceptors, arXiv:1403.3369 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.reservoir.conceptors import classify, conceptor
    >>> from echolearn.states import harvest
    >>> reservoir = Reservoir.random(1, 50, input_scaling=1.0, bias_scaling=0.2, random_state=0)
    >>> slow, fast = (np.sin(w * np.arange(400))[:, None] for w in (0.2, 0.9))
    >>> known = {name: conceptor(harvest(reservoir, x)[100:]) for name, x in (("slow", slow), ("fast", fast))}
    >>> classify(known, harvest(reservoir, np.sin(0.21 * np.arange(200))[:, None])[100:])
    'slow'
    """
    states = finite_array("H", H)
    if states.ndim != 2 or len(states) == 0:
        raise ValueError(f"H has the shape {states.shape}; expected (n_steps, N).")
    R = states.T @ states / len(states)
    values, V = np.linalg.eigh(R)
    values = np.maximum(values, 0)
    return Conceptor((V * (values / (values + check_positive("aperture", aperture) ** -2))) @ V.T)


def classify(known: Mapping[str, Conceptor], H: ArrayLike) -> str:
    """Return the name of the conceptor that fits states best.

    The evidence of a conceptor is that for it, plus that against all others: for NOT (the OR of the others).

    Parameters
    ----------
    known : dict of str to Conceptor
        The conceptors of the patterns, at least two.
    H : array of shape (n_steps, N)
        States under an unknown pattern.

    Returns
    -------
    str
        The name of a pattern.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.reservoir.conceptors import classify, conceptor
    >>> from echolearn.states import harvest
    >>> reservoir = Reservoir.random(1, 30, input_scaling=1.0, random_state=0)
    >>> waves = {name: np.sin(rate * np.arange(300))[:, None] for name, rate in (("slow", 0.2), ("fast", 0.9))}
    >>> known = {name: conceptor(harvest(reservoir, wave)[50:], aperture=10) for name, wave in waves.items()}
    >>> classify(known, harvest(reservoir, np.sin(0.9 * np.arange(100) + 1)[:, None])[50:])
    'fast'
    """
    if len(known) < 2:
        raise ValueError(f"known has {len(known)} conceptors; expected two or more to choose from.")

    def total(name: str) -> float:
        others = [c for other, c in known.items() if other != name]
        either = others[0]
        for c in others[1:]:
            either = either | c
        return known[name].evidence(H) + (~either).evidence(H)

    return max(known, key=total)


def _inverse(C: Array) -> Array:
    """Return C^-1 with eigenvalues of C kept away from 0: the limit of the rules of logic where C is singular."""
    values, V = np.linalg.eigh(_symmetric(C))
    return np.asarray((V / np.clip(values, CLIP, 1.0)) @ V.T)


def _symmetric(M: Array) -> Array:
    return np.asarray((M + M.T) / 2)

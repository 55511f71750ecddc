"""Series by another method than the library's."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp


def mackey_glass(times, tau, beta, gamma, power, start):
    """Return x(t) of the Mackey-Glass equation by the method of steps.

    Over each interval of length tau the delayed value is the solution over the interval before, so that the delay
    equation is an ordinary one.
    """

    def before(t):
        return start

    x, values = start, np.empty(len(times))
    for interval in range(int(np.ceil(times[-1] / tau))):
        begin, end = interval * tau, (interval + 1) * tau

        def slope(t, y, past=before):
            late = past(t - tau)
            return beta * late / (1 + late**power) - gamma * y

        solved = solve_ivp(slope, (begin, end), [x], method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True)
        here = (times > begin) & (times <= end)
        values[here] = solved.sol(times[here])[0]
        x, before = solved.y[0, -1], lambda t, sol=solved.sol: sol(t)[0]
    return values

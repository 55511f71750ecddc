"""Slow, obvious versions of everything: loops over sequences and steps, in the paper's own layout (columns
are time). Works in complex arithmetic too, so that derivatives can be taken by a complex step."""

from __future__ import annotations

import numpy as np

ACTIVATIONS = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "relu": lambda z: np.where(z.real > 0, z, 0 * z),
    "identity": lambda z: z,
}


def states(w, x, activation, t=None, h0=None, cut=()):
    """Eq. 1 with leak, one step after another. w: dict of W, W_rec, W_fb, bias, leak. Returns N × K.

    Before each step in `cut` the state is taken as given: in a complex step its imaginary part is dropped.
    """
    f = ACTIVATIONS[activation]
    N = w["W"].shape[1]
    h = np.zeros(N) if h0 is None else h0
    columns = []
    for step in range(len(x)):
        if step in cut:
            h = h.real
        z = w["W"].T @ x[step] + w["W_rec"] @ h
        if w.get("bias") is not None:
            z = z + w["bias"]
        if w.get("W_fb") is not None and step > 0:
            z = z + w["W_fb"] @ t[step - 1]
        h = (1 - w["leak"]) * h + w["leak"] * f(z)
        columns.append(h)
    return np.array(columns).T


def states_both_ways(w, backward, x, activation, h0=None, cut=(), cut_backward=()):
    """N × K: the states of units that run forward beside those of backward ones, which hear x turned around in time.

    Each kind runs the whole network and keeps its own rows: no unit hears one of the other kind.
    """
    forward = states(w, x, activation, None, h0, cut)
    turned = states(w, x[::-1], activation, None, h0, cut_backward)[:, ::-1]
    return np.where(np.asarray(backward)[:, None], turned, forward)


def kept_steps(length, washout, lookback, targets):
    if targets == "all":
        return list(range(washout, length))
    blocks = (
        [list(range(washout, length))]
        if lookback is None
        else [list(range(s, min(s + lookback, length))) for s in range(washout, length, lookback)]
    )
    return [block[-1] for block in blocks]


def block_cuts(length, washout, lookback):
    return () if lookback is None else tuple(range(washout, length, lookback))


def part_means(M, parts):
    """Means over equal parts of the columns, one below the other; a column on a border belongs to both sides."""
    n = M.shape[1]
    inside = [[k for k in range(n) if (k + 1) * parts > i * n and k * parts < (i + 1) * n] for i in range(parts)]
    return np.vstack([M[:, columns].mean(axis=1, keepdims=True) for columns in inside])


def columns(w, X, T, activation, *, direct, washout, lookback, targets, pooling=None, h0=None, backward=None):
    """H_c (M × K) and T (n_out × K) over all sequences."""
    H_parts, T_parts = [], []
    for x, t in zip(X, T, strict=True):
        cut = block_cuts(len(x), washout, lookback)
        if backward is None:
            H = states(w, x, activation, t, h0, cut)
        else:
            H = states_both_ways(w, backward, x, activation, h0, cut, block_cuts(len(x), 0, lookback))
        H_c = np.vstack([H, x.T]) if direct else H
        if pooling == "mean":
            H_parts.append(H_c[:, washout:].mean(axis=1, keepdims=True))
            T_parts.append(t[:, None])
        elif isinstance(pooling, int):
            H_parts.append(np.vstack([part_means(M[:, washout:], pooling) for M in ([H, x.T] if direct else [H])]))
            T_parts.append(t[:, None])
        elif pooling == "last":
            last = H_c[:, -1:].copy()
            for unit in np.flatnonzero(backward if backward is not None else []):
                last[unit] = H[unit, 0]
            H_parts.append(last)
            T_parts.append(t[:, None])
        else:
            kept = kept_steps(len(x), washout, lookback, targets)
            H_parts.append(H_c[:, kept])
            T_parts.append(t[kept].T)
    return np.hstack(H_parts), np.hstack(T_parts)


def ridge(H_c, T, mu):
    """Eq. 9, in the paper's layout."""
    return np.linalg.solve(H_c @ H_c.T + mu * np.eye(len(H_c)), H_c @ T.T)


def loss(w, X, T, activation, *, ridge_mu, **how):
    """E = ||U'H_c - T||² + mu ||U||² at the best U; complex-analytic (no conjugates)."""
    H_c, T = columns(w, X, T, activation, **how)
    U = ridge(H_c, T, ridge_mu)
    R = U.T @ H_c - T
    return (R * R).sum() + ridge_mu * (U * U).sum()


def complex_step(w, name, index, loss_of):
    """dE/dw[name][index] without cancellation: Im E(w + ih)/h."""
    h = 1e-30
    moved = {k: None if v is None else v.astype(complex) for k, v in w.items()}
    moved[name][index] += 1j * h
    return loss_of(moved).imag / h


def stack(ws, X, T, activation, *, sees, scales, hows, ridges=None, readouts=None):
    """Layers on layers, one after another -> for each layer, H_c (frames with targets as rows), T and U.

    hows: washout, lookback, direct of each layer, and pooling of the top one; T: targets a step, or a sequence with
    pooling. A readout is the ridge solution with a free intercept, its outputs passed on; or given, and their softmax.
    """
    seen, inputs = [], X
    for number, (w, how) in enumerate(zip(ws, hows, strict=True)):
        pooling, washout = how.get("pooling"), how["washout"]
        H = [states(w, x, activation, cut=block_cuts(len(x), washout, how["lookback"])) for x in inputs]
        full = [[h, x.T] if how["direct"] else [h] for h, x in zip(H, inputs, strict=True)]
        parts = pooling if isinstance(pooling, int) else 1
        if pooling == "last":
            rows = [np.vstack(f)[:, -1:].T for f in full]
        elif pooling:
            rows = [np.vstack([part_means(M[:, washout:], parts) for M in f]).T for f in full]
        else:
            rows = [np.vstack(f)[:, washout:].T for f in full]
        H_c = np.hstack([np.vstack(rows), np.ones((sum(map(len, rows)), 1))])
        if pooling:
            T_c = np.array(T)
        else:
            a_step = [t if np.ndim(t) == 2 else np.tile(t, (len(x), 1)) for t, x in zip(T, X, strict=True)]
            T_c = np.vstack([t[washout:] for t in a_step])
        if readouts is None:
            free = np.diag(np.append(np.full(H_c.shape[1] - 1, ridges[number]), 0))
            U = np.linalg.solve(H_c.T @ H_c + free, H_c.T @ T_c)
        else:
            U = readouts[number]
        seen.append((H_c, T_c, U))
        if number < len(ws) - 1:
            Y = [np.vstack([*f, np.ones((1, len(x)))]).T @ U for f, x in zip(full, X, strict=True)]
            if readouts is not None:
                Y = [np.exp(y) / np.exp(y).sum(axis=1, keepdims=True) for y in Y]
            Y = [y * scales[number] for y in Y]
            beside = {"output": None, "output+input": X, "output+hidden": [h.T for h in H]}[sees]
            inputs = Y if beside is None else [np.hstack(pair) for pair in zip(Y, beside, strict=True)]
    return seen


def stack_loss(ws, X, T, activation, *, ridges, **how):
    """E of the top layer, every readout in closed form."""
    H_c, T, U = stack(ws, X, T, activation, ridges=ridges, **how)[-1]
    R = H_c @ U - T
    return (R * R).sum() + ridges[-1] * (U[:-1] * U[:-1]).sum()


def stack_entropy(ws, X, T, activation, *, readouts, own, **how):
    """-Σ log softmax(H_c V)[label] of the top layer, and a share of each lower one's."""
    seen = stack(ws, X, T, activation, readouts=readouts, **how)
    losses = [(T * (np.log(np.exp(H_c @ V).sum(axis=1, keepdims=True)) - H_c @ V)).sum() for H_c, T, V in seen]
    return losses[-1] + own * sum(losses[:-1])


def printed(w, X, T, *, ridge_mu, direct, washout, lookback, targets, h0=None):
    """The paper's gradients as they stand in it (eq. 30, 34, 35, 41, 42), column by column, sigmoid units.

    Blocks of m columns: H_i holds the i-th column of every block, H_0 the state before it, X_i and T_i alike.
    With targets="last" the error of a block sits at its last column, n = m (less in a last, shorter block);
    with "all" the formulas are summed over every place n that an error may have. Returns dE/dW, dE/dW_rec.
    """
    W_rec, N = w["W_rec"], len(w["W_rec"])
    blocks = []  # each: (states before and in the block, inputs, targets), as lists of columns
    for x, t in zip(X, T, strict=True):
        H = states(w, x, "sigmoid", h0=h0)
        all_states = [np.zeros(N) if h0 is None else h0, *H.T]
        m = lookback or len(x) - washout
        for start in range(washout, len(x), m):
            stop = min(start + m, len(x))
            blocks.append((all_states[start : stop + 1], x[start:stop], t[start:stop]))
    ends = [(b, n) for b, (_, x, _) in enumerate(blocks) for n in range(1, len(x) + 1)]
    if targets == "last":
        ends = [(b, n) for b, n in ends if n == len(blocks[b][1])]
    H_c = np.array([np.append(blocks[b][0][n], blocks[b][1][n - 1] if direct else []) for b, n in ends]).T
    T_n = np.array([blocks[b][2][n - 1] for b, n in ends]).T
    F = np.linalg.inv(H_c @ H_c.T + ridge_mu * np.eye(len(H_c)))
    M = T_n.T @ T_n
    A = 2 * M @ H_c.T @ F - 2 * H_c.T @ F @ H_c @ M @ H_c.T @ F  # eq. 30, with the ridge in the inverse
    A = A[:, :N]
    dE_dW, dE_dW_rec = np.zeros_like(w["W"]), np.zeros_like(W_rec)
    for n in sorted({n for _, n in ends}):
        these = [k for k, end in enumerate(ends) if end[1] == n]
        H = [np.array([blocks[ends[k][0]][0][i] for k in these]).T for i in range(n + 1)]  # H_0 ... H_n
        X_ = [None] + [np.array([blocks[ends[k][0]][1][i] for k in these]).T for i in range(n)]  # X_1 ... X_n
        C = H[n].T * (1 - H[n].T) * A[these]
        D = C.copy()
        for i in range(n, 0, -1):
            if i < n:
                C = ((H[i].T * (1 - H[i].T)) @ W_rec.T) * C
                D = H[i].T * (1 - H[i].T) * D
            dE_dW += -(X_[i] @ C)
            dE_dW_rec += np.linalg.matrix_power(W_rec, n - i) @ H[i - 1] @ D
    return dE_dW, dE_dW_rec


def free_run(w, x, U, activation, *, direct, h0=None, turn=lambda y: y):
    """Outputs of a network that hears its own outputs, one step after another: (steps, n_out).

    U has rows for H, for X (direct) and last for the intercept.
    """
    f = ACTIVATIONS[activation]
    N = w["W"].shape[1]
    h, y, out = np.zeros(N) if h0 is None else h0, np.zeros(U.shape[1]), []
    for x_t in x:
        z = w["W"].T @ x_t + w["W_rec"] @ h + w["W_fb"] @ y + (0 if w.get("bias") is None else w["bias"])
        h = (1 - w["leak"]) * h + w["leak"] * f(z)
        seen = np.concatenate([h, x_t, [1.0]]) if direct else np.append(h, 1.0)
        out.append(seen @ U)
        y = turn(out[-1])
    return np.array(out)


def network(rng, *, activation=None, N=None, n_in=None, n_out=2, feedback=False, leak=True, bias=True):
    """Random weights as a dict, with a sparse W_rec that has at least one cycle."""
    N = N or int(rng.integers(2, 7))
    n_in = n_in or int(rng.integers(1, 4))
    W_rec = 0.5 * rng.normal(size=(N, N)) * (rng.random((N, N)) < 0.6)
    W_rec[0, 0] = 0.3
    return {
        "W": rng.normal(size=(n_in, N)),
        "W_rec": W_rec,
        "bias": rng.normal(size=N) if bias else None,
        "W_fb": rng.normal(size=(N, n_out)) if feedback else None,
        "leak": rng.uniform(0.1, 1, N) if leak else np.ones(N),
    }


def weighted_ridge(Phi, T, weights, A, U_0):
    """argmin_U Σ_k weights_k ||U'phi_k - t_k||² + tr (U - U_0)' A (U - U_0), frames as rows."""
    G, Q = A.copy(), A @ U_0
    for phi, t, w in zip(Phi, T, weights, strict=True):
        G, Q = G + w * np.outer(phi, phi), Q + w * np.outer(phi, t)
    return np.linalg.solve(G, Q)


def closed_loop(w, h, x, E, U, activation, *, direct, shocks=None):
    """One path of a network that hears its own outputs as its next inputs: (steps, dims)."""
    f = ACTIVATIONS[activation]
    out = []
    for t in range(len(E)):
        heard = np.append(x, E[t])
        z = w["W"].T @ heard + w["W_rec"] @ h + (0 if w.get("bias") is None else w["bias"])
        h = (1 - w["leak"]) * h + w["leak"] * f(z)
        x = np.concatenate([h, heard, [1.0]]) @ U if direct else np.append(h, 1.0) @ U
        if shocks is not None:
            x = x + shocks[t]
        out.append(x)
    return np.array(out)


def mackey_glass(times, tau, beta, gamma, power, start):
    """The delay equation as a chain of ordinary ones: over each stretch of tau the delayed value is the solution of
    the stretch before."""
    from scipy.integrate import solve_ivp

    def before(t):
        return start

    x, values = start, np.empty(len(times))
    for stretch in range(int(np.ceil(times[-1] / tau))):
        begin, end = stretch * tau, (stretch + 1) * tau

        def slope(t, y, past=before):
            late = past(t - tau)
            return beta * late / (1 + late**power) - gamma * y

        solved = solve_ivp(slope, (begin, end), [x], method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True)
        here = (times > begin) & (times <= end)
        values[here] = solved.sol(times[here])[0]
        x, before = solved.y[0, -1], lambda t, sol=solved.sol: sol(t)[0]
    return values

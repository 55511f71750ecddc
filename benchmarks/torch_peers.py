"""Autograd of PyTorch through the ridge solve, on the same data."""

import torch
from scipy import sparse
from torch.nn.utils.rnn import pack_sequence

from measure import measured

THREADS = 2


def ridge_epoch(W, W_rec, X, T, ridge, *, activation="sigmoid", leak=1.0, direct=True, dtype="float32"):
    """Return E = ||U'H_c - T||^2 + ridge ||U||^2 and its gradients by autograd of whole sequences and of the solve.

    W (n_in, N), W_rec (N, N), X and T lists of (steps, n_in) and (steps, n_out), as for echolearn. The states are
    computed as a careful PyTorch user would: the input projection before the loop, all sequences in one batch whose
    active part shrinks, W_rec dense or, if a scipy matrix is given, CSR: neither is faster at every size. Its gradient
    is dense in both cases. Sums and solve are in float64: in float32 they alone would change the gradients by 2e-4.
    """
    torch.set_num_threads(THREADS)
    dtype = getattr(torch, dtype)
    inputs, targets = packed(X, T, dtype)
    W, W_rec = leaves(W, W_rec, dtype)
    with measured() as record:
        H_c = features(inputs, states_of(inputs, W, W_rec, activation, leak), direct)
        U = solved(H_c.T @ H_c, H_c.T @ targets.double(), ridge)
        loss = ((H_c @ U - targets) ** 2).sum() + ridge * (U**2).sum()
        loss.backward()
    return record | {"loss": loss.item(), "dE_dW": W.grad.numpy(), "dE_dW_rec": W_rec.grad.numpy()}


def ridge_epoch_detached(
    W, W_rec, X, T, ridge, *, activation="sigmoid", leak=1.0, direct=True, dtype="float32", group=32
):
    """Return what `ridge_epoch` returns, as a user does who knows that E is stationary in U (the envelope theorem).

    U comes from sums over groups of sequences without any graph. It is then a constant, and every group is run again,
    this time with a graph, whose gradients are added to those of the groups before it. One group's graph is held at a
    time, and nothing is differentiated through the solve. Sequences of similar length share a group. Only the sums and
    the solve need float64.
    """
    torch.set_num_threads(THREADS)
    dtype = getattr(torch, dtype)
    order = sorted(range(len(X)), key=lambda i: -len(X[i]))
    chunks = [order[i : i + group] for i in range(0, len(order), group)]
    groups = [packed([X[i] for i in chunk], [T[i] for i in chunk], dtype) for chunk in chunks]
    W, W_rec = leaves(W, W_rec, dtype)
    with measured() as record:
        G = Q = 0.0
        with torch.no_grad():
            for inputs, targets in groups:
                H_c = features(inputs, states_of(inputs, W, W_rec, activation, leak), direct)
                G, Q = G + H_c.T @ H_c, Q + H_c.T @ targets.double()
            U = solved(G, Q, ridge)
        loss, U = ridge * (U**2).sum().item(), U.to(dtype)
        for inputs, targets in groups:
            H = states_of(inputs, W, W_rec, activation, leak)
            H_c = torch.cat([H, inputs.data], dim=1) if direct else H
            part = ((H_c @ U - targets) ** 2).sum()
            part.backward()
            loss += part.item()
    return record | {"loss": loss, "dE_dW": W.grad.numpy(), "dE_dW_rec": W_rec.grad.numpy()}


def packed(X, T, dtype):
    """Return inputs (packed, the longest sequence first) and targets (frames, n_out) in the same order."""
    order = sorted(range(len(X)), key=lambda i: -len(X[i]))
    inputs = pack_sequence([torch.as_tensor(X[i], dtype=dtype) for i in order])
    return inputs, pack_sequence([torch.as_tensor(T[i], dtype=dtype) for i in order]).data


def leaves(W, W_rec, dtype):
    """Return both matrices as tensors that collect gradients; a scipy matrix becomes CSR."""
    W = torch.as_tensor(W, dtype=dtype).requires_grad_()
    if sparse.issparse(W_rec):
        parts = (torch.as_tensor(part) for part in (W_rec.indptr, W_rec.indices, W_rec.data))
        W_rec = torch.sparse_csr_tensor(*parts, size=W_rec.shape, dtype=dtype)
    else:
        W_rec = torch.as_tensor(W_rec, dtype=dtype)
    return W, W_rec.requires_grad_()


def states_of(inputs, W, W_rec, activation, leak):
    """Return the states (frames, N) of packed inputs."""
    f = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}[activation]
    active = inputs.batch_sizes.tolist()
    h = torch.zeros(active[0], W_rec.shape[0], dtype=W.dtype)
    states = []
    for z in (inputs.data @ W).split(active):
        h = h[: len(z)]
        update = f(torch.addmm(z, h, W_rec.T) if W_rec.layout == torch.strided else z + (W_rec @ h.T).T)
        h = update if leak == 1 else (1 - leak) * h + leak * update
        states.append(h)
    return torch.cat(states)


def features(inputs, H, direct):
    """Return what the readout sees, in float64."""
    return (torch.cat([H, inputs.data], dim=1) if direct else H).double()


def solved(G, Q, ridge):
    """Return U of (G + ridge I) U = Q."""
    return torch.cholesky_solve(Q, torch.linalg.cholesky(G + ridge * torch.eye(len(G), dtype=G.dtype)))

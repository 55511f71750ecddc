"""Other echo state network libraries on given matrices: states, and the classical fit and predict.

Every function takes the network in echolearn's notation, h' = (1 - leak) h + leak tanh(W'x + W_rec h) from h = 0, and
passes the same matrices to the peer in the form that its documentation requires. Each is meant for
`measure.in_own_process` and imports its library itself, so that no peer pays for another's import.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from measure import measured


class Network(NamedTuple):
    """The weights that all libraries are given."""

    W: np.ndarray  # (n_in, N)
    W_rec: sparse.csr_matrix  # (N, N)
    leak: float


def random_network(n_in, units, connections, *, radius=0.9, leak=0.3, scale=0.1, seed=0):
    """Return a network with `connections` weights in every row of W_rec, scaled to the spectral radius."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([rng.choice(units, connections, replace=False) for _ in range(units)])
    rows = np.repeat(np.arange(units), connections)
    W_rec = sparse.csr_matrix((rng.standard_normal(len(rows)), (rows, columns)), shape=(units, units))
    return Network(
        W=rng.uniform(-scale, scale, (n_in, units)),
        W_rec=W_rec * (radius / spectral_radius(W_rec)),
        leak=leak,
    )


def spectral_radius(W_rec):
    """Return the largest absolute eigenvalue."""
    if W_rec.shape[0] <= 500:
        return np.abs(np.linalg.eigvals(W_rec.toarray())).max()
    start = np.ones(W_rec.shape[0])
    return np.abs(sparse.linalg.eigs(W_rec, k=6, ncv=60, v0=start, return_eigenvectors=False)).max()


def sample(states):
    """Return enough of the states to compare them without sending gigabytes between processes.

    These are the last state of every sequence of a list, or 100 states spread over a single sequence.
    """
    if isinstance(states, list):
        return np.array([sequence[-1] for sequence in states])
    return np.array(states[np.linspace(0, len(states) - 1, 100).astype(int)])


def scored(outputs, y):
    """Return the frame error in percent, and the outputs at each last frame for comparison."""
    wrong = sum((output.argmax(axis=1) != labels).sum() for output, labels in zip(outputs, y, strict=True))
    return {"error": 100 * wrong / sum(map(len, y)), "outputs": sample(list(outputs))}


def as_float64(X):
    """Return one sequence or a list in float64."""
    return as_dtype(X, np.float64)


def as_dtype(X, dtype):
    """Return one sequence or a list in a precision."""
    return [np.asarray(x, dtype=dtype) for x in X] if isinstance(X, list) else np.asarray(X, dtype)


def one_hot(y, n_out):
    """Return labels as rows with a single 1, one array per sequence."""
    return [np.eye(n_out)[labels] for labels in y]


# reservoirpy: W as CSR, its own default, in the precision that is asked for.


def _reservoirpy_reservoir(network, dtype="float64"):
    from reservoirpy.nodes import Reservoir

    W, Win = network.W_rec.astype(dtype), np.ascontiguousarray(network.W.T.astype(dtype))
    return Reservoir(W=W, Win=Win, bias=0.0, lr=network.leak, dtype=np.dtype(dtype).type)


def end_workers():
    """End joblib's worker processes, for which this one would wait for minutes."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def reservoirpy_states(network, X, *, workers=1, dtype="float64"):
    """Measure the states of X, one (steps, n_in) array or a list of them."""
    reservoir, X = _reservoirpy_reservoir(network, dtype), as_dtype(X, dtype)
    reservoir.initialize(X)
    with measured() as record:
        states = reservoir.run(X, workers=workers)
    end_workers()
    return record | {"states": sample(states)}


def reservoirpy_fit_predict(network, X, y, X_test, y_test, *, ridge, n_out, workers=1, intercept=False):
    """Measure a fit and a prediction."""
    from reservoirpy.nodes import Ridge

    model = _reservoirpy_reservoir(network) >> Ridge(ridge=ridge, fit_bias=intercept)
    X, T, X_test = as_float64(X), one_hot(y, n_out), as_float64(X_test)
    with measured() as fit:
        model.fit(X, T, workers=workers)
    model.reset()  # otherwise it would continue from the last training state
    with measured() as predict:
        outputs = model.run(X_test, workers=workers)
    end_workers()
    return {"fit": fit, "predict": predict} | scored(outputs, y_test)


# PyRCN: its recurrent matrix multiplies from the right, so W_rec is passed transposed, and dense, because its torch
# cells make it dense themselves.


def pyrcn_states(network, X, *, batch_size=1, dtype="float64"):
    """Measure pyrcn.nn modules on a list. Its estimators use batch_size=1 and float64; padded batches are faster."""
    import torch
    from pyrcn.nn import InputFeatureMap, Reservoir

    torch.set_num_threads(2)
    dtype = getattr(torch, dtype)
    n_in, units = network.W.shape
    projection = InputFeatureMap(n_in, units, activation="identity", dtype=dtype)
    projection.set_input_weights(network.W, np.zeros(units))
    reservoir = Reservoir(units, leakage=network.leak, dtype=dtype)
    reservoir.set_recurrent_weights(network.W_rec.toarray().T)
    sequences = [torch.as_tensor(x, dtype=dtype) for x in X]
    order = sorted(range(len(X)), key=lambda i: -len(X[i]))
    states = [None] * len(X)
    with measured() as record, torch.inference_mode():
        for begin in range(0, len(order), batch_size):
            chosen = order[begin : begin + batch_size]
            batch = torch.nn.utils.rnn.pad_sequence([sequences[i] for i in chosen], batch_first=True)
            for i, padded in zip(chosen, reservoir(projection(batch))[0], strict=True):
                states[i] = padded[: len(sequences[i])].numpy()
    return record | {"states": sample(states)}


def pyrcn_fit_predict(network, X, y, X_test, y_test, *, ridge, n_out, intercept=False):
    """Measure a fit and a prediction without direct connections: its readout sees only the states."""
    import torch
    from pyrcn.base.blocks import InputToNode, NodeToNode
    from pyrcn.echo_state_network import ESNRegressor
    from pyrcn.linear_model import IncrementalRegression

    torch.set_num_threads(2)
    units = network.W.shape[1]
    esn = ESNRegressor(
        input_to_node=InputToNode(
            hidden_layer_size=units,
            predefined_input_weights=network.W,
            input_activation="identity",
            bias_scaling=0.0,
        ),
        node_to_node=NodeToNode(
            hidden_layer_size=units,
            predefined_recurrent_weights=network.W_rec.toarray().T,
            leakage=network.leak,
        ),
        regressor=IncrementalRegression(alpha=ridge, fit_intercept=intercept),
        requires_sequence=True,
        verbose=False,
    )
    X, T, X_test = (as_objects(s) for s in (as_float64(X), one_hot(y, n_out), as_float64(X_test)))
    with measured() as fit:
        esn.fit(X, T)
    with measured() as predict:
        outputs = esn.predict(X_test)
    return {"fit": fit, "predict": predict} | scored(outputs, y_test)


def as_objects(sequences):
    """Return a list of arrays as an array of objects."""
    array = np.empty(len(sequences), dtype=object)
    array[:] = sequences
    return array


# echoes: one sequence only, dense W, and the first frame is ignored (its state stays zero), so a frame is put in front.
# It always rescales W, so it is given the spectral radius that W has.


def echoes_fit_predict(network, X, y, X_test, y_test, *, ridge, n_out, intercept=False):
    """Measure a fit and a prediction of all utterances as one long sequence, because it does not take lists.

    The state continues from the end of one utterance into the next.
    """
    from echoes import ESNRegressor

    esn = ESNRegressor(
        W=network.W_rec.toarray(),
        W_in=np.ascontiguousarray(network.W.T),
        spectral_radius=np.abs(np.linalg.eigvals(network.W_rec.toarray())).max(),
        leak_rate=network.leak,
        bias=0.0,
        fit_only_states=True,
        regression_method="ridge",
        ridge_alpha=ridge,
        ridge_fit_intercept=intercept,
    )
    X, T = with_frame_in_front(np.vstack(as_float64(X))), with_frame_in_front(np.vstack(one_hot(y, n_out)))
    ends = np.cumsum([len(x) for x in X_test])[:-1]
    X_test = with_frame_in_front(np.vstack(as_float64(X_test)))
    esn.fit(X[:50], T[:50]).predict(X[:3])  # compiles
    with measured() as fit:
        esn.fit(X, T)
    with measured() as predict:
        outputs = esn.predict(X_test)
    return {"fit": fit, "predict": predict} | scored(np.split(outputs[1:], ends), y_test)


def with_frame_in_front(frames):
    """Return the frames with one more frame of zeros before them."""
    return np.vstack([np.zeros_like(frames[:1]), frames])

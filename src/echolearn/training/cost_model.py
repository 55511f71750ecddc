"""What a fit costs, before it starts: seconds and bytes (docs/evidence/performance.md compares it with measurements).

Symbols: K frames, N units, M = N + n_in + 1 columns of H_c. Functions without "bytes" in their name return seconds.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from echolearn.display.progress import clock, show_if_verbose
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import TERMS_PER_NODE, thread_count
from echolearn.readout import softmax
from echolearn.readout.large import conjugate_gradients, trackers
from echolearn.readout.large.sketch import SAMPLE_FRAMES, SKETCH_RANK
from echolearn.readout.ridge import RIDGE_PATH
from echolearn.readout.solver import solver_for
from echolearn.readout.statistics import MAX_COLUMNS_PER_THREAD, MAX_COLUMNS_PER_TILE
from echolearn.readout.view import frames_at_once
from echolearn.sequences.batch import LANES

ANNOUNCED_SECONDS = 60.0  # seconds from which on a fit is announced
TYPICAL_STRENGTHS = 4  # of the softmax readout that are tried before the held-out cross entropy rises
SPARE_BYTES = 20e6  # bytes of compiled loops, thread stacks and small arrays


@dataclass(frozen=True)
class Job:
    """What the cost of a fit depends on."""

    N: int
    n_in: int
    n_out: int
    connections: int
    frames: int  # K, of the training data
    held_out: int = 0  # frames of the held-out data
    longest: int = 0  # steps of the longest sequence
    epochs: int = 0  # 0: the weights are not learned
    refine_epochs: int = 0  # of all weights on the cross entropy, at the end
    batch: int | None = None  # frames of a mini-batch; None: all of them
    softmax: bool = False  # whether a softmax readout is fitted
    choose: bool = True  # whether a ridge is chosen from several
    direct: bool = True  # whether the readout sees the inputs
    itemsize: int = 4  # bytes of a number in the states
    threads: int = 1
    networks: int = 1  # how many of this kind are fitted, one per core
    bidirectional: bool = False  # the states of each direction are kept beside those of all units

    @property
    def M(self) -> int:
        """The number of columns of H_c."""
        return self.N + self.direct * self.n_in + 1

    @property
    def wide(self) -> bool:
        """Whether all cores work on one Gram matrix."""
        return self.M > MAX_COLUMNS_PER_THREAD

    @property
    def iterative(self) -> bool:
        """Whether the readout is solved without a Gram matrix."""
        return solver_for(self.N).iterative


@dataclass(frozen=True)
class Rates:
    """Seconds that elementary operations take on one core."""

    flop: float = 1 / 115e9  # one operation in a product of two matrices, in float32
    flop64: float = 1 / 57e9  # the same in float64
    factor: float = 1 / 30e9  # one operation in Cholesky's factor
    eigen: float = 0.22e-9  # eigenvectors, in units of M³
    column: float = 3e-9  # one column of H_c in one frame: stacked, converted to float64, added to its class
    unit: float = 5e-9  # one unit in one frame, forward in time
    link: float = 0.04e-9  # one of its connections
    unit_back: float = 4e-9  # one unit in one frame, back in time
    link_back: float = 0.13e-9  # one of its connections

    def scaled(self, factor: float) -> Rates:
        """Return all rates, multiplied by a factor."""
        return Rates(**{name: factor * value for name, value in vars(self).items()})


TYPICAL_RATES = Rates()
CACHED_UNITS = 2500  # units from which on the way back through time waits for memory as long as it computes
NARROW_PRODUCT_FACTOR = 1.5  # the time of a flop in a product with few columns, relative to that in a wide one


def states(job: Job, K: float, r: Rates) -> float:
    """Return the time of the states of K frames (eq. 1): packing X, the products W'x, the recurrence."""
    products = 2 * job.n_in * job.N * _flop(job, r)
    recurrence = job.N * (r.unit + job.connections * r.link)
    return K * (job.n_in * r.column + products + recurrence) / job.threads


def gram(job: Job, K: float, r: Rates) -> float:
    """Return the time of G = H_c'H_c over K frames, in float64."""
    return K * (job.M**2 * r.flop64 + job.M * r.column) / job.threads


def solve(job: Job, r: Rates) -> float:
    """Return the time of Cholesky's factor and of U; a small system is solved on one core."""
    flops = job.M**3 / 3 * r.factor + 2 * job.M**2 * job.n_out * r.flop64 + 3 * job.M**2 * 1e-9
    return flops / (job.threads if job.wide else 1)


def choose(job: Job, r: Rates) -> float:
    """Return the time to choose a ridge: by eigenvectors, or for a wide G with held-out frames by solutions."""
    if not job.choose:
        return 0.0
    return len(RIDGE_PATH) * solve(job, r) if job.wide and job.held_out else job.M**3 * r.eigen


def gradient(job: Job, K: float, r: Rates) -> float:
    """Return the time of the gradient over K frames: dE/dH = 2 (H_c U - T) U', back through time, dE/dW = X'Z."""
    products = 2 * (job.M * job.n_out + job.N * job.n_out + job.n_in * job.N) * _flop(job, r)
    copies = (job.M + job.N + 2 * job.n_out) * r.column
    through_time = job.N * (r.unit_back + job.connections * r.link_back) * (1 + min(1, job.N / CACHED_UNITS))
    return K * (products + copies + through_time) / job.threads


def ridge_readout(job: Job, r: Rates) -> float:
    """Return the time of the ridge readout: one pass, the choice of mu and U; by iterations, one pass for each."""
    K = job.frames + job.held_out
    if job.iterative:
        return _solved_by_passes(job, K, r, conjugate_gradients.MAX_SOLVER_ITERATIONS)
    return states(job, K, r) + gram(job, K, r) + choose(job, r) + solve(job, r)


def _solved_by_passes(job: Job, K: int, r: Rates, iterations: int) -> float:
    """Return the time of U by conjugate gradients over K frames, at most: a pass for each, states computed or kept."""
    runs = 1 if conjugate_gradients.kept_bytes(K, job.N, job.itemsize) else iterations + 1
    return runs * states(job, K, r) + (iterations + 1) * _products(job, K, r)


def _products(job: Job, K: int, r: Rates) -> float:
    """Return the time of H_c'(H_c D) over K frames."""
    return NARROW_PRODUCT_FACTOR * K * 4 * job.M * job.n_out * _flop(job, r) / job.threads


def softmax_readout(job: Job, r: Rates) -> float:
    """Return the time that the softmax readout adds: for each strength, mini-batches preconditioned by G^-1."""
    K = max(job.frames, softmax.MIN_STEPS_PER_STRENGTH * softmax.FRAMES_PER_BATCH)
    rank = SKETCH_RANK if job.iterative else job.M
    step = 2 * job.M * rank * job.n_out / softmax.FRAMES_PER_BATCH + 4 * job.M * job.n_out / job.threads
    inverse = job.M * rank**2 * (r.factor / 3 + 2 * r.flop64)
    exponentials = 2 * K * job.n_out * r.column / job.threads
    strengths = 1 if job.refine_epochs else TYPICAL_STRENGTHS
    return strengths * (states(job, K, r) + K * step * _flop(job, r) + exponentials + inverse)


def refining(job: Job, r: Rates) -> float:
    """Return the time of the last epochs on the cross entropy: the gradient, and a step of the readout per batch."""
    rank = SKETCH_RANK if job.iterative else job.M
    steps = 1 if job.batch is None else max(1, job.frames // job.batch)
    readout_steps = steps * 2 * job.M * rank * job.n_out * _flop(job, r)
    pass_over = states(job, job.frames, r) + gradient(job, job.frames, r) + states(job, job.held_out, r)
    exponentials = 2 * (job.frames + job.held_out) * job.n_out * r.column / job.threads
    return job.refine_epochs * (pass_over + readout_steps + exponentials)


def epoch(job: Job, r: Rates) -> float:
    """Return the time of an epoch: statistics, U and gradient of each mini-batch, or two passes over all the data."""
    K = job.frames
    solutions = 1 if job.batch is None else max(1, K // job.batch)
    passes_over = 2 if job.batch is None else 1
    if job.iterative and job.batch is None:  # U is solved by passes over all the data
        solution = _solved_by_passes(job, K, r, trackers.ITERATIONS_PER_EPOCH)
        return solution + states(job, K, r) + gradient(job, K, r) + states(job, job.held_out, r)
    if job.iterative:
        updates = trackers.ITERATIONS_PER_BATCH * _products(job, K, r)
        return passes_over * states(job, K, r) + updates + gradient(job, K, r) + states(job, job.held_out, r)
    validation = states(job, job.held_out, r) + 2 * job.held_out * job.M * job.n_out * _flop(job, r)
    learning = passes_over * states(job, K, r) + gram(job, K, r) + solutions * solve(job, r) + gradient(job, K, r)
    return learning + validation


def seconds(job: Job, r: Rates) -> float:
    """Return the time of the whole fit."""
    learning = job.epochs * epoch(job, r) + (ridge_readout(job, r) if job.epochs else 0.0)
    one = learning + ridge_readout(job, r) + (softmax_readout(job, r) if job.softmax else 0.0) + refining(job, r)
    return one * math.ceil(job.networks / thread_count())


def _flop(job: Job, r: Rates) -> float:
    """Return the time of one operation in the precision of the states."""
    return r.flop if job.itemsize == 4 else r.flop64


def _group_frames(job: Job) -> int:
    """Return the frames of a group of sequences (`sequences.batching`) if all are as long as the longest one."""
    K, tile = frames_at_once(job.N), LANES * max(1, job.longest)
    return K if tile > K else K - K % tile


def statistics_bytes(job: Job) -> float:
    """Return the bytes of a pass for G: the batches on all threads, those that wait, and the Gram matrices."""
    K = min(_group_frames(job), job.frames)
    if job.bidirectional:
        K = max(K, job.longest)  # time is not cut
    at_work = min(job.threads * K, job.frames)
    units = job.N * (2 if job.bidirectional else 1)
    working = job.itemsize * (units + max(job.N, job.M) + job.n_in)  # X, f(z) and H, then X, H and H_c
    if job.wide:
        tiles = job.threads * MAX_COLUMNS_PER_TILE**2 * 8
        return at_work * working + K * job.M * (job.itemsize + 8) + tiles + job.M**2 * 8
    levels = math.ceil(
        math.log(math.ceil(job.frames / K), TERMS_PER_NODE)
    )  # of the tree of sums; one sum waits on each
    return at_work * (working + 8 * job.M) + (job.threads + 1 + max(1, levels)) * job.M**2 * 8


def ridge_bytes(job: Job) -> float:
    """Return the bytes of the ridge readout: the most of the pass for the held-out G, the choice of mu, and U."""
    one = job.M**2 * 8
    kept = one * (2 if job.held_out else 1)
    choosing = 1.3 * one if job.wide and job.held_out else 5 * one
    return max(kept - one + statistics_bytes(job), kept + (choosing if job.choose else 1.3 * one))


def softmax_bytes(job: Job) -> float:
    """Return the bytes of the softmax readout: G, its inverse while it is computed, and batches of states."""
    K = min((job.threads + 1) * 4 * softmax.FRAMES_PER_BATCH, job.frames)
    return 6 * job.M**2 * 8 + K * 3 * (job.N + job.M) * job.itemsize  # in parts, joined, and in use


def learning_bytes(job: Job) -> float:
    """Return the bytes of an epoch: states, f(z), H_c and errors of a batch of at least the longest sequence, and G."""
    most = min(_group_frames(job), job.frames) * job.threads if job.batch is None else job.batch
    K = max(most, job.longest)
    states = (3 if job.bidirectional else 2) * job.N
    batch = K * (job.itemsize * (states + job.M) + 8 * max(job.N, job.M))
    return max(batch + (job.threads + 3) * job.M**2 * 8, ridge_bytes(job))


def nbytes(job: Job) -> float:
    """Return the number of bytes that the fit needs at some time, beside the data."""
    if job.iterative:
        return SPARE_BYTES + iterative_bytes(job)
    steps = [ridge_bytes(job)]
    if job.softmax:
        steps.append(softmax_bytes(job))
    if job.epochs:
        steps.append(learning_bytes(job))
    return SPARE_BYTES + max(steps) * min(job.networks, thread_count())


def iterative_bytes(job: Job) -> float:
    """Return the bytes without G: a sketch while it is computed, conjugate gradients, and batches of states and H_c."""
    sketch = job.M * (SAMPLE_FRAMES * (job.itemsize + 8) + 2 * SKETCH_RANK * 8)
    K = frames_at_once(job.N) if not job.epochs else max(frames_at_once(job.N), job.batch or 0, job.longest)
    return sketch + 8 * job.M * job.n_out * 8 + (job.threads + 1) * K * 4 * job.M * job.itemsize


def kept_bytes(job: Job) -> float:
    """Return the bytes of the states of a large network that are kept because there is room for them."""
    return conjugate_gradients.kept_bytes(job.frames, job.N, job.itemsize) if job.iterative else 0


@cache
def measured() -> Rates:
    """Return the typical rates, scaled by the time of a small product on this machine; takes about 50 ms.

    It is the time of the processor, where that can be told finely enough: other work on the machine does not count.
    """
    fine = time.get_clock_info("thread_time").resolution < 1e-5
    now = time.thread_time if fine else time.perf_counter
    A = np.ones((512, 512), np.float32)
    with one_blas_thread():
        A @ A
        times = []
        for _ in range(10):
            start = now()
            A @ A
            times.append(now() - start)
    return TYPICAL_RATES.scaled(min(times) / (2 * 512**3 * TYPICAL_RATES.flop))


def check(job: Job, verbose: int) -> None:
    """Announce a long fit, if `verbose`; raise MemoryError if it does not fit in memory."""
    need, have = nbytes(job), available_memory()
    if have is not None and need > have:
        raise MemoryError(
            f"this fit needs about {_size(need)} and {_size(have)} are free: hidden_units={job.N}, {job.frames} frames"
            f"{'' if job.batch is None else f', {job.batch} in a mini-batch'}. Give fewer hidden_units"
            f"{', a smaller batch_size in `learning`' if job.epochs and job.batch else ''}"
            f"{', shorter sequences' if job.epochs and learning_bytes(job) > ridge_bytes(job) else ''}"
            f"{', dtype=float32' if job.itemsize == 8 else ''} or more memory."
        )
    if verbose and seconds(job, TYPICAL_RATES) > ANNOUNCED_SECONDS / 4:
        long = seconds(job, measured())
        if long > ANNOUNCED_SECONDS:
            free = "" if have is None else f"; you have {_size(have)}"
            show_if_verbose(verbose, f"this fit needs about {_size(need)} and {clock(long)}{free}")


def _size(count: float) -> str:
    """Return a number of bytes as MB or GB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"

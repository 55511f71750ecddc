"""Frame classifiers of PyTorch as their users would set them: TCN, GRU, LSTM, RNN and their two-directional forms.

`train(data, settings, core_seconds, seed)` trains one network for a number of processor seconds of one core. All
arrays are time-major, (steps, sequences, columns): the shifted copies of a dilated convolution are then plain slices,
its sum over taps is one matrix product (67 GFLOPS on a core whose products reach 67; Conv1d reaches 50 to 60), and
channels lie side by side for layer norm.
"""

import copy
import time
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence

from echolearn.speech import normalised, warp_matrix, with_context, with_differences
from echolearn.speech._augmentation import FACTOR_STEPS
from echolearn.speech._features import CEPSTRA

PADDING = -1
FILTER_BANK = {"low": 133.33, "high": 6855.5, "lifter": 0}  # by which AN4's cepstra were computed
DEFAULTS = {
    "dropout": 0.2,
    "input_dropout": 0.0,
    "step_size": 3e-3,
    "weight_decay": 0.01,
    "clip": 1.0,
    "batch_size": 8,
    "warm_up": 0.05,  # part of the budget
    "schedule": "cosine",  # or "linear", both fall to zero
    "average": 0.0,  # decay per step of the averaged weights; 0 uses the weights as they are
    "smoothing": 0.0,  # of the labels
    "warp": 0.0,  # spread of the vocal-tract warps that every utterance gets anew in every epoch
    "maps": 0.0,  # spread of the random matrices by which an utterance is multiplied, as by `speaker_maps`
    "mask_frames": 0,  # longest stretch of frames that is set to zero, two per utterance
    "muon": 0.0,  # step size of Muon for the matrices of the blocks; 0: AdamW for all weights
}
# Newton-Schulz steps a X + b X X'X + c (X X')² X in float32: those of our own optimizer, so that a step costs as little
NEWTON_SCHULZ_STEPS = ((8.0934, -23.6205, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
RECURRENT = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM, "bgru": nn.GRU, "blstm": nn.LSTM}
EVALUATIONS = 30  # at most so many valid errors over the budget


class Dropout(nn.Module):
    """Dropout whose mask comes from random bytes: nn.Dropout's generator takes six times as long on one core."""

    def __init__(self, rate, rng):
        super().__init__()
        self.threshold, self.rng = round(256 * rate), rng

    def forward(self, x):
        """Return x with a part of its numbers set to zero and the others scaled up, while training."""
        if not self.training or not self.threshold:
            return x
        random = torch.from_numpy(np.frombuffer(self.rng.bytes(x.numel()), np.uint8).copy()).view(x.shape)
        return x * (random >= self.threshold).to(x.dtype).mul_(256 / (256 - self.threshold))


class Convolution(nn.Module):
    """A dilated convolution over time that sees frames up to the present one, or as many on both sides."""

    def __init__(self, n_in, n_out, kernel, dilation, causal):
        super().__init__()
        reach = (kernel - 1) * dilation
        self.before = reach if causal else reach // 2
        self.after = reach - self.before
        self.shifts = [tap * dilation for tap in range(kernel)]
        self.taps = nn.Linear(kernel * n_in, n_out)

    def forward(self, x):
        """Return (steps, sequences, n_out); what lies outside of x counts as zero."""
        if len(self.shifts) == 1:
            return self.taps(x)
        padded = F.pad(x, (0, 0, 0, 0, self.before, self.after))
        return self.taps(torch.cat([padded[shift : shift + len(x)] for shift in self.shifts], dim=2))


class BatchNorm(nn.BatchNorm1d):
    """Batch norm over all frames of all sequences."""

    def forward(self, x):
        """Return x normalised, (steps, sequences, columns)."""
        return super().forward(x.flatten(0, 1)).view_as(x)


NORMS = {"layer": nn.LayerNorm, "batch": BatchNorm}


class Block(nn.Module):
    """Norm, dilated convolution, ReLU, dropout, second convolution, dropout, and the way around them."""

    def __init__(self, settings, dilation, rng):
        super().__init__()
        channels, hidden = settings["channels"], settings.get("hidden", settings["channels"])
        causal = settings["kind"] == "tcn"
        self.norm = NORMS[settings.get("norm", "layer")](channels)
        self.first = Convolution(channels, hidden, settings.get("kernel", 3), dilation, causal)
        self.second = Convolution(hidden, channels, settings.get("second_kernel", 1), dilation, causal)
        self.dropout = Dropout(settings["dropout"], rng)

    def forward(self, x, mask):
        """Return (steps, sequences, channels); a mask keeps the padding out of what looks ahead."""
        if mask is None:
            return x + self.dropout(self.second(self.dropout(F.relu(self.first(self.norm(x))))))
        hidden = self.dropout(F.relu(self.first(self.norm(x) * mask)))
        return x + self.dropout(self.second(hidden * mask))


class TCN(nn.Module):
    """Residual blocks of dilated convolutions, each twice as dilated as the one before, and a linear layer."""

    def __init__(self, settings, n_in, n_out, rng):
        super().__init__()
        channels, self.causal = settings["channels"], settings["kind"] == "tcn"
        self.input_dropout, self.dropout = Dropout(settings["input_dropout"], rng), Dropout(settings["dropout"], rng)
        self.input = nn.Linear(n_in, channels)
        cycle = settings.get("cycle", settings["blocks"])  # blocks after which the dilation starts at 1 again
        self.blocks = nn.ModuleList(Block(settings, 2 ** (i % cycle), rng) for i in range(settings["blocks"]))
        self.norm = nn.LayerNorm(channels)
        self.output = nn.Linear(channels, n_out)

    def forward(self, frames, lengths):
        """Return outputs (steps, sequences, n_out) for frames (steps, sequences, n_in) that are padded at the end."""
        mask = None
        if not self.causal:
            mask = (torch.arange(len(frames))[:, None] < lengths)[:, :, None].to(frames.dtype)
        x = self.input(self.input_dropout(frames))
        for block in self.blocks:
            x = block(x, mask)
        return self.output(self.dropout(F.relu(self.norm(x))))


class Recurrent(nn.Module):
    """Recurrent layers, in one direction of time or both, and a linear layer on every frame."""

    def __init__(self, settings, n_in, n_out, rng):
        super().__init__()
        kind, units = settings["kind"], settings["units"]
        self.input_dropout, self.dropout = Dropout(settings["input_dropout"], rng), Dropout(settings["dropout"], rng)
        # Two layers rather than bidirectional=True, which would start in the padding of short sequences; packing would
        # avoid that too, but PyTorch's fast LSTM does not take it: 48 s per epoch instead of 2.
        directions = 2 if kind in ("blstm", "bgru") else 1
        self.layers = nn.ModuleList()
        for i in range(settings.get("layers", 1)):
            width = directions * units if i else n_in
            self.layers.append(nn.ModuleList(RECURRENT[kind](width, units) for _ in range(directions)))
        self.output = nn.Linear(directions * units, n_out)
        for name, weights in self.layers.named_parameters():
            if "weight_hh" in name:
                for gate in weights.data.split(units):
                    nn.init.orthogonal_(gate)
            elif "bias_ih" in name and "lstm" in kind:
                weights.data[units : 2 * units] += 1.0  # the forget gates start open

    def forward(self, frames, lengths):
        """Return outputs (steps, sequences, n_out) for frames (steps, sequences, n_in) that are padded at the end."""
        x = self.input_dropout(frames)
        for ahead, *back in self.layers:
            states = [ahead(x)[0]] + [flipped(layer(flipped(x, lengths))[0], lengths) for layer in back]
            x = self.dropout(torch.cat(states, dim=2) if back else states[0])
        return self.output(x)


def flipped(frames, lengths):
    """Return every sequence in reverse; its padding stays at the end."""
    step = torch.arange(len(frames))[:, None]
    index = torch.where(step < lengths, lengths - 1 - step, step)
    return frames.gather(0, index[:, :, None].expand_as(frames))


def network_of(settings, n_in, n_out, seed):
    """Return a network with random weights."""
    torch.manual_seed(seed)
    rng = np.random.Generator(np.random.SFC64(seed))
    return (TCN if settings["kind"].startswith("tcn") else Recurrent)(settings, n_in, n_out, rng)


def prepared(cepstra):
    """Return 117 columns per frame: differences, normalised per utterance, a context of three frames."""
    return [torch.from_numpy(with_context(normalised(with_differences(c)))) for c in cepstra]


class Warped:
    """Training utterances, each warped by a random factor, and mapped by a random matrix, whenever they are drawn.

    Differences over time are linear, so a warp of the 13 cepstra is the same matrix on their differences; those are
    computed once. A draw of all utterances takes a twentieth of the seconds of an epoch.
    """

    def __init__(self, cepstra, spread, rng, maps=0.0):
        self.frames = [torch.from_numpy(with_differences(c)).view(-1, 3, CEPSTRA) for c in cepstra]
        self.rng, self.maps = rng, maps
        factors = (1 + spread) ** np.linspace(-1, 1, FACTOR_STEPS)
        self.matrices = [torch.from_numpy(warp_matrix(f, **FILTER_BANK).T.astype(np.float32)) for f in factors]

    def draw(self):
        """Return the features of all utterances, as `prepared` does, under new warps."""
        factors = self.rng.integers(FACTOR_STEPS, size=len(self.frames))
        return [self.warped(i, k) for i, k in enumerate(factors.tolist())]

    def warped(self, i, k):
        """Return the features of an utterance under one warp, and a new map."""
        x = scaled((self.frames[i] @ self.matrices[k]).flatten(1))
        if self.maps:
            noise = self.rng.standard_normal((CEPSTRA, CEPSTRA), dtype=np.float32) / np.float32(CEPSTRA**0.5)
            matrix = torch.eye(CEPSTRA) + self.maps * torch.from_numpy(noise)
            x = scaled((x.view(-1, 3, CEPSTRA) @ matrix).flatten(1))
        return torch.cat([torch.cat([x[:1], x[:-1]]), x, torch.cat([x[1:], x[-1:]])], dim=1)


def scaled(x):
    """Return columns of zero mean and unit deviation."""
    deviation, mean = torch.std_mean(x, dim=0, correction=0)
    return (x - mean) / deviation.clamp_min(1e-5)


def batches(X, y, size, rng=None):
    """Return padded (frames, labels, lengths) of utterances of similar length; rng varies which are in one batch."""
    lengths = np.array([len(x) for x in X])
    order = np.argsort(lengths if rng is None else lengths * rng.uniform(0.9, 1.1, len(X)))
    chunks = [order[i : i + size] for i in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(chunks)
    for chunk in chunks:
        labels = pad_sequence([y[i] for i in chunk], padding_value=PADDING)
        yield pad_sequence([X[i] for i in chunk]), labels, torch.from_numpy(lengths[chunk])


def mask_stretches(frames, lengths, longest, rng):
    """Set two random stretches of every sequence to zero, in place."""
    for i, length in enumerate(lengths.tolist()):
        for _ in range(2):
            start = rng.integers(length)
            frames[start : start + rng.integers(longest + 1), i] = 0.0


def probabilities(network, cepstra):
    """Return one array (frames, classes) per utterance."""
    X, found = prepared(cepstra), []
    network.eval()
    with torch.inference_mode():
        for x in X:
            found.append(F.softmax(network(x[:, None], torch.tensor([len(x)]))[:, 0], dim=1).numpy())
    return found


def frame_error(network, padded):
    """Return the percentage of frames that are classified wrongly."""
    network.eval()
    right = total = 0
    with torch.inference_mode():
        for frames, labels, lengths in padded:
            right += int((network(frames, lengths).argmax(dim=2) == labels).sum())
            total += int(lengths.sum())
    network.train()
    return 100 * (1 - right / total)


def rate(settings, done):
    """Return the share of the step size when a part of the budget is spent."""
    warm_up = settings["warm_up"]
    if done < warm_up:
        return 0.05 + 0.95 * done / warm_up
    left = (1 - done) / (1 - warm_up)
    return left if settings["schedule"] == "linear" else (1 - np.cos(np.pi * left)) / 2


class Clock:
    """Processor seconds of this process while it runs; it can be stopped for what does not count."""

    def __init__(self):
        self.start, self.spent = time.process_time(), 0.0

    def seconds(self):
        """Return the seconds that count until now."""
        return self.spent + time.process_time() - self.start

    def stop(self):
        """Stop counting."""
        self.spent = self.seconds()

    def resume(self):
        """Count again."""
        self.start = time.process_time()


def step(network, optimizers, batch, settings):
    """Change the weights after one batch."""
    frames, labels, lengths = batch
    network.zero_grad()
    outputs = network(frames, lengths).flatten(0, 1)
    loss = F.cross_entropy(outputs, labels.flatten(), ignore_index=PADDING, label_smoothing=settings["smoothing"])
    loss.backward()
    clip_grad_norm_(network.parameters(), settings["clip"], foreach=True)
    for optimizer in optimizers:
        optimizer.step()


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum (Jordan and others, 2024) for matrices; those of one shape are multiplied together."""

    def __init__(self, matrices, step_size, weight_decay):
        super().__init__(matrices, {"lr": step_size, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        """Change the matrices along their momentum, all of whose singular values become about 1."""
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.mul_(0.95).add_(p.grad)
                by_shape.setdefault(p.shape, []).append((p, p.grad.add(momentum, alpha=0.95)))
            for (rows, columns), pairs in by_shape.items():
                X = torch.stack([ahead for _, ahead in pairs])
                X = orthogonalised(X) if rows <= columns else orthogonalised(X.mT).mT
                size = group["lr"] * max(1.0, rows / columns) ** 0.5
                for (p, _), direction in zip(pairs, X, strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=size)


def orthogonalised(X):
    """Return wide matrices (n, rows, columns) with the same singular vectors and singular values near 1."""
    A = X @ X.mT
    squares = A.flatten(1).norm(dim=1).add(1e-30)[:, None, None]  # at least the largest squared singular value
    X = X / squares.sqrt()
    for a, b, c in NEWTON_SCHULZ_STEPS:
        A = X @ X.mT
        X = torch.baddbmm(X, torch.baddbmm(A, A, A, beta=b, alpha=c), X, beta=a)
    return X


def optimizers_of(network, settings):
    """Return AdamW, with Muon for the matrices of the blocks if it is wanted; biases and norms have no weight decay."""
    hidden = {id(p) for p in network.blocks.parameters() if p.ndim > 1} if settings["muon"] else set()
    decay = settings["weight_decay"]
    others = [p for p in network.parameters() if id(p) not in hidden]
    groups = [
        {"params": [p for p in others if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in others if p.ndim <= 1], "weight_decay": 0.0},
    ]
    found = [torch.optim.AdamW(groups, lr=settings["step_size"], betas=(0.9, 0.98), fused=True)]
    if hidden:
        found.append(Muon([p for p in network.parameters() if id(p) in hidden], settings["muon"], decay))
    return found


def train(data, settings, core_seconds, seed=0):
    """Train a network on train for processor seconds of one core and keep its best epoch on valid.

    `data` is {"train" | "valid": (list of cepstra (frames, 13), list of labels)}; `settings` are those of DEFAULTS and
    of the kind of network. Preparing the features and augmenting them counts, computing valid errors does not. Return
    a function from a list of cepstra to a list of probabilities (frames, classes), and facts about the training.
    """
    torch.set_num_threads(1)
    settings, rng = DEFAULTS | settings, np.random.default_rng(seed)
    n_out = 1 + max(int(labels.max()) for part in ("train", "valid") for labels in data[part][1])
    y = {part: [torch.from_numpy(np.asarray(labels, np.int64)) for labels in data[part][1]] for part in data}
    held_out = list(batches(prepared(data["valid"][0]), y["valid"], 32))
    clock = Clock()
    changed = settings["warp"] or settings["maps"]
    augmented = Warped(data["train"][0], settings["warp"], rng, settings["maps"]) if changed else None
    X = augmented.draw() if augmented else prepared(data["train"][0])
    network = network_of(settings, X[0].shape[1], n_out, seed)
    optimizers = optimizers_of(network, settings)
    averaged = copy.deepcopy(network) if settings["average"] else network
    curve, best, best_weights, epochs, evaluated, done = [], np.inf, None, 0.0, 0.0, 0.0
    per_epoch = -(-len(X) // settings["batch_size"])
    while done < 1:
        for batch in batches(X, y["train"], settings["batch_size"], rng):
            done = clock.seconds() / core_seconds
            if done >= 1:
                break
            for group in (group for optimizer in optimizers for group in optimizer.param_groups):
                group["lr"] = group.setdefault("peak", group["lr"]) * rate(settings, done)
            if settings["mask_frames"]:
                mask_stretches(batch[0], batch[2], settings["mask_frames"], rng)
            step(network, optimizers, batch, settings)
            epochs += 1 / per_epoch
            if settings["average"]:
                pull(averaged, network, settings["average"])
        if augmented and done < 1:
            X = augmented.draw()
        if done >= 1 or done - evaluated >= 1 / EVALUATIONS:
            clock.stop()
            evaluated, error = done, frame_error(averaged, held_out)
            curve.append((round(clock.seconds(), 2), error))
            if error < best:
                best, best_weights = error, copy.deepcopy(averaged.state_dict())
            clock.resume()
    averaged.load_state_dict(best_weights)
    facts = {
        "core_seconds": clock.seconds(),
        "epochs": round(epochs, 2),
        "weights": sum(p.numel() for p in network.parameters()),
        "valid_error": best,
        "curve": curve,
    }
    return partial(probabilities, averaged), facts


@torch.no_grad()
def pull(averaged, network, decay):
    """Move the averaged weights a little towards those of the network."""
    torch._foreach_lerp_(list(averaged.parameters()), list(network.parameters()), 1 - decay)
    for mean, now in zip(averaged.buffers(), network.buffers(), strict=True):
        mean.copy_(now)

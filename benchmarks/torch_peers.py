"""PyTorch on the same data: RNN, LSTM and BLSTM frame classifiers, and autograd through the ridge solve."""

import argparse
import copy
import json
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_sequence

from an4 import load_an4

THREADS = 2


class FrameClassifier(nn.Module):
    """Recurrent layer, then a linear layer on each frame; works on packed frames throughout."""

    def __init__(self, model, n_in, units, n_out):
        super().__init__()
        if model == "rnn":
            self.recurrent = nn.RNN(n_in, units, nonlinearity="tanh")
        else:
            self.recurrent = nn.LSTM(n_in, units, bidirectional=model == "blstm")
        self.output = nn.Linear(units * (2 if model == "blstm" else 1), n_out)

    def forward(self, packed):
        return self.output(self.recurrent(packed)[0].data)


def batches(X, y, size):
    """Packed (frames, labels) of utterances with similar lengths: short ones never wait for long ones."""
    order = sorted(range(len(X)), key=lambda i: -len(X[i]))
    chunks = [order[i : i + size] for i in range(0, len(order), size)]
    return [
        (
            pack_sequence([torch.from_numpy(X[i]) for i in chunk]),
            pack_sequence([torch.from_numpy(y[i]) for i in chunk]).data,
        )
        for chunk in chunks
    ]


def frame_error(network, packed):
    network.eval()
    with torch.inference_mode():
        wrong = sum(int((network(frames).argmax(dim=1) != labels).sum()) for frames, labels in packed)
    network.train()
    return 100 * wrong / sum(len(labels) for _, labels in packed)


def train(
    data, model, units, *, step_size, epochs=12, budget=None, batch_size=16, clip=1.0, final=0.05, seed=0
):
    """Train on train, choose the epoch on valid -> network, record of what it reached and when.

    The step size falls linearly to `final` times its start over the epochs, or over `budget` seconds when
    that is given. Seconds count training only: reading errors off after an epoch is free for every method.
    """
    torch.set_num_threads(THREADS)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    X, y = data["train"]
    n_out = 1 + max(int(labels.max()) for _, split in data.values() for labels in split)
    network = FrameClassifier(model, X[0].shape[1], units, n_out)
    optimizer = torch.optim.Adam(network.parameters(), lr=step_size)
    criterion = nn.CrossEntropyLoss()
    held_out = {name: batches(*data[name], 64) for name in ("valid", "test")}

    curve, best, best_weights = [], {"valid": np.inf}, None
    seconds, epoch, done = 0.0, 0, 0.0
    start = time.perf_counter()
    training = batches(X, y, batch_size)
    while done < 1:
        order = rng.permutation(len(training))
        for i, chosen in enumerate(order):
            if budget is None:
                done = (epoch + i / len(order)) / epochs
            else:
                done = (seconds + time.perf_counter() - start) / budget
                if done >= 1:
                    break
            for group in optimizer.param_groups:
                group["lr"] = step_size * (1 - (1 - final) * done)
            frames, labels = training[chosen]
            optimizer.zero_grad()
            criterion(network(frames), labels).backward()
            clip_grad_norm_(network.parameters(), clip)
            optimizer.step()
        epoch += 1
        if budget is None:
            done = epoch / epochs
        seconds += time.perf_counter() - start
        errors = {name: frame_error(network, packed) for name, packed in held_out.items()}
        curve.append((round(seconds, 2), errors["valid"], errors["test"]))
        if errors["valid"] < best:
            best, best_weights, best_test = (
                errors["valid"],
                copy.deepcopy(network.state_dict()),
                errors["test"],
            )
        start = time.perf_counter()
    network.load_state_dict(best_weights)
    return network, {
        "model": model,
        "units": units,
        "weights": sum(p.numel() for p in network.parameters()),
        "step_size": step_size,
        "epochs": epoch,
        "budget": budget,
        "seed": seed,
        "utterances": len(X),
        "valid_error": best["valid"],
        "test_error": best["test"],
        "train_seconds": seconds,
        "curve": curve,
    }


def sweep(data, model, units, step_sizes, **settings):
    """The record of the step size with the lowest valid error, and the valid error of every one tried."""
    records = [train(data, model, units, step_size=step, **settings)[1] for step in step_sizes]
    best = min(records, key=lambda record: record["valid_error"])
    return best | {"tried": {record["step_size"]: record["valid_error"] for record in records}}


def every(data, n):
    """The same data with only every n-th training utterance."""
    X, y = data["train"]
    return data | {"train": (X[::n], y[::n])}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument("--model", choices=["rnn", "lstm", "blstm"], required=True)
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--budget", type=float, help="train for this many seconds instead of epochs")
    parser.add_argument("--every", type=int, default=1, help="use every n-th training utterance")
    parser.add_argument("--step-sizes", type=float, nargs="+", default=[2e-3], help="chosen among on valid")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        json.dumps(
            sweep(
                every(load_an4(options.data), options.every),
                options.model,
                options.units,
                options.step_sizes,
                epochs=options.epochs,
                budget=options.budget,
                seed=options.seed,
            )
        )
    )

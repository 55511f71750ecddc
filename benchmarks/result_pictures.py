"""Draw the pictures of README.md and docs/ that show results, from benchmarks/results/.

    python benchmarks/result_pictures.py

contest.svg: test error over training seconds. table1.svg: Table 1, the paper's and ours. learning.svg: what each step
of learning gives. sequences.svg: errors on whole series beside MiniRocket's. sequence_ranks.svg: mean ranks.
defaults.svg: values of one series with default settings. phones.svg: phone errors of synthetic speech.
"""

import itertools

import matplotlib
import numpy as np
from scipy.stats import rankdata, studentized_range

from echolearn.paper.table1 import PAPER_TIMIT
from echolearn.paper.table1_report import COLUMNS
from paper_tables import scaled_content
from sequences import OURS, complete_methods, table_of
from table_text import ROOT, load

matplotlib.use("agg")
matplotlib.rcParams.update(
    {"svg.hashsalt": "echolearn", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
)
from matplotlib import pyplot as plt  # noqa: E402  (after the choice of a backend)

BLUE, ORANGE, GREY = "#2a6fb0", "#d9762b", "#777777"
PAPER_COLUMNS = {
    "esn": ("fixed", ORANGE, "--"),
    "W_m1": ("W, m=1", GREY, ":"),
    "W_Wrec_m1": ("W and W_rec, m=1", BLUE, ":"),
    "W_Wrec_m3": ("W and W_rec, m=3", BLUE, "-"),
}  # label, colour and style
WAYS = {
    "esn": "fixed weights, ridge readout",
    "W_m1": "W learned, m=1",
    "W_Wrec_m1": "W and W_rec learned, m=1",
    "W_Wrec_m3": "W and W_rec learned, m=3",
    "W_Wrec_full": "W and W_rec learned, whole sequence",
    "esn_ours": "fixed, our defaults, softmax readout",
    "ours": "learned, our defaults, softmax readout",
}  # the columns of Table 1 in the order in which they are drawn
WAYS_UNITS = 500


def contest():
    """Return the test errors of single networks over the training seconds, ours and PyTorch's."""
    rows = load("contest")["rows"]
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    lines = (
        ("single", "torch", "PyTorch: best tuned TCN, LSTM or GRU", ORANGE, 5),
        ("muon", "torch", "PyTorch: tuned TCN with our optimizer", GREY, 0),
        ("single", "ours", "echolearn: DeepESNClassifier", BLUE, -5),
    )
    for row, side, label, colour, height in lines:
        found = sorted((r["budget"], r[side]["test"]) for r in rows if r["row"] == row and r[side]["test"])
        seconds, errors = zip(*((s, test["mean"]) for s, test in found), strict=True)
        bars = [[test["mean"] - test["least"], test["most"] - test["mean"]] for _, test in found]
        axes.errorbar(seconds, errors, yerr=list(zip(*bars, strict=True)), marker="o", capsize=3, color=colour)
        point = {"xytext": (10, height), "textcoords": "offset points", "va": "center", "annotation_clip": False}
        axes.annotate(f"{errors[-1]:.1f} %  {label}", (seconds[-1], errors[-1]), color=colour, **point)
    ticks = sorted({r["budget"] for r in rows if r["row"] == "single"})
    axes.set(xscale="log", xlabel="training seconds on two cores", ylabel="wrong frames in %")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    title = "Phone states of real speech (AN4, new speakers): test error, lowest to highest of three seeds"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def table1():
    """Return the errors of the paper's four columns over the units: the paper's on TIMIT, ours on AN4."""
    printed = [(row["units"], row["test_error"]) for row in PAPER_TIMIT]
    measured = [
        (row["units"], {name: entry["test_error"] for name, entry in row["columns"].items()})
        for row in scaled_content()["rows"]
    ]
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
    corpora = (("The paper, TIMIT (183 states)", printed), ("echolearn, AN4 (102 states)", measured))
    for axes, (title, rows) in zip(panels, corpora, strict=True):
        for column, (label, colour, style) in PAPER_COLUMNS.items():
            points = [(units, 100 * errors[column]) for units, errors in rows if column in errors]
            axes.plot(*zip(*points, strict=True), style, marker="o", ms=4, color=colour, label=label)
        axes.set(xscale="log", xlabel="hidden units", xlim=(70, 45_000), ylim=(0, 80))
        axes.set_xticks([100, 500, 2_000, 10_000, 30_000], ["100", "500", "2,000", "10,000", "30,000"])
        axes.minorticks_off()
        axes.set_title(title, fontsize=10, loc="left")
    panels[0].set_ylabel("wrong frames in %")
    panels[0].legend(frameon=False, loc="lower left", fontsize=9)
    return figure


def learning():
    """Return what each step of learning gives on AN4: bars with errors and processor seconds."""
    row = next(row for row in load("table1_an4")["rows"] if row["units"] == WAYS_UNITS)
    ways = [(label, row["columns"][column]) for column, label in WAYS.items() if column in row["columns"]]
    bars = [(label, 100 * entry["test_error"], entry["processor_seconds"]) for label, entry in ways]
    deep = [r for r in load("contest")["rows"] if r["row"] == "single" and r["ours"]["name"].startswith("deep")]
    for found in sorted(deep, key=lambda r: r["budget"]):
        ours = found["ours"]
        label = f"learned, six layers of {ours['settings']['units']} units"
        bars.append((label, ours["test"]["mean"], ours["core_seconds"]))
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(bars) + 1), layout="constrained")
    labels, errors, seconds = zip(*bars, strict=True)
    colours = [ORANGE if label.startswith("fixed") else BLUE for label in labels]
    axes.barh(labels, errors, color=colours)
    for place, (error, spent) in enumerate(zip(errors, seconds, strict=True)):
        axes.text(error + 0.5, place, f"{error:.1f} %, {spent:.0f} s of one core", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="wrong frames in %", xlim=(0, max(errors) * 1.45))
    title = f"What learning gives: phone states of AN4, test; one layer of {WAYS_UNITS} units, then deep networks"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def sequences():
    """Return the errors of `SeriesClassifier` over those of MiniRocket, a point per data set."""
    ours, theirs = table_of("error", [OURS, "MiniRocket"]).T
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    most = max(*ours, *theirs) * 1.05
    axes.plot([0, most], [0, most], color=GREY, lw=1)
    axes.scatter(theirs, ours, color=[BLUE if a <= b else ORANGE for a, b in zip(ours, theirs, strict=True)], s=22)
    axes.text(0.97, 0.06, "below the line: SeriesClassifier has fewer errors", transform=axes.transAxes, ha="right")
    axes.set(xlabel="wrong series in %, MiniRocket", ylabel="wrong series in %, ours", xlim=(0, most), ylim=(0, most))
    title = f"One label per series: test errors on {len(ours)} sets of the UCR archive, defaults on both sides"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def critical_difference(methods, sets):
    """Return the difference of mean ranks that Nemenyi's test at 5 % takes for real."""
    quantile = float(studentized_range.ppf(0.95, methods, np.inf)) / np.sqrt(2)
    return quantile * float(np.sqrt(methods * (methods + 1) / (6 * sets)))


def sequence_ranks():
    """Return the mean ranks on whole series; a bar joins methods that are no farther apart than that difference."""
    methods = complete_methods()
    errors = table_of("error", methods)
    ranks = rankdata(errors.round(9), axis=1).mean(axis=0)
    order, far = np.argsort(ranks), critical_difference(len(ranks), len(errors))
    figure, axes = plt.subplots(figsize=(8, 1.9), layout="constrained")
    for k, (method, rank) in enumerate(zip(np.array(methods)[order], ranks[order], strict=True)):
        axes.plot([rank, rank], [0, 1 + k], color=BLUE if method == OURS else GREY)
        side = "left" if k < len(order) / 2 else "right"  # beside the lines of the others
        axes.text(rank, 1.1 + k, f"{method} {rank:.2f}", ha=side, va="bottom")
    level = -0.5
    for first, last in itertools.combinations(range(len(order)), 2):
        ends = ranks[order[first]], ranks[order[last]]
        wider = first > 0 and ends[1] - ranks[order[first - 1]] <= far
        wider |= last + 1 < len(order) and ranks[order[last + 1]] - ends[0] <= far
        if ends[1] - ends[0] <= far and not wider:
            axes.plot(ends, [level, level], color="black", linewidth=4)
            level -= 0.6
    axes.set(xlabel=f"mean rank on {len(errors)} sets; bars: no difference at 5 % (Nemenyi, {far:.2f})", yticks=[])
    axes.spines["left"].set_visible(False)
    return figure


def defaults():
    """Return the missed variance of one long series: ours with default settings, and what others would use."""
    methods = {
        "ESNRegressor()": ("learned weights", BLUE),
        'ESNRegressor(learn="none")': ("fixed weights", "#9bbfe0"),
        "reservoirpy, Getting started": ("reservoirpy, its first tutorial", ORANGE),
        "RidgeCV, 10 steps": ("linear regression on 10 steps", GREY),
    }
    rows = load("defaults")["parts"]["series"]["rows"]
    works = list(dict.fromkeys(row["work"] for row in rows))
    figure, axes = plt.subplots(figsize=(8, 3.9), layout="constrained")
    for k, (method, (label, colour)) in enumerate(methods.items()):
        missed = [1 - next(r["median"] for r in rows if (r["work"], r["method"]) == (w, method)) for w in works]
        axes.plot(np.arange(len(works)) + 0.12 * (k - 1.5), missed, "o", ms=8, color=colour, label=label)
    labels = [work.replace(", ", "\n") for work in works]
    axes.set(yscale="log", xticks=range(len(works)), xticklabels=labels, ylabel="1 − R² on the test part")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("One long series, median of ten seeds; lower is better", x=0.01, ha="left", fontsize=10)
    return figure


def phones():
    """Return the phone errors of synthetic speech, of one layer and of deep networks, fixed and learned."""
    (row,) = load("table1_synthetic_phones")["rows"]
    names = [name for name in COLUMNS if name in row["columns"]]
    found = [100 * row["columns"][name]["test_error"] for name in names]
    spread = [100 * row["columns"][name]["test_error_deviation"] for name in names]
    figure, axes = plt.subplots(figsize=(8, 2.1), layout="constrained")
    axes.barh(names, found, xerr=spread, color=[BLUE if name in ("ours", "deep") else ORANGE for name in names])
    for k, (error, deviation) in enumerate(zip(found, spread, strict=True)):
        axes.text(error + deviation + 0.5, k, f"{error:.1f} %", va="center")
    axes.set(
        xlim=(0, 1.15 * max(found)),
        yticks=range(len(names)),
        yticklabels=[COLUMNS[name].long for name in names],
        xlabel="wrong phones in %",
    )
    axes.invert_yaxis()
    title = f"Phones of synthetic speech, test; {row['units']} units, deep networks with as many weights"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


PICTURES = (contest, table1, learning, sequences, sequence_ranks, defaults, phones)

if __name__ == "__main__":
    for drawn in PICTURES:
        path = ROOT / "docs" / "images" / f"{drawn.__name__}.svg"
        drawn().savefig(path, metadata={"Date": None})
        print(path.relative_to(ROOT))

"""Draw docs/images/learning.svg, the picture of the README, from results/table1_an4.json.

python benchmarks/learning_figure.py
"""

import matplotlib

from table_text import ROOT, load

PICTURE = ROOT / "docs" / "images" / "learning.svg"
LINES = (
    ("esn", "fixed, ridge readout (the paper's settings)", "#d9762b", "--", -3),
    ("W_Wrec_full", "learned, ridge readout (the paper's settings)", "#2a6fb0", "--", -9),
    ("esn_ours", "fixed, softmax readout (our defaults)", "#d9762b", "-", 2),
    ("ours", "learned, softmax readout (our defaults)", "#2a6fb0", "-", -3),
)  # column, label, colour, style, and how far the number stands above its point


def draw():
    """Return the figure: test error over units, fixed and learned, at the same readout."""
    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "echolearn", "font.size": 10})
    from matplotlib import pyplot as plt

    rows = load("table1_an4")["rows"]
    units = [row["units"] for row in rows]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for column, label, colour, style, height in LINES:
        errors = [100 * row["columns"][column]["test_error"] for row in rows]
        axes.plot(units, errors, style, marker="o", color=colour, label=label)
        axes.annotate(f"{errors[-1]:.1f}", (units[-1], errors[-1]), xytext=(8, height), textcoords="offset points")
    axes.set(xscale="log", xlabel="hidden units", ylabel="wrong frames in %", ylim=(0, 62))
    axes.set_xticks(units, [f"{n:,}" for n in units])
    axes.minorticks_off()
    axes.set_title("Phone states of real speech (AN4, 102 classes, new speakers)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, metadata={"Date": None})
    print(PICTURE.relative_to(ROOT))

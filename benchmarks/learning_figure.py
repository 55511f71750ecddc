"""Draw docs/images/learning.svg, the picture of the README, from results/table1_an4.json.

python benchmarks/learning_figure.py
"""

import matplotlib

from table_text import ROOT, load

PICTURE = ROOT / "docs" / "images" / "learning.svg"
LINES = (
    ("esn", "fixed weights, ridge readout", "#d9762b", "--", 0),
    ("W_Wrec_full", "learned weights, ridge readout", "#2a6fb0", "--", -4),
    ("esn_ours", "fixed weights, softmax readout", "#d9762b", "-", 5),
    ("ours", "learned weights, softmax readout", "#2a6fb0", "-", -3),
)  # column, label, colour, style, and how far the label stands above its point


def draw():
    """Return the figure: test error over units, fixed and learned, at the same readout."""
    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "echolearn", "font.size": 10})
    from matplotlib import pyplot as plt

    rows = load("table1_an4")["rows"]
    units = [row["units"] for row in rows]
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for column, label, colour, style, height in LINES:
        errors = [100 * row["columns"][column]["test_error"] for row in rows]
        axes.plot(units, errors, style, marker="o", color=colour, label=label)
        text = f"{errors[-1]:.1f} %  {label}"
        point = {"xytext": (9, height), "textcoords": "offset points", "va": "center"}
        axes.annotate(text, (units[-1], errors[-1]), color=colour, annotation_clip=False, **point)
    axes.set(xscale="log", xlabel="hidden units", ylabel="wrong frames in %", ylim=(0, 62))
    axes.set_xticks(units, [f"{n:,}" for n in units])
    axes.minorticks_off()
    title = (
        "Learned weights have fewer errors at every size\nPhone states of real speech: AN4, 102 classes, new speakers"
    )
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, metadata={"Date": None})
    print(PICTURE.relative_to(ROOT))

"""How many times less time and memory ours takes than each peer: figures 1 to 4 as a picture and tables.

python benchmarks/ratios.py [--plot docs/images/peers.svg]
"""

import argparse
import json
from pathlib import Path

import matplotlib

import results

TITLES = {
    1: "States of one sequence, 20,000 steps",
    2: "States of 708 utterances",
    3: "Classical fit and predict",
    4: "One exact-gradient epoch",
}
COLOURS = {"reservoirpy": "#3b6ea5", "PyRCN": "#6a994e", "echoes": "#a98467", "PyTorch": "#c4472b"}


def newest():
    """Return {figure: rows} of figures 1 to 4, each from the last run that measured it."""
    found = {}
    for path in results.FOLDER.glob("peers*.json"):
        record = json.loads(path.read_text())
        for figure in {row["figure"] for row in record["rows"]}:
            rows = [row for row in record["rows"] if row["figure"] == figure]
            if figure not in found or found[figure][0] < record["date"]:
                found[figure] = record["date"], rows
    return {figure: rows for figure, (_, rows) in sorted(found.items())}


def markdown(rows):
    """Return rows as a Markdown table; ratios that meet the requirement are bold."""
    lines = ["| work | peer | ours | peer's | ratio | required |", "|---|---|---:|---:|---:|---:|"]
    for row in rows:
        ours, peer = (f"{row[key]:.3g} {row['unit']}" if row.get(key) else "" for key in ("ours", "peer"))
        ratio = f"**{row['ratio']:.1f}**" if row["reached"] else f"{row['ratio']:.1f}"
        lines.append(f"| {row['work']} | {row['peer_name']} | {ours} | {peer} | {ratio} | {row['required']} |")
    return "\n".join(lines)


def draw(figures, path):
    """Draw the ratios as bars, one panel per figure."""
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    shown = {number: [row for row in rows if row.get("ours")] for number, rows in figures.items()}
    heights = [len(rows) for rows in shown.values()]
    figure, panels = plt.subplots(
        len(shown), figsize=(8, 0.24 * sum(heights) + 2.2), height_ratios=heights, sharex=True, layout="constrained"
    )
    for axes, (number, rows) in zip(panels, shown.items(), strict=True):
        for place, row in enumerate(rows):
            colour = next(c for name, c in COLOURS.items() if row["peer_name"].startswith(name))
            axes.barh(place, row["ratio"], color=colour, alpha=0.5 if row["unit"] == "MB" else 1)
            axes.text(row["ratio"] * 1.04, place, f"{row['ratio']:.3g}", va="center", fontsize=7)
        labels = [f"{row['work'].partition(', ')[2]}, {row['peer_name']}" for row in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=7)
        axes.invert_yaxis()
        axes.axvline(1, color="0.3", lw=0.8)
        axes.set_title(TITLES[number], fontsize=9, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xscale("log")
    panels[-1].set_xlim(0.8, 300)
    panels[-1].set_xticks([1, 10, 100], ["1", "10", "100"])
    panels[-1].set_xlabel("times faster, or (pale) times less memory, than the peer", fontsize=8)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="where to draw the ratios, as SVG")
    options = parser.parse_args()
    figures = newest()
    for number, rows in figures.items():
        print(f"\nFigure {number}: {TITLES[number]}\n\n{markdown(rows)}")
    if options.plot:
        draw(figures, options.plot)


if __name__ == "__main__":
    main()

"""The tables of recognition on AN4."""

import statistics

from table_text import load, markdown, mean_and_spread, reached, relative, table

NOT_RUN = "*Not run yet.*"
SIDES = {"ours": "echolearn", "torch": "PyTorch"}


def rows():
    """Return the rows of the result file in their order."""
    found = load("recognition").get("rows", {})
    return [found[number] for number in sorted(found, key=int)]


def name_of(row):
    """Return the name of a row, with a mark if its weights are from the search that took the smallest error."""
    return row["name"] if "standard_errors" in row else f"{row['name']} (former search)"


def errors(tests):
    """Return the errors of the seeds."""
    return [test["error"] for test in tests]


def phones(row, side):
    """Return the phone error of a side: mean and spread over seeds, or one figure."""
    found = errors(row[side]["test"])
    return mean_and_spread(found) if len(found) > 1 else f"{found[0]:.1f}"


@table
def recognition_phones():
    """Return the phone errors of both sides."""
    if not rows():
        return NOT_RUN
    heads = ["", ">seconds", ">echolearn", ">PyTorch", ">relative", ">p", "goal", "met"]
    return markdown(heads, [_phone_row(row) for row in rows()])


def _phone_row(row):
    ours, theirs = (row[side]["chosen"] for side in SIDES)
    names = f"{name_of(row)}: {ours['name']} ({ours['order']}-gram) against {theirs['name']} ({theirs['order']}-gram)"
    found = row["compared"]["phones"]
    asked, wanted = [], []
    if "asked" in row:
        asked.append(f"≥ {100 * row['asked']:.0f} % below")
        wanted.append(found["relative"] >= row["asked"])
    if "most" in row:
        asked.append(f"≤ {row['most']:.1f} %")
        wanted.append(statistics.mean(errors(row["ours"]["test"])) <= row["most"])
    if "asked_of_first" in row:
        first = statistics.mean(errors(rows()[0]["ours"]["test"]))
        own = statistics.mean(errors(row["ours"]["test"]))
        asked.append(f"≥ {100 * row['asked_of_first']:.0f} % below the first row")
        wanted.append(own <= (1 - row["asked_of_first"]) * first)
    p = statistics.median(found["p_values"])
    answer = ", ".join(reached(value) for value in wanted)
    return [
        names,
        row["seconds"],
        phones(row, "ours"),
        phones(row, "torch"),
        relative(found["relative"]),
        f"{p:.2g}",
        ", ".join(asked),
        answer,
    ]


@table
def recognition_parts():
    """Return substitutions, deletions and insertions of the chosen systems, and the time of the decoder."""
    if not rows():
        return NOT_RUN
    heads = [
        "",
        "side",
        ">valid %",
        ">test %",
        ">substitutions",
        ">deletions",
        ">insertions",
        ">95 % of speakers",
        ">× real time",
    ]
    return markdown(heads, [_parts(row, side) for row in rows() for side in SIDES])


def _parts(row, side):
    tests = row[side]["test"]
    mean = {name: statistics.mean(test[name] for test in tests) for name in tests[0]}
    kinds = [f"{mean[name]:.1f}" for name in ("substitutions", "deletions", "insertions")]
    system = f"{name_of(row)}, {row['seconds']} s"
    interval = f"{mean['low']:.1f} to {mean['high']:.1f}"
    faster = f"{1 / row[side]['real_time_factor']:.0f}"
    return [
        system,
        SIDES[side],
        f"{row[side]['chosen']['valid']:.1f}",
        f"{mean['error']:.1f}",
        *kinds,
        interval,
        faster,
    ]


@table
def recognition_words():
    """Return the word errors of both sides."""
    found = [row for row in rows() if "words" in row["ours"]]
    if not found:
        return NOT_RUN
    heads = ["", ">seconds", "n-gram of words", ">echolearn", ">PyTorch", ">relative", ">p", "goal", "met"]
    return markdown(heads, [_word_row(row, order) for row in found for order in row["ours"]["words"]])


def _word_row(row, order):
    ours, theirs = (errors(row[side]["words"][order]["test"]) for side in SIDES)
    found = row["compared"][f"words {order}"]
    asked, answer = "", ""
    if order == "2" and "most_words" in row:
        asked = f"≤ {row['most_words']:.1f} %, below PyTorch"
        met = statistics.mean(ours) <= row["most_words"], found["relative"] > 0
        answer = ", ".join(reached(value) for value in met)
    p = statistics.median(found["p_values"])
    cells = [mean_and_spread(ours), mean_and_spread(theirs), relative(found["relative"]), f"{p:.2g}"]
    return [name_of(row), row["seconds"], {"1": "unigram", "2": "bigram", "3": "trigram"}[order], *cells, asked, answer]


HOW = {"utterance": "of the utterance", "corpus": "of the training part", "running": "of the frames so far"}


@table
def recognition_streams():
    """Return what streaming costs in error, and its times."""
    found = load("recognition_streams").get("rows", [])
    if not found:
        return NOT_RUN
    times = [">ms per frame (99 %)", ">ms to appear (95 %)"]
    heads = ["network", "mean and deviation", ">phone error %", ">text as offline", *times]
    return markdown(heads, [_stream_row(row) for row in found])


def _stream_row(row):
    first = [row.get("network", "one layer, 100 units"), HOW[row["normalise"]], f"{row['phone_error']:.1f}"]
    if "equal" not in row:
        return [*first, "cannot stream", "–", "–"]
    return [
        *first,
        f"{row['equal']} of {row['utterances']}",
        f"{row['ms_per_frame']:.2f} ({row['ms_per_frame_99']:.2f})",
        f"{row['delay_ms']:.0f} ({row['delay_ms_95']:.0f})",
    ]

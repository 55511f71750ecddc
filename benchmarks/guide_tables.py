"""Tables of pages that guide readers: which estimator, what learning gives at each size, how to reproduce a figure."""

from contest_tables import contest_rows
from echolearn.paper.table1 import PAPER_TIMIT, relative_gain
from echolearn.paper.table1_report import percent
from paper_tables import scaled_content
from sequences import OURS, rows_code, table_of
from table_text import load, markdown, spread, table

AN4, MADE, PACKAGED = "AN4", "made by the program", "in the packages that the command installs"
UCR, TEN = "sets of the UCR archive", "the ten of these sets that the page names"
NOT_RECORDED = "not recorded"
# What is shown, its page, its target of make or its program with options, its data, and its result files, or file:part.
REPRODUCED = (
    ("Table 1 on AN4", "table1", "paper_table an4", AN4, ["table1_an4"]),
    ("the paper's sizes", "table1", "paper_table paper", AN4, ["table1_paper"]),
    ("the same, clipped at larger norms", "table1", "paper_table scaled", AN4, ["table1_scaled"]),
    ("formulas as printed", "table1", "paper_table printed", AN4, ["table1_printed"]),
    ("Table 1 on synthetic speech", "table1", "paper_table synthetic", "made by espeak-ng", ["table1_synthetic"]),
    ("phones of that speech", "table1", "paper_table synthetic_phones", "the same", ["table1_synthetic_phones"]),
    ("the contest with PyTorch", "benchmarks", "contest", AN4, ["contest"]),
    ("the search for PyTorch's settings", "protocol", "search_torch", AN4, ["search_torch"]),
    ("both directions of time", "benchmarks", "an4_errors", AN4, ["an4_errors_directions"]),
    ("parts of a deep network", "../explanation/depth", "deep_parts", AN4, ["deep_parts"]),
    ("deep networks beside one layer", "../explanation/depth", "deep_tasks", MADE, ["deep_tasks"]),
    ("one step of a deep network", "performance", "deep_step", MADE, ["deep_step"]),
    ("phones of AN4", "../howto/recognition", "recognition --words an4/etc", f"{AN4} with words", ["recognition"]),
    ("recognition while listening", "../howto/recognition", "recognition_streams", AN4, ["recognition_streams"]),
    ("one label per series", "sequences", "make series UCR=path/to/folder", UCR, ["sequences:rows"]),
    ("their spread over seeds", "sequences", "sequences FOLDER --seeds 10 --sets NAMES", TEN, ["sequences:seeds"]),
    ("early answers", "sequences", "sequences FOLDER --early --sets NAMES", TEN, ["sequences:early"]),
    ("sets of aeon's wheel", "sequences", "sequences FOLDER --wheel --seeds 3", PACKAGED, ["sequences:wheel"]),
    ("estimators with defaults", "defaults", "make defaults DATA=an4_states.npz", f"{PACKAGED}; {AN4}", ["defaults"]),
    ("forecasts of public series", "../howto/forecasting", "make forecasts", PACKAGED, ["series_forecasts"]),
    ("forecasts of competitions", "../howto/forecasting", "competition_forecasts --data series_dev.npz",
     "half of the series of M3 (yearly) and M4 (weekly, hourly)", ["competition_forecasts"]),
    ("chaotic series", "../howto/forecasting", "valid_times", MADE, ["valid_times"]),
    ("Mackey-Glass, Lorenz, NARMA", "../howto/forecasting", "forecasting", MADE, ["forecasting"]),
    ("speed beside other libraries", "performance", "peers", AN4, ["peers_1", "peers_2", "peers_3", "peers_4"]),
    ("the cost model", "performance", "growth", MADE, ["growth"]),
    ("a large readout beside the exact one", "../explanation/large", "large --only accuracy", AN4, ["large"]),
    ("exports: time per frame", "../howto/export", "export_speed", MADE, ["export_speed", "deep_export_speed"]),
    ("exports: frame errors", "../howto/export", "export_loss", AN4, ["export_loss"]),
    ("pages in a browser", "../howto/browser", "page_speed", MADE, ["page_speed"]),
    ("speech in a browser", "../howto/browser", "speech_page LEARNED FIXED FOLDER",
     "synthetic speech, and two recognisers by the commands in its first lines", ["speech_page"]),
    ("the first answer of the runtime", "../howto/runtime", "runtime_start", MADE, ["runtime_start"]),
    ("alarms of `Monitor`", "../howto/monitoring", "monitoring", MADE, ["monitoring"]),
    ("damaged files, odd inputs, kills", "reliability", "make reliability", MADE, []),
    ("the printed gradient", "../explanation/derivation", "printed_vs_exact", MADE, []),
)  # fmt: skip
# Of earlier programs, or no measurement: shown, but not computed again.
KEPT = ("error_over_time", "search_ours", "test_readings")


def processor_seconds(content):
    """Return the sum of all processor seconds that a result file has; what was replaced since does not count."""
    if isinstance(content, list):
        return sum(map(processor_seconds, content))
    if not isinstance(content, dict):
        return 0.0
    for name in ("processor_seconds", "cpu_seconds", "spent"):
        if isinstance(content.get(name), float):
            return content[name] * (len(content["seeds"]) if "seeds" in content else 1)  # a mean over seeds
    if isinstance(content.get("processor"), list):
        return sum(content["processor"])
    return sum(processor_seconds(value) for name, value in content.items() if name != "superseded")


def content_of(name):
    """Return the content of a result file; of file:part, the rows of other methods and of the last code of ours."""
    name, _, part = name.partition(":")
    content = load(name)
    return (
        {part: [row for row in content[part] if row["code"] in (None, rows_code(content[part]))]} if part else content
    )


def core_hours(files):
    """Return the processor hours of result files as text."""
    found = map(content_of, files)
    seconds = sum(processor_seconds(content.get("runs", content)) for content in found)  # not of summaries of runs
    missing = [name for name in files if not content_of(name)]
    if missing:
        return "not measured yet"
    return NOT_RECORDED if not seconds else "< 0.1" if seconds < 360 else f"{seconds / 3600:.1f}"


def command_of(program, data):
    """Return the line to type."""
    if program.startswith("make "):
        return program
    name, *options = program.split(" ", 1)
    return " ".join([f"python benchmarks/{name}.py", *options, *(["--data an4_states.npz"] if AN4 in data else [])])


@table
def reproduction():
    """Return one line per result: its page, the command, the data and the processor hours of its fits."""
    rows = [
        [f"[{what}]({page}.md)", f"`{command_of(program, data)}`", data, core_hours(files)]
        for what, page, program, data, files in REPRODUCED
    ]
    return markdown(["result", "command", "data", ">core hours"], rows)


@table
def learning_by_size():
    """Return what learning W and W_rec gives at each size: on TIMIT as printed, on AN4 as measured."""
    measured = {row["units"]: row for row in scaled_content().get("rows", [])}
    rows = []
    for paper in PAPER_TIMIT:
        columns = measured.get(paper["units"], {"columns": {}})["columns"]
        cells = ["not measured yet"] * 2 + ["", ""]
        if {"esn", "W_Wrec_m3"} <= set(columns):
            fixed, learned = (columns[name]["test_error"] for name in ("esn", "W_Wrec_m3"))
            seconds = columns["W_Wrec_m3"]["processor_seconds"]
            gain = percent(relative_gain(columns, "esn", "W_Wrec_m3"))
            cells = [percent(fixed), percent(learned), f"{gain} %", f"{seconds:,.0f}"]
        printed = [percent(paper["test_error"][name]) for name in ("esn", "W_Wrec_m3")]
        rows.append([f"{paper['units']:,}", *printed, f"{percent(paper['relative_gain'])} %", *cells])
    heads = [">units", ">TIMIT, fixed %", ">TIMIT, learned %", ">fewer errors"]
    return markdown([*heads, ">AN4, fixed %", ">AN4, learned %", ">fewer errors", ">processor s of a fit"], rows)


@table
def estimator_choice():
    """Return one line per question of docs/start/which_estimator.md: the estimator, and what it gave on real data."""
    forecasts = next(row for row in load("series_forecasts")["rows"] if row["method"] == "echolearn")
    recognised = load("recognition")["rows"]["0"]
    phones = [found["error"] for found in recognised["ours"]["test"]]
    short, deep = (next(r for r in contest_rows("single") if r["budget"] == budget)["ours"] for budget in (20, 60))
    defaults = next(row for row in load("defaults")["parts"]["an4"]["rows"] if row["method"] == "ESNClassifier(300)")
    errors, seconds = (table_of(name, [OURS, "MiniRocket"])[:, 0] for name in ("error", "cpu_seconds"))
    rows = [
        ["the future of a series", "`ESNForecaster`", f"{forecasts['series']} public series",
         f"MASE {forecasts['MASE']:.2f}", f"{forecasts['seconds']:.1f} for a forecast"],
        ["phones and words of speech", "`echolearn train --for recognition`", "phones of AN4",
         f"{sum(phones) / len(phones):.1f} %", f"{short['cpu_seconds']:.0f}, of the network"],
        ["one label per series", "`SeriesClassifier`", f"{len(errors)} sets of the UCR archive",
         f"{errors.mean():.1f} % on average", f"{seconds.mean():.1f} on average"],
        ["one label per step, many labelled steps", "`DeepESNClassifier`", "phone states of AN4, tuned on valid",
         f"{spread(deep['test'])} %", f"{deep['cpu_seconds']:.0f}"],
        ["one label per step, a short fit, a small model", "`ESNClassifier`", "phone states of AN4",
         f"{defaults['median']:.1f} %", f"{sorted(defaults['processor'])[1]:.0f}"],
    ]  # fmt: skip
    return markdown(["what you want", "estimator", "real data", ">error", ">processor s"], rows)

"""The tables of all benchmarks but the contest."""

import re
import statistics

from table_text import load, markdown, mean_and_spread, reached, relative, table


@table
def error_over_time():
    """Return the earlier comparison with LSTMs by the clock."""
    cells = []
    for row in load("error_over_time")["rows"]:
        if "tried" not in row:
            continue
        tried = {f"{r['model'].upper()}-{r['units']}": r["test_error"] for r in row["tried"]}
        others = ", ".join(f"{name}: {error:.1f}" for name, error in tried.items() if name != row["peer_name"])
        own, gain = row["record"], 1 - row["ours"] / row["peer"]
        seconds = re.search(r"within (\d+) s", row["work"])[1]
        mine = f"{own['model']} units, {own['weights']:,} weights"
        peer = f"{row['peer_name']} ({others})"
        cells.append(
            [
                seconds,
                mine,
                f"{row['ours']:.1f}",
                f"{own['train_seconds']:.1f}",
                peer,
                f"{row['peer']:.1f}",
                relative(gain),
            ]
        )
    heads = [">seconds", "echolearn", ">test %", ">seconds used", "PyTorch, best on valid", ">test %", ">relative"]
    return markdown(heads, cells)


@table
def directions():
    """Return one direction of time beside both."""
    groups = {}
    for row in load("an4_errors_directions")["rows"]:
        units, which = re.match(r"defaults, (\d+) units, (\w+ \w+), seed", row["label"]).groups()
        groups.setdefault((units, which), []).append(row)
    cells = []
    for (units, which), rows in groups.items():
        errors = [mean_and_spread([row[key] for row in rows]) for key in ("valid_error", "test_error")]
        seconds = statistics.mean(row["cpu_seconds"] for row in rows)
        cells.append([units, which, f"{rows[0]['weights']:,}", *errors, f"{seconds:.0f}"])
    return markdown([">units", "", ">weights", ">valid %", ">test %", ">cpu seconds"], cells)


def _peers(number):
    """Return one figure of peers.py: times by the clock and by processor time; memory above the start and in all."""
    rows, cells = load(f"peers_{number}")["rows"], []
    for row in rows:
        if row.get("peer") is None:
            name = row.get("peer_name") or ""
            cells.append([row["work"], name, "", "", _times(row.get("ratio")), "", _asked(row), _met(row)])
            continue
        memory = row["unit"] == "MB"
        numbers = [_number(row["ours"]), _number(row["peer"])]
        if memory:
            second = row["peak_mb_peer"] / row["peak_mb_ours"]
        else:
            has = row.get("cpu_seconds_peer") and "workers" not in row["peer_name"]
            second = row["cpu_seconds_peer"] / row["cpu_seconds_ours"] if has else None
        numbers = [f"{number} {row['unit']}" for number in numbers]
        cells.append(
            [row["work"], row["peer_name"], *numbers, _times(row["ratio"]), _times(second), _asked(row), _met(row)]
        )
    second = f">times, processor{' (memory: whole process)' if number in (3, 4) else ''}"
    first = f">times, clock{' (memory: above the start)' if number in (3, 4) else ''}"
    return markdown(["work", "beside", ">ours", ">theirs", first, second, "goal", "met"], cells)


def _asked(row):
    return "" if row.get("required") in (None, "-") else str(row["required"]).replace(">=", "≥")


def _met(row):
    return reached(row.get("reached"))


def _times(value):
    return "" if value is None else f"{value:.1f}"


def _number(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


@table
def peers_1():
    """Return states of one sequence."""
    return _peers(1)


@table
def peers_2():
    """Return states of a corpus."""
    return _peers(2)


@table
def peers_3():
    """Return fit and prediction."""
    return _peers(3)


@table
def peers_4():
    """Return one epoch of gradients."""
    return _peers(4)


@table
def forecasting():
    """Return the errors of forecasts, median and range of ten seeds."""
    found = load("forecasting")
    works = {
        "mg1": "Mackey-Glass, 1 step, NRMSE",
        "mg84": "Mackey-Glass, 84 steps, NRMSE",
        "lorenz": "Lorenz, valid time in Lyapunov times",
        "narma": "NARMA-10, NRMSE",
    }
    methods = ("reservoirpy", "echolearn fixed", "echolearn learned")
    cells = []
    for key, work in works.items():
        best = (max if key == "lorenz" else min)(methods, key=lambda m, k=key: statistics.median(found[k][m]))
        texts = [_median_and_range(found[key][method], method == best) for method in methods]
        cells.append([work, *texts])
    return markdown(["", ">reservoirpy, tuned", ">echolearn fixed, tuned", ">echolearn learned"], cells)


@table
def series_forecasts():
    """Return the forecasts of real series, means over the test half."""
    cells = []
    for row in load("series_forecasts")["rows"]:
        shares = [_share_and_width(row, level) for level in (80, 95)]
        means = [f"{row['MASE']:.2f}", f"{row['geometric MASE']:.2f}"]
        cells.append(
            [row["method"], str(row["series"]), *means, *shares, f"{row['seconds']:.2f} ({row['slowest']:.1f})"]
        )
    heads = [
        "",
        ">series",
        ">MASE",
        ">geometric mean",
        ">inside 80 %, width",
        ">inside 95 %, width",
        ">s a fit (slowest)",
    ]
    return markdown(heads, cells)


@table
def competition_forecasts():
    """Return sMAPE and MASE of competition series, by set; rivals with the season given and with those found."""
    rows = load("competition_forecasts")["rows"]
    sets = {"m3_yearly": "M3 yearly", "m4_weekly": "M4 weekly", "m4_hourly": "M4 hourly"}
    found = {(row["set"], row["method"]): row for row in rows}
    methods = dict.fromkeys(row["method"] for row in rows)
    cells = [
        [method, *(f"{found[name, method]['sMAPE']:.2f} / {found[name, method]['MASE']:.3f}" for name in sets)]
        for method in methods
    ]
    heads = [f">{title}, {found[name, 'echolearn']['series']} series" for name, title in sets.items()]
    return markdown(["sMAPE / MASE", *heads], cells)


def _share_and_width(row, level):
    share = row[f"inside {level}"]
    return "–" if share is None else f"{100 * share:.1f} %, {row[f'width {level}']:.1f}"


@table
def series_updates():
    """Return what an update per hour costs."""
    found = load("series_forecasts")["updates"]
    heads = ["a year of hourly values", ">goal", ">measured"]
    rows = [
        ["an update, median", "≤ 1 ms", f"{found['median ms']:.2f} ms"],
        [f"growth of memory over {found['updates']} updates", "none", f"{found['growth MB']:.1f} MB"],
    ]
    return markdown(heads, rows)


def _median_and_range(values, best):
    middle = f"{statistics.median(values):.3g}"
    return f"{f'**{middle}**' if best else middle} ({min(values):.2g} … {max(values):.2g})"


@table
def large_accuracy():
    """Return the exact readout of 5,000 units beside the iterative one."""
    cells = [
        [
            r["work"],
            f"{r['ridge']:.0e}",
            f"{r['error_per_frame']:.5f}",
            f"{r['valid']:.2f}",
            f"{r['test']:.2f}",
            f"{r['ours']:.0f}",
        ]
        for r in load("large")["rows"]
        if "error_per_frame" in r
    ]
    heads = ["", ">ridge, of the mean diagonal", ">E per frame", ">valid wrong %", ">test wrong %", ">seconds"]
    return markdown(heads, cells)


def _near_one(value, digits):
    """Return a number with so many digits, or with seven if it is an R² close to 1."""
    return f"{value:.{7 if 0.9985 < value < 1.5 and digits == 4 else digits}f}".replace("-", "−")


def _defaults(part, digits, unit=None):
    """Return a part of defaults.json: the median of each method, with the least and the greatest over the seeds."""
    cells, last = [], None
    for row in load("defaults")["parts"][part]["rows"]:
        if unit is not None and row["unit"] != unit:
            continue
        middle, low, high = (_near_one(row[key], digits) for key in ("median", "least", "greatest"))
        values = middle + ("" if low == high else f" ({low} to {high})")
        seconds = f"{statistics.median(row['seconds']):.1f}" if row.get("seconds") else ""
        cells.append(["" if row["work"] == last else row["work"], row["method"], row["unit"], values, seconds])
        last = row["work"]
    return markdown(["", "method", "measure", ">median (lowest to highest)", ">seconds, median"], cells)


@table
def defaults_series():
    """Return the defaults on one series."""
    return _defaults("series", 4)


@table
def defaults_sequences():
    """Return the defaults with one label per sequence."""
    return _defaults("sequences", 1)


@table
def defaults_an4():
    """Return the defaults on AN4."""
    return _defaults("an4", 2)


@table
def defaults_awkward():
    """Return the defaults on awkward data."""
    return _defaults("awkward", 4)


@table
def defaults_goals():
    """Return what was required of the defaults and what was seen."""
    goals = [goal for part in load("defaults")["parts"].values() for goal in part["goals"]]
    cells = [
        [g["work"], g["required"], g["seen"], reached(None if g["reached"] is None else bool(g["reached"]))]
        for g in goals
    ]
    return markdown(["", "goal", "seen", "met"], cells)


def _deep_tasks():
    """Return the rows of deep_tasks.json of one layer and of several, by task."""
    found = {}
    for row in load("deep_tasks")["rows"]:
        several = row["method"].startswith("Deep")
        found.setdefault(row["task"], {False: [], True: []})[several].append(row)
    return found


def _both_sides(sides, key, form):
    """Return the medians of one layer and of several with their range, the better one in bold."""
    values = [[row[key] for row in sides[several]] for several in (False, True)]
    middles = [statistics.median(some) for some in values]
    texts = []
    for some, middle in zip(values, middles, strict=True):
        text, low, high = (form(value) for value in (middle, min(some), max(some)))
        bold = f"**{text}**" if middle == min(middles) else text
        texts.append(bold + ("" if low == high else f" ({low} to {high})"))
    return texts


def _processor_seconds(sides):
    return [f"{statistics.median(row['processor_seconds'] for row in sides[s]):.0f}" for s in (False, True)]


@table
def deep_signs():
    """Return one layer beside several where a label is the sign of a product with an input some steps before."""
    cells = []
    for task, sides in _deep_tasks().items():
        if "error_where_known" not in sides[True][0]:
            continue
        delay = re.search(r"t-(\d+)", task)[1]
        errors = [_both_sides(sides, key, "{:.2f}".format) for key in ("error", "error_where_known")]
        cells.append([delay, *errors[0], *errors[1], *_processor_seconds(sides)])
    heads = [
        *(">d", ">one layer, wrong %", ">several layers", ">one layer, wrong % after d steps", ">several layers"),
        *(">one layer, s", ">several layers, s"),
    ]
    return markdown(heads, cells)


@table
def deep_tasks():
    """Return one layer beside several on the other tasks."""
    cells = []
    for task, sides in _deep_tasks().items():
        if "error_where_known" not in sides[True][0]:
            measure = sides[True][0]["measure"].replace("-", "−")
            errors = _both_sides(sides, "error", "{:.1f}".format if "%" in measure else "{:.2g}".format)
            cells.append([task, measure, *errors, *_processor_seconds(sides)])
    return markdown(["", "measure", ">one layer", ">several layers", ">one layer, s", ">several layers, s"], cells)


@table
def export_speed():
    """Return what a frame costs in every place that a model can be exported to."""
    return _speed_table("export_speed", "300 units, 39 features")


@table
def deep_export_speed():
    """Return what a frame of a deep network costs in C and in Python."""
    return _speed_table("deep_export_speed", "6 layers of 128 units, 39 features")


def _speed_table(name, network):
    rows = load(name)["rows"]
    ways = {row["way"]: {} for row in rows}
    for row in rows:
        ways[row["way"]][row["classes"]] = row
    cells = [
        [
            way,
            *(f"{found[n]['microseconds']:.1f}" for n in (10, 184)),
            *(f"{found[n]['bytes'] / 1000:,.0f}" if found[n]["bytes"] else "" for n in (10, 184)),
        ]
        for way, found in ways.items()
    ]
    heads = [network, ">10 classes, µs", ">184 classes, µs", ">10 classes, kB", ">184 classes, kB"]
    return markdown(heads, cells)


@table
def page_speed():
    """Return the size of a page, and what its first answer and a frame cost."""
    rows = load("page_speed")["rows"]
    cells = [
        [
            f"{row['classes']} classes",
            f"{row['bytes'] / 1000:,.0f}",
            *(f"{row['first_answer_ms'][which]:.0f}" for which in ("least", "median")),
            *(f"{row[way][which]:.0f}" for way in ("step_us", "whole_us") for which in ("least", "median")),
        ]
        for row in rows
    ]
    heads = [
        *("300 units, 39 features", ">page, kB", ">first answer, ms", ">median"),
        *(">a frame, frame by frame, µs", ">median", ">a frame of whole sequences, µs", ">median"),
    ]
    return markdown(heads, cells)


@table
def speech_page():
    """Return size, speed and agreement of the page of a recogniser."""
    cells = []
    for row in load("speech_page")["rows"]:
        digits = 2 if row["unit"] in ("MB", "s") else 0
        unit = row["unit"].replace("us", "µs")
        work, beside = row["work"], ""
        if "thread_seconds" in row:
            beside = f"{row['thread_seconds']:.2f} s of processor time"
        elif "frames_per_second" in row:
            beside = f"{row['frames_per_second']:.0f} frames a second"
        elif "features_us" in row:
            parts = ("features", "network", "phones", "words")
            beside = ", ".join(f"{name} {row[f'{name}_us']:.0f}" for name in parts if f"{name}_us" in row)
        cells.append([work, f"{row['ours']:.{digits}f} {unit}", beside, _asked(row).replace("<=", "≤"), _met(row)])
    return markdown(["", ">measured", "beside", "goal", "met"], cells)


@table
def export_loss():
    """Return the frame errors of two networks in whole numbers."""
    rows = load("export_loss")["rows"]
    cells = [
        [
            row["network"],
            row["numbers"] if row["numbers"] == "Python" else f"C, {row['numbers']}",
            f"{row['valid_error']:.2f}",
            f"{row['changed']:.2f}",
            f"{row['constants'] / 1000:,.0f}" if row["constants"] else "",
        ]
        for row in rows
    ]
    return markdown(["", "", ">frame error on valid, %", ">labels changed, %", ">constants, kB"], cells)


@table
def deep_step():
    """Return how far one training step of a deep network is from its products, and what two threads give."""
    found = load("deep_step")
    cells = [[row["work"], f"{row['ours']:.2f}", _asked(row).replace("<=", "≤"), _met(row)] for row in found["rows"]]
    cells += [[name, f"{value:.1f} ms", "", ""] for name, value in found["milliseconds"].items()]
    return markdown(["", ">measured", "goal", "met"], cells)


@table
def valid_times():
    """Return the valid times on judged series of learned networks and of their tuned rivals."""
    titles = {
        "mackey_glass": "Mackey-Glass",
        "lorenz": "Lorenz",
        "double_scroll": "double scroll",
        "lorenz_96": "Lorenz 96, 40 points, local",
        "kuramoto_sivashinsky": "Kuramoto-Sivashinsky, 64 points, local",
    }
    heads = {
        "reservoirpy": "reservoirpy",
        "NVAR": "NVAR",
        "fixed, near zero": "fixed, radius near 0",
        "fixed, edge of chaos": "fixed, edge of chaos",
        "learned": "learned",
    }
    found, cells = load("valid_times").get("tasks", {}), []
    for name, title in titles.items():
        sides = found.get(name, {}).get("sides", {})
        if set(sides) != set(heads):  # not measured yet
            continue
        means = {side: [statistics.mean(seed["values"]) for seed in sides[side].values()] for side in heads}
        best = max(means, key=lambda side: statistics.mean(means[side]))
        row = []
        for side, values in means.items():
            text = f"{statistics.mean(values):.2f}"
            row.append((f"**{text}**" if side == best else text) + _least_and_most(values))
        cells.append([title, *row])
    return markdown(["", *(f">{head}" for head in heads.values())], cells)


def _least_and_most(values):
    """Return the least and the most of several values in brackets."""
    return f" ({min(values):.2f} … {max(values):.2f})" if len(values) > 1 else ""


@table
def runtime_start():
    """Return what it takes to give a first answer."""
    rows = load("runtime_start")["rows"]
    base = rows[0]
    cells = [
        [
            row["way"],
            f"{row['seconds']:.2f}",
            f"{row['resident'] / 1e6:.0f}",
            "" if row is base else f"{(row['resident'] - base['resident']) / 1e6:.0f}",
            f"{row['disk'] / 1e6:,.0f}",
        ]
        for row in rows
    ]
    heads = ["", ">first answer after, s", ">resident, MB", ">above NumPy, MB", ">installed, MB"]
    return markdown(heads, cells)


@table
def runtime_frames():
    """Return what a frame costs in the runtime and in the whole library."""
    rows = load("runtime_start")["frames"]
    cells = [[row["way"], f"{row['runtime']:.1f}", f"{row['library']:.1f}"] for row in rows]
    return markdown(["300 units, 39 features, 10 classes", ">runtime, µs", ">library, µs"], cells)


@table
def deep_parts():
    """Return what each part of the deep network buys; of variants with a common `best_of`, the best one."""
    groups = {}
    for row in load("deep_parts").get("rows", []):
        groups.setdefault(row["variant"], []).append(row)
    if not groups:
        return "*Not run yet.*"
    errors = {name: statistics.mean(row["valid_error"] for row in rows) for name, rows in groups.items()}
    base, cells = errors.get("base"), []
    for name, rows in groups.items():
        first = rows[0]
        rivals = [other for other, (one, *_) in groups.items() if one["best_of"] and one["best_of"] == first["best_of"]]
        if rivals and name != min(rivals, key=errors.get):
            continue
        chosen = f", the best of {len(rivals)} on valid" if len(rivals) > 1 else ""
        warned = ", with warnings while learning" if any(row["warnings"] for row in rows) else ""
        difference = "" if base is None or name == "base" else f"{errors[name] - base:+.2f}".replace("-", "−")
        seconds = [row["cpu_seconds"] for row in rows]
        cells.append(
            [
                f"{first['label']}{chosen}{warned}",
                mean_and_spread([row["valid_error"] for row in rows], 2),
                difference,
                f"{first['learned_weights']:,}",
                f"{statistics.mean(row['epochs'] for row in rows):g}",
                "–" if None in seconds else f"{statistics.mean(seconds):.0f}",
            ]
        )
    return markdown(["", ">valid %", ">against the base", ">learned weights", ">epochs", ">processor seconds"], cells)

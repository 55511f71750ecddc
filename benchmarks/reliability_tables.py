"""The tables of docs/evidence/reliability.md and docs/howto/scaling.md, from reliability/results/."""

from table_text import ROOT, markdown, table
from table_text import load as load_file

FOLDER = ROOT / "reliability" / "results"


def load(name):
    """Return a result file of reliability/."""
    return load_file(name, FOLDER)


LABELS = {
    "untroubled": "none",
    "spectral radius": "spectral radius 0.1 to 100",
    "spectral radius, no leak": "the same, no leak",
    "ridge": "ridge 0 to 1e6",
    "ridge, copied features": "the same, features copied",
    "ridge, constant feature": "the same, a constant feature",
    "scale of inputs": "inputs times 1e-300 to 1e300",
    "scale of targets": "targets times 1e-300 to 1e300",
    "offset of inputs": "inputs plus 1e-300 to 1e300",
    "copied features": "2 and 50 copies of every feature",
    "steps": "sequences of 1 to 1,000 steps",
    "sequences": "1 to 300 sequences",
    "classes": "1 to 1,000 classes",
    "unbalanced classes": "a class of 10, 1 and 0.1 %",
    "activation": "other activations, spectral radius to 100",
    "several at once": "several of these, drawn by chance",
    "10^6 steps": "10⁶ steps",
    "10^5 sequences": "10⁵ sequences, also with a class of 1 in 10⁵ frames",
    "model, mended": "model, checksum mended",
    "audio": "WAV, FLAC, SPHERE",
    "large, following": "the way of large networks (U follows, sketches)",
}


def counts(rows, head, columns, besides=()):
    """Return a table of counts: one line per row, the columns {key: heading}; what a row does not have is 0.

    A row may have other keys only if they are named in `besides`, so that no outcome is left out unseen.
    """
    for name, row in rows.items():
        if unknown := set(row) - set(columns) - set(besides):
            raise ValueError(f"{name}: the table has no column for {sorted(unknown)}")
    cells = [[LABELS.get(name, name), *(f"{row.get(key, 0):,}" for key in columns)] for name, row in rows.items()]
    return markdown([head, *(f">{heading}" for heading in columns.values())], cells)


def starting(rows, prefix):
    """Return the rows whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): row for name, row in rows.items() if name.startswith(prefix)}


def total(rows, *names):
    """Return the sum of some columns of rows; what a row does not have is 0."""
    return sum(row.get(name, 0) for row in rows.values() for name in names)


def corrupted(found):
    """Return the size and the outcome of a campaign of damaged files."""
    row = found["files"]["all"]
    return f"{row['files']:,} files", f"{row.get('wrong', 0)} read wrongly"


def choices(found):
    """Return the size and the outcome of a sample of mutants."""
    row = found["table"].get("all sampled") or found["table"]["all"]
    return f"{row['mutants']} mutants", f"{row.get('survived', 0)} not noticed by a test"


CAMPAIGNS = {  # by the name of the result file: what it is, its section, and the function that returns size and outcome
    "model_files": ("damaged model and checkpoint files", "#model-and-checkpoint-files", corrupted),
    "damaged_speech": ("damaged files of speech", "#files-of-speech", corrupted),
    "inputs": (
        "unusual inputs",
        "#inputs",
        lambda f: (f"{f['inputs']['all']['inputs']:,}", f"{f['inputs']['all'].get('wrong', 0)} answered wrongly"),
    ),
    "fuzz": (
        "fuzzing of the readers",
        "#fuzzing-of-the-readers-guided-by-coverage",
        lambda f: (f"{total(f['readers'], 'tries'):,} files", f"{total(f['readers'], 'findings')} findings"),
    ),
    "random_series": (
        "forecasts of random series",
        "#forecasts-of-random-series",
        lambda f: (f"{f['properties']['units']['series']:,} series", f"{total(f['properties'], 'wrong')} changed"),
    ),
    "stress": (
        "numbers under stress",
        "#numbers-under-stress",
        lambda f: (
            f"{sum(f['outcomes']['all'].values()):,} fits",
            f"{f['outcomes']['all'].get('FAILED', 0)} failed without an explanation",
        ),
    ),
    "exports": (
        "exported networks",
        "#exports",
        lambda f: (f"{f['networks']} networks", f"{total(f['formats'], 'beyond 1e-5')} answers beyond 1e-5"),
    ),
    "service_hostile": (
        "hostile requests to the service",
        "#the-service",
        lambda f: (
            f"{f['attacks']['all']['requests']:,} requests",
            f"{f['attacks']['all']['wrong'] + f['wrong answers to good questions']} answered wrongly",
        ),
    ),
    "service_load": (
        "services under load",
        "#the-service",
        lambda f: (
            f"{total(f['services'], 'messages sent'):,} messages",
            f"{total(f['services'], 'messages sent') - total(f['services'], 'messages answered')} lost",
        ),
    ),
    "kills": (
        "kills, and full disks",
        "#checkpoints-kills-and-full-disks",
        lambda f: (
            f"{total(f['rows'], 'kills')} kills, {total(f['rows'], 'failed', 'calls')} failed writes",
            f"{total(f['rows'], 'states lost')} states lost",
        ),
    ),
    "dask_kills": (
        "killed workers",
        "../howto/scaling.md#when-workers-fail",
        lambda f: (
            f"{total(f['rows'], 'killed')} kills in {total(f['rows'], 'runs')} fits",
            f"{total(f['rows'], 'runs') - total(f['rows'], 'same bits')} fits with other bits",
        ),
    ),
    "corpus_on_disk": (
        "a corpus on disk",
        "#load-threads-and-processes",
        lambda f: (f"{f['frames']:,} frames", f"{f['memory_mb']:,.0f} MB of memory"),
    ),
    "mutants": ("changed choices in the code", "#choices", choices),
    "mutants-7": ("the same, a fresh sample", "#choices", choices),
}


@table
def campaigns():
    """Return when each campaign ran last, at which commit, its size and its outcome."""
    cells = []
    for name, (what, section, of) in CAMPAIGNS.items():
        if found := load(name):
            cells.append([f"[{what}]({section})", *of(found), *last_run(found["versions"])])
    for name, found in load("load").items():
        if name != "versions":
            size = ", ".join(f"{found[n]:,} {n}" for n in ("frames", "fits", "calls", "rounds") if n in found)
            goal = "goal met" if found["reached"] else "**goal missed**"
            cells.append([f"[load: {name}](#load-threads-and-processes)", size, goal, *last_run(found)])
    return markdown(["campaign", "size", "result", "last run", "commit"], cells)


def last_run(about):
    """Return the date and the commit of a run, or the version where the commit was not recorded."""
    commit, *changes = about.get("commit", "").split(" with ")
    return about["date"], f"{commit[:8]}{', with changes' * len(changes)}" if commit else f"of {about['echolearn']}"


@table
def model_files():
    """Return what became of damaged and forged model files."""
    columns = ("files", "refused", "equal", "sound", "wrong")
    return counts(load("model_files")["files"], "", {name: name for name in columns})


@table
def damaged_speech():
    """Return what became of damaged files of speech."""
    columns = ("files", "refused", "equal", "legal", "wrong")
    return counts(load("damaged_speech")["files"], "", {name: name for name in columns})


@table
def inputs():
    """Return what became of unusual inputs, by entry point."""
    columns = ("inputs", "answered", "refused", "wrong")
    return counts(load("inputs")["inputs"], "", {name: name for name in columns})


@table
def fuzz():
    """Return the files that coverage-guided fuzzing tried."""
    heads = {"tries": "files tried", "edges at first": "edges at first", "edges": "edges", "findings": "findings"}
    return counts(load("fuzz")["readers"], "reader", heads)


@table
def random_series():
    """Return what became of forecasts that must not change."""
    columns = ("series", "held", "reported", "wrong")
    return counts(load("random_series")["properties"], "property", {name: name for name in columns})


@table
def random_series_intervals():
    """Return the shares of the truth inside intervals, by processes and gaps."""
    rows = load("random_series")["intervals"]
    cells = [[name, f"{r['series']:,}", f"{100 * r['80']:.1f} %", f"{100 * r['95']:.1f} %"] for name, r in rows.items()]
    return markdown(["", ">series", ">inside 80 %", ">inside 95 %"], cells)


@table
def stress():
    """Return the outcomes of fits under numerical stress."""
    heads = {"good": "good", "warned": "warned", "refused": "refused", "FAILED": "failed"}
    return counts(load("stress")["outcomes"], "trouble", heads)


@table
def killed_fits():
    """Return fits that were killed and started again."""
    columns = ("kills", "fits", "same bits", "states lost")
    return counts(starting(load("kills")["rows"], "fit: "), "fit", {name: name for name in columns})


@table
def killed_saves():
    """Return processes that were killed while they saved."""
    heads = {
        "kills": "kills",
        "old or new file loads": "old or new",
        "in the middle of writing": "in the middle of writing",
    }
    return counts(starting(load("kills")["rows"], "save: "), "", heads, ["saves"])


@table
def full_disks():
    """Return what happened on a full disk."""
    cells = []
    for name, row in starting(load("kills")["rows"], "full disk: ").items():
        failures = row.get("failed", row.get("calls"))
        same = "yes" if row["same bits"] else "**no**"
        cells.append([name, failures, row["file named"], row["nothing lost"], same])
    return markdown(["", ">failures", ">file named", ">nothing lost", "then the same bits"], cells)


@table
def dask_kills():
    """Return fits on a cluster whose workers were killed."""
    heads = {"runs": "runs", "same bits": "same bits", "killed": "killed", "killed at work": "at work"}
    return counts(load("dask_kills")["rows"], "fit", heads, ["as in process", "seconds"])


@table
def exports():
    """Return how far exported networks are from the models themselves."""
    rows = load("exports")["formats"]
    cells = [
        [name, row["networks"], row["refused"], row["beyond 1e-5"], f"{row['largest']:.1e}"]
        for name, row in rows.items()
    ]
    return markdown(["", ">compared", ">refused by name", ">beyond 1e-5", ">largest difference"], cells)


@table
def service_hostile():
    """Return what became of hostile requests to the service."""
    columns = ("requests", "refused", "wrong")
    return counts(load("service_hostile")["attacks"], "", {name: name for name in columns})


@table
def service_load():
    """Return what the services did under load, beside what was required."""
    found = load("service_load")["services"]

    def per_message(one):
        return f"{1e6 * one['processor seconds of the service'] / one['messages sent']:.0f} µs"

    rows = {
        "clients": (lambda one: one["clients"], ""),
        "seconds": (lambda one: f"{one['seconds']:,.0f}", "3,600"),
        "messages sent": (lambda one: f"{one['messages sent']:,}", ""),
        "not answered, or out of order": (
            lambda one: one["messages sent"] - one["messages answered"] + one["out of order"],
            "0",
        ),
        "latency, median": (lambda one: f"{one['p50 ms']:,.1f} ms", ""),
        "latency, 99 % below": (lambda one: f"{one['p99 ms']:,.1f} ms", "20 ms; sound 100 ms"),
        "memory of the service": (lambda one: f"{one['memory at the end MB']:.1f} MB", ""),
        "its growth": (lambda one: f"{one['memory growth percent']:.2f} %", "below 1 %"),
        "processor time per message": (per_message, ""),
        "share of the time in which it was ready and had no processor": (
            lambda one: f"{100 * one['seconds in which it waited for a processor'] / one['seconds']:.0f} %",
            "",
        ),
    }
    cells = [[name, *map(of, found.values()), goal] for name, (of, goal) in rows.items()]
    return markdown(["", *(f">{name}" for name in found), ">goal"], cells)


@table
def load_tests():
    """Return what the tests of the load found."""
    rows = {
        "much data": lambda f: (
            f"fit and prediction of {f['frames']:,} frames, {f['units']:,} units, in {f['margin_mb']:,} MB above what "
            "Python and the libraries map after import",
            f"{f['resident_mb']:,} MB resident at most; all states at once: {f['all_states_mb']:,} MB",
        ),
        "many fits": lambda f: (
            f"{f['fits']:,} fits in one process",
            f"resident memory grew by {f['growth_percent']:.2f} %, after 50 fits to warm up",
        ),
        "threads": lambda f: (
            f"{f['calls']} predictions on {f['threads']} threads",
            f"{f['bit_equal']} have the bits of the serial ones",
        ),
        "children": lambda f: (
            f"{f['rounds']} processes each that were forked, spawned, and forked in the middle of a fit",
            f"{f['fork']}, {f['spawn']} and {f['fork during a fit']} fit and predict",
        ),
        "stream": lambda f: (
            f"a stream of {f['frames']:,} frames",
            f"at most {f['largest_difference']:.1e} from `predict`; memory grew by {f['growth_percent']:.2f} %",
        ),
    }
    found = load("load")
    cells = [
        [name, *rows[next(begin for begin in rows if name.startswith(begin))](figures)]
        for name, figures in found.items()
        if name != "versions"
    ]
    return markdown(["", "test", "result"], cells)


@table
def mutants():
    """Return what became of the changed choices, by package; of both samples."""
    columns = ("mutants", "killed", "timeout", "survived", "explained", "survived at first")
    samples = {seed: load(name) for seed, name in ((1, "mutants"), (7, "mutants-7"))}
    cells = [
        [seed if name.startswith("all") else "", name, *(f"{row.get(column, 0):,}" for column in columns)]
        for seed, found in samples.items()
        for name, row in found.get("table", {}).items()
    ]
    return markdown(["seed", "package", *(f">{name}" for name in columns)], cells)


def tasks_of_a_fit(frames, workers):
    """Return about how many tasks the sums of a fit have, whose sequences have 300 frames on average.

    They are the nodes of the tree over groups of 6,100 frames, as cluster/executor.py makes them, and four tasks for
    each part of the data (X, y, their scales, their inputs): 13,300 frames, or more if there would be over 4,096 parts.
    """
    groups, size = -(-frames // 6100), 1
    while groups // (4 * size) >= 8 * workers:
        size *= 4
    terms = tasks = -(-groups // size)
    while terms > 4:
        terms = -(-terms // 4)
        tasks += terms
    return tasks + 4 * min(-(-frames // 13_300), 4096)


def spoken(value):
    """Return a figure with two digits or more."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


@table
def cluster_model():
    """Return the costs of a pass for sums, measured with 2 to 8 workers, and beside them those of the model."""
    units, many, fit = 1000, 10**9, "sums and ridge, 1000"
    found = {workers: one for workers in (2, 4, 8) if (one := load(f"dask_speed_{workers}"))}
    first = found[2]["rows"][fit]
    per_frame = 2 * first["worker CPU s, most"] / found[2]["frames"]
    per_task = (first["client CPU s"] + first["scheduler CPU s"]) / first["tasks"]
    sums_mb = 8 * (units + 40) * (units + 80) / 1e6  # M (M + C) numbers: G and Q
    cells = []
    for workers, frames in [*((w, one["frames"]) for w, one in found.items()), (10, many), (100, many), (1000, many)]:
        tasks = tasks_of_a_fit(frames, workers)
        row = found.get(workers, {"rows": {fit: None}})["rows"][fit]
        measured = row and (
            row["tasks"], row["worker CPU s, most"], row["client CPU s"] + row["scheduler CPU s"], row["between MB"]
        )  # fmt: skip
        modelled = (tasks, per_frame * frames / workers, per_task * tasks, 2 * workers * sums_mb)
        texts = [spoken(of_model) for of_model in modelled]
        if measured:
            texts = [f"{spoken(of_run)} ({of_model})" for of_run, of_model in zip(measured, texts, strict=True)]
        cells.append([f"{workers:,}", f"{frames:,}", *texts])
    heads = ("workers", "frames", "tasks", "busiest worker, s", "client and scheduler, s", "between workers, MB")
    return markdown([f">{head}" for head in heads], cells)

"""The page: models from their files, and one HTML document with them and all assets, from which no request can leave.

Names of models, classes and features, and everything else that a file may hold, reach the page in one block of JSON in
which no character can end the block; scripts put them on the page as text. The page forbids all requests and all
scripts but its own by a Content-Security-Policy with the hash of each script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from echolearn.exceptions import ExportError
from echolearn.export.page.payload import Json, pack_array, pack_plan
from echolearn.export.page.speech_payload import (
    example_recording,
    names_states,
    network_payload,
    recognizer_payload,
    takes_sound,
)
from echolearn.export.plan import plan_of
from echolearn.runtime._plan import Plan
from echolearn.speech.recognition import Recognizer
from echolearn.speech.recognition._recognizer import load_any

ASSETS = resources.files("echolearn.export.page") / "assets"
FIRST_SCRIPTS = ("engine.js", "deep.js", "interface.js", "drawing.js", "views.js")
LAST_SCRIPT = "start.js"  # between them are the views, by name
EXTRA_SCRIPTS = {"speech_": "speech"}  # scripts with such a name, and EXTRA.css, are for models with such an extra only
MAX_TABLE_BYTES = 500_000
MAX_RESIDUALS = 2000  # of a forecaster that a page draws its interval from
_COMPARED: dict[str, Callable[[Plan], object]] = {
    "their numbers of inputs are": lambda plan: plan.n_features,
    "their numbers of outputs are": lambda plan: plan.answer.n_out,
    "their answers are": lambda plan: plan.answer.output,
    "their classes are": lambda plan: plan.answer.names,
    "one answer per step (True) or per sequence (False):": lambda plan: plan.per_step,
    "whether they are forecasters:": lambda plan: plan.series_dims is not None,
}


@dataclass(frozen=True, eq=False)
class PageModel:
    """A model for a page; extra: data for its views beside the plan, with arrays as `pack_array` returns them."""

    name: str
    plan: Plan
    extra: Mapping[str, Json] = field(default_factory=dict)


def open_models(path: Path, compare: Path | None = None, example: Path | None = None) -> list[PageModel]:
    """Return the model of a file, and a second one to show beside it; example: a table or recording to open with."""
    models = [open_model(place) for place in (path, compare) if place is not None]
    _check_comparable(models)
    if example is None:
        return models
    if all("speech" in model.extra for model in models):
        first, *rest = models
        return [replace(first, extra={**first.extra, "example": example_recording(example)}), *rest]
    text = _example_text(example)
    return [replace(model, extra={**model.extra, "example": text}) for model in models]


def _example_text(path: Path) -> str:
    """Return the text of a table that is small enough for a page."""
    if path.stat().st_size > MAX_TABLE_BYTES:
        raise ExportError(f"{path} has {path.stat().st_size:,} bytes; an example has at most {MAX_TABLE_BYTES:,}.")
    content = path.read_bytes()
    if b"\x00" in content:
        raise ExportError(f"{path} is not a text file; expected a table as CSV.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:  # as older programs of Windows write it
        return content.decode("cp1252", errors="replace")


def _check_comparable(models: Sequence[PageModel]) -> None:
    """Raise ExportError unless all models take the same frames and give the same kind of answers."""
    for model in models[1:]:
        for what, of in _COMPARED.items():
            ours, theirs = of(models[0].plan), of(model.plan)
            if ours != theirs:
                raise ExportError(
                    f"{models[0].name} and {model.name} cannot be shown beside each other: {what} {ours} and {theirs}."
                )


def open_model(path: Path) -> PageModel:
    """Return the model of a file, under the name of the file."""
    return page_model(path.name, load_any(path))


def page_model(name: str, model: BaseEstimator | Recognizer) -> PageModel:
    """Return a fitted estimator, pipeline or recogniser in the form that `build_page` takes."""
    if isinstance(model, Recognizer):
        return PageModel(name, plan_of(model.model), {"speech": recognizer_payload(model)})
    extra: dict[str, Json] = {}
    residuals = getattr(getattr(model, "forecast_", None), "residuals", None)
    if residuals is not None and len(residuals):
        kept = np.linspace(0, len(residuals) - 1, min(len(residuals), MAX_RESIDUALS)).round().astype(int)
        extra["residuals"] = pack_array(np.asarray(residuals, np.float64)[kept], "f4")
    plan = plan_of(model)
    if plan.per_step and names_states(plan.answer.names) and takes_sound(plan.n_features):
        extra["speech"] = network_payload(plan.answer.names, plan.n_features)
    return PageModel(name, plan, extra)


def build_page(models: Sequence[PageModel]) -> str:
    """Return a page, an HTML document, on which one model, or several side by side, run in the browser."""
    extras = {name for model in models for name in model.extra}
    scripts = [_asset(name) for name in _script_names(extras)]
    style = "".join(_asset(f"{name}.css") for name in ("page", *(e for e in EXTRA_SCRIPTS.values() if e in extras)))
    payload = {"models": [{"name": m.name, **pack_plan(m.plan), "extra": dict(m.extra)} for m in models]}
    texts = {
        "POLICY": html.escape(_content_policy(scripts, style)),
        "TITLE": html.escape(" and ".join(_shown(m.name) for m in models) + " · echolearn"),
        "STYLE": style,
        "PAYLOAD": embedded_json(payload),
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    first, *rest = _asset("page.html").split("{{")  # one pass: what is put in is not looked at again
    filled = "".join(texts[name] + after for name, after in (piece.split("}}", 1) for piece in rest))
    return first + filled


def embedded_json(value: Json) -> str:
    """Return JSON that can stand in a script element: no <, >, & and no character outside ASCII is left as it is."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _content_policy(scripts: Sequence[str], style: str) -> str:
    """Return a Content-Security-Policy that allows these scripts and this style, and nothing from anywhere else."""
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data: blob:; media-src blob:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _script_names(extras: set[str]) -> list[str]:
    """Return the names of the scripts that a page with these extras needs, in the order in which they run."""
    names = sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".js"))
    wanted = [name for name in names if all(not name.startswith(p) or e in extras for p, e in EXTRA_SCRIPTS.items())]
    return [*FIRST_SCRIPTS, *(name for name in wanted if name not in (*FIRST_SCRIPTS, LAST_SCRIPT)), LAST_SCRIPT]


def _asset(name: str) -> str:
    """Return the text of an asset."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _shown(name: str) -> str:
    """Return a name without characters that cannot be shown."""
    return "".join(c if c.isprintable() else " " for c in name)[:200]

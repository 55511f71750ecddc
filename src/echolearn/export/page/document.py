"""`build_page`: one or two models and all assets as a single HTML file from which no request can leave.

Names of models, classes and features, and everything else that a file may hold, reach the page in one block of JSON in
which no character can end the block; scripts put them on the page as text. The page forbids all requests and all
scripts but its own by a Content-Security-Policy with the hash of each script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from echolearn.export.page.packing import Json, pack_plan
from echolearn.runtime._plan import Plan

FIRST = ("engine.js", "interface.js", "drawing.js", "views.js")  # in this order; then the views by name, then LAST
LAST = "start.js"
OPTIONAL = {"speech_": "speech"}  # scripts with such a name, and EXTRA.css, are only for models with such an extra


@dataclass(frozen=True, eq=False)
class PageModel:
    """A model for a page, as `page_model` returns it.

    Attributes
    ----------
    name : str
        The name of the model on the page, usually the name of its file.
    plan : Plan
        The operations and arrays of the model.
    extra : mapping of str to JSON
        Further data for the views of the page, for example {"speech": ...}, with arrays as `pack_array` returns them.
    """

    name: str
    plan: Plan
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """An HTML document, and the Content-Security-Policy that it declares.

    Parameters
    ----------
    html : str
        The document.
    policy : str
        The Content-Security-Policy, for a server that sends it as a header too.
    """

    html: str
    policy: str


def build_page(models: Sequence[PageModel]) -> Page:
    """Return one self-contained HTML page on which models run in the browser.

    Parameters
    ----------
    models : sequence of PageModel
        One model, or several to be shown side by side.

    Returns
    -------
    Page
        The HTML document in its attribute `html`, to be written as UTF-8, and its Content-Security-Policy.

    Raises
    ------
    ExportError
        If the page cannot run an option of a model; the message names the option.

    See Also
    --------
    page_model : Prepare a fitted model for a page; it has an example.
    echolearn.export.export_model : Write a page with one model to a file.
    """
    extras = {name for model in models for name in model.extra}
    scripts = [_asset(name) for name in _script_names(extras)]
    style = "".join(_asset(f"{name}.css") for name in ("page", *(e for e in OPTIONAL.values() if e in extras)))
    payload = {"models": [{"name": m.name, **pack_plan(m.plan), "extra": dict(m.extra)} for m in models]}
    policy = content_policy(scripts, style)
    parts = {
        "POLICY": html.escape(policy),
        "TITLE": html.escape(" and ".join(_shown(m.name) for m in models) + " · echolearn"),
        "STYLE": style,
        "PAYLOAD": embedded_json(payload),
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    first, *rest = _asset("page.html").split("{{")  # one pass: what is put in is not looked at again
    filled = "".join(parts[name] + after for name, after in (piece.split("}}", 1) for piece in rest))
    return Page(first + filled, policy)


def embedded_json(value: Json) -> str:
    """Return JSON that can stand in a script element: no <, >, & and no character outside ASCII is left as it is."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content_policy(scripts: Sequence[str], style: str) -> str:
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
    folder = resources.files("echolearn.export.page").joinpath("assets")
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".js"))
    wanted = [name for name in found if all(not name.startswith(p) or e in extras for p, e in OPTIONAL.items())]
    return [*FIRST, *(name for name in wanted if name not in (*FIRST, LAST)), LAST]


def _asset(name: str) -> str:
    """Return the text of an asset."""
    return resources.files("echolearn.export.page").joinpath("assets", name).read_text(encoding="utf-8")


def _shown(name: str) -> str:
    """Return a name without characters that cannot be shown."""
    return "".join(c if c.isprintable() else " " for c in name)[:200]

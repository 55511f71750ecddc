"""The plain page at `/`: what the model is, and how to ask it. No script."""

from __future__ import annotations

from html import escape

from echolearn.export.service.models import Json

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
th { text-align: left; vertical-align: top; padding-right: 1.5rem; font-weight: 600; white-space: nowrap; }
td { overflow-wrap: anywhere; } code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
pre { overflow-x: auto; padding: 0.7rem; border: 1px solid #8886; border-radius: 6px; }
"""


def plain_page(description: Json) -> str:
    """Return the page of a model; every name in it is escaped."""
    shown = {
        "model": description["estimator"],
        "answers": _answers(description),
        "numbers per frame": description["n_features"],
        "features": _listed(description["feature_names"]),
        "classes": _listed(description["classes"]),
        "hidden units": description["hidden_units"],
        "streams": "at /stream" if description["streams"] else description["why_no_stream"],
        "echolearn": description["echolearn"],
    }
    cells = [(escape(name), escape(str(value))) for name, value in shown.items() if value]
    rows = "\n".join(f"<tr><th scope='row'>{name}</th><td>{value}</td></tr>" for name, value in cells)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(str(description["estimator"]))} – echolearn</title><style>{_STYLE}</style></head>
<body><main><h1>A model of echolearn</h1>
<table>{rows}</table>
<h2>How to ask</h2>
<pre>{escape(_example(description))}</pre>
<p><code>GET /model</code> says the same as JSON. <code>/health</code>, <code>/ready</code> and <code>/metrics</code>
are for those who run it.</p></main></body></html>
"""


def _answers(description: Json) -> str:
    what = {
        "classes": "one class and the probabilities of all",
        "labels": "labels of which several may hold, and their probabilities",
        "values": "values",
        "forecast": "the values that follow",
        "speech": "phones and words of recordings",
    }[str(description["task"])]
    if description["task"] in ("forecast", "speech"):
        return what
    return f"{what}, {'for every frame' if description['per_step'] else 'for every sequence'}"


def _listed(names: object) -> str:
    assert isinstance(names, list)
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return ", ".join(str(name)[:80] for name in names[:20]) + more


def _example(description: Json) -> str:
    if description["task"] == "speech":
        return "curl --data-binary @recording.wav -H 'Content-Type: audio/wav' ADDRESS/recognize"
    n = int(str(description["n_features"]))
    frame = "[" + ", ".join(["0.1"] * min(n, 3)) + (", ..." if n > 3 else "") + "]"
    body = '{"steps": 10}' if description["task"] == "forecast" else f'{{"X": [{frame}, {frame}]}}'
    return f"curl -H 'Content-Type: application/json' -d '{body}' ADDRESS/predict"

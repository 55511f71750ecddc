"""The report of `diagnose`: findings in the order of their severity, as text and as a table of a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

SEVERITIES = ("problem", "warning", "note")
WIDTH = 120


@dataclass(frozen=True)
class Finding:
    """One thing that limits a fit.

    Attributes
    ----------
    topic : str
        What it is about, for example "baseline" or "memory".
    severity : {"problem", "warning", "note"}
        How much it limits the fit.
    fact : str
        What was measured, with its figures.
    cure : str
        What to set, with a value to try.
    """

    topic: str
    severity: str
    fact: str
    cure: str


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`: what limits a fit and what to set, most severe first; a table in a notebook.

    Attributes
    ----------
    summary : str
        The result on the given data, beside the trivial one.
    findings : sequence of Finding
        What stands out.
    """

    summary: str
    findings: Sequence[Finding]

    def __str__(self) -> str:
        lines = [self.summary]
        for found in self.findings:
            lines += wrap(f"{found.severity}: {found.fact}", WIDTH, subsequent_indent="  ")
            lines += wrap(f"-> {found.cure}", WIDTH, initial_indent="  ", subsequent_indent="     ")
        return "\n".join(lines if self.findings else [*lines, "Nothing stands out."])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(f.severity)}</td><td>{escape(f.fact)}</td><td>{escape(f.cure)}</td></tr>"
            for f in self.findings
        )
        head = "<tr><th>severity</th><th>what was found</th><th>what to do</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else "<p>Nothing stands out.</p>"
        return f"<p>{escape(self.summary)}</p>{table}"


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, most severe first."""
    return sorted(findings, key=lambda found: SEVERITIES.index(found.severity))

"""Render the tables of README.md and docs/*.md from benchmarks/results/.

    python benchmarks/tables.py            (make tables)
    python benchmarks/tables.py --check    only say which files would change

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. NAME is a function of one of the modules imported
below, with - for _; what stands between the two lines is replaced by what it returns. tests/benchmarks/test_tables.py
runs the check.
"""

import re
import sys

import contest_tables  # noqa: F401  (their tables register themselves)
import guide_tables  # noqa: F401
import headline_tables  # noqa: F401
import measured_tables  # noqa: F401
import monitoring_tables  # noqa: F401
import paper_tables  # noqa: F401
import recognition_tables  # noqa: F401
import reliability_tables  # noqa: F401
import sequences  # noqa: F401
from table_text import ROOT, TABLES

MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(text):
    """Return a document with all its tables as the result files have them."""

    def fill(mark):
        if mark[2] not in TABLES:
            raise KeyError(f"there is no table {mark[2]!r}")
        return f"{mark[1]}{TABLES[mark[2]]()}\n{mark[3]}"

    return MARK.sub(fill, text)


def documents():
    """Return the files that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main():
    changed = []
    for path in documents():
        before = path.read_text(encoding="utf-8")
        if (after := rendered(before)) != before:
            changed.append(path)
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    print("\n".join(str(path.relative_to(ROOT)) for path in changed) or "all tables are as their files have them")
    sys.exit(bool(changed) and "--check" in sys.argv)


if __name__ == "__main__":
    main()

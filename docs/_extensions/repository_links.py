"""Turn links to files of the repository that are no pages into plain names."""

import os
import re
from pathlib import Path

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)(#[^)]*)?\)")


def unlink(app, docname, source):
    """Replace a link that leaves the folder of the pages by its text."""
    here = Path(app.env.doc2path(docname)).parent
    pages = Path(app.srcdir).resolve()

    def replaced(match):
        target = Path(os.path.normpath(here / match[2]))
        if target.is_relative_to(pages) or not target.exists():
            return match[0]  # a page, or a mistake that the build reports
        return f"`{target.relative_to(pages.parent)}`"

    source[0] = LINK.sub(replaced, source[0])


def setup(app):
    app.connect("source-read", unlink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

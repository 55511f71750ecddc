"""Run the Python and the commands of every page while the site is built, and show what they print.

The ```python and ```console blocks of a page run one after the other in an empty folder of their own. In a console
block, lines that begin with `$ ` are commands. What a block prints stands below it in the site; figures that it leaves
open are shown, and so are warnings. A block that fails, or Python that prints to stderr, fails the build. Two comments
in a page are for the build:

    <!-- setup
    code that runs without being shown
    -->
    <!-- not executed: why -->        before a block that cannot run here; the site shows the reason
"""

import functools
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.errors import ExtensionError

PART = re.compile(
    r"(?P<setup><!-- setup\n(?P<hidden>.*?)-->\n)"
    r"|(?P<skipped><!-- not executed: (?P<why>[^\n]*?) *-->\n+(?P<shown>```(?:python|console)\n.*?^```$))"
    r"|(?P<block>^```python\n(?P<code>.*?)^```$)"
    r"|(?P<commands>^```console\n(?P<lines>\$ .*?)^```$)",
    re.DOTALL | re.MULTILINE,
)
RUNNER = Path(__file__).with_name("run_blocks.py")
SOURCE = Path(__file__).parents[2] / "src"


def blocks(text):
    """Return the codes of a page in order; None for what is not executed."""
    return [
        None if part["skipped"] else part["hidden"] or part["code"] or part["lines"] for part in PART.finditer(text)
    ]


@functools.cache
def source_digest():
    """Return a digest of the library: what a page printed is shown until the page or the library changes."""
    files = sorted(SOURCE.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def executed(codes, figures):
    """Return one {"printed", "figures"} per code, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        order = json.dumps({"codes": codes, "figures": str(figures)})
        done = subprocess.run(
            [sys.executable, str(RUNNER)], input=order, capture_output=True, text=True, cwd=folder, check=False
        )
    noise = "\n".join(line for line in done.stderr.splitlines() if "compiling its loops" not in line)
    if done.returncode or noise:
        raise ExtensionError(noise[-3000:] or f"ended with status {done.returncode}")
    return json.loads(done.stdout)


def run_page(app, docname, source):
    """Put below every block of a page what it printed."""
    codes = blocks(source[0])
    if not any(codes) or not app.config.execute_python:
        return
    figures = Path(app.outdir).parent / "executed"
    figures.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(json.dumps([codes, source_digest()]).encode()).hexdigest()[:16]
    kept = figures / f"{docname.replace('/', '-')}-{key}.json"
    if not kept.exists():
        try:
            kept.write_text(json.dumps(executed(codes, figures)), encoding="utf-8")
        except ExtensionError as error:
            raise ExtensionError(f"{docname}: a block of Python failed.\n{error}") from None
    results = iter(json.loads(kept.read_text(encoding="utf-8")))
    up = "../" * docname.count("/")
    source[0] = PART.sub(lambda part: shown(part, next(results), up), source[0])


def shown(part, result, up):
    """Return what stands in the page for one part."""
    if part["setup"]:
        return ""
    if part["skipped"]:
        return f"{part['shown']}\n\n:::{{div}} not-run\nNot run when this site was built: {part['why']}.\n:::\n"
    text = part[0]
    if result["printed"].strip():
        text += f"\n\n```{{code-block}} text\n:class: output\n\n{result['printed'].rstrip()}\n```"
    for name in result["figures"]:
        text += f"\n\n![What the code above draws.]({up}_build/executed/{name})"
    return text


def forget_examples(app, config):
    """Let the gallery run all examples if the library is no longer that of the build before."""
    stamp = Path(app.outdir).parent / "executed" / "library.sha256"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != source_digest():
        for done in Path(app.srcdir, "gallery").glob("*.md5"):
            done.unlink()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(source_digest(), encoding="utf-8")


def setup(app):
    app.add_config_value("execute_python", True, "env", bool)  # -D execute_python=0 leaves blocks as they are
    app.add_config_value("library_digest", source_digest(), "env", str)  # another one: all pages are read again
    app.connect("config-inited", forget_examples)
    app.connect("source-read", run_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

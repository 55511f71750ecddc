"""Write reference/api/: one page for every module with public names, and on it every name with every parameter.

The names are those whose docstrings `make lint` checks (tests/support/sourcetree.py).
"""

import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

from sphinx.ext.autodoc.mock import mock

import sourcetree

ORDER = ("echolearn", "echolearn.metrics", "echolearn.datasets")  # the first pages; then by name

GROUPS = {
    "Estimators and model files": lambda module: module in ("echolearn", "echolearn.exceptions", "echolearn.streams"),
    "Data, errors and settings": lambda module: module.split(".")[1] in ("datasets", "metrics", "tuning"),
    "Reservoirs, states, gradients": lambda module: (
        module.split(".")[1] in ("reservoir", "states", "readout", "gradients", "training")
    ),
    "Diagnosis and monitoring": lambda module: module in ("echolearn.diagnostics", "echolearn.monitoring"),
    "Deployment, clusters, other libraries": lambda module: (
        module.split(".")[1] in ("export", "runtime", "cluster", "interop")
    ),
    "Speech": lambda module: module.startswith("echolearn.speech"),
    "Others": lambda module: True,
}


def public_names():
    """Return {module: [names]}, each class or function once, under the first package that lists it."""
    seen, found = set(), {}
    for module, name in sourcetree.exported_names():
        definition = sourcetree.find(module, name)
        if definition is None or definition.name in seen:
            continue
        seen.add(definition.name)
        found.setdefault(module, []).append(name)
    known = [module for module in ORDER if module in found]
    return {module: sorted(found[module]) for module in [*known, *sorted(set(found) - set(known))]}


def methods(kind):
    """Return the public methods and properties of a class that echolearn itself defines."""
    result = []
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        value = getattr(value, "__func__", getattr(value, "fget", value))
        value = value.func if isinstance(value, cached_property) else value
        inside = str(getattr(value, "__module__", "")).startswith("echolearn")
        if not name.startswith("_") and inside and inspect.getdoc(value):
            result.append(name)
    return result


def entry(module, name):
    """Return the directive of one name."""
    value = getattr(import_module(module), name)
    if not inspect.isclass(value):
        return f".. autofunction:: {module}.{name}\n"
    kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    members = methods(value)
    return f".. {kind}:: {module}.{name}\n" + (f"   :members: {', '.join(members)}\n" if members else "")


def first_line(value):
    """Return the first sentence of a docstring, as reStructuredText."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return safe(re.split(r"(?<=\.) (?=[A-Z])", text)[0])


def summary(rows):
    """Return a table of two columns."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: summary", ""]
    for left, right in rows:
        lines += [f"   * - {left}", f"     - {right}"]
    return "\n".join([*lines, ""])


def page(module, names):
    """Return a page: what the module is for, a line on each name, and all about each of them."""
    package = import_module(module)
    text = safe(inspect.getdoc(package) or "")
    rows = [(f":py:obj:`{name} <{module}.{name}>`", first_line(getattr(package, name))) for name in names]
    lines = [module, "=" * len(module), "", text, "", summary(rows) if len(rows) > 1 else ""]
    lines += [entry(module, name) for name in names]
    return "\n".join(lines)


def short(module):
    """Return the name of a module in the list at the side of the page."""
    return module.removeprefix("echolearn.")


def index(modules):
    """Return the page that lists all modules, by what people do with them."""
    title = "Python"
    lines = [title, "=" * len(title), "", "Every public name, with every parameter. Import paths are as shown.", ""]
    for heading, belongs in GROUPS.items():
        inside = [module for module in modules if belongs(module)]
        modules = [module for module in modules if module not in inside]
        if not inside:
            continue
        rows = [(f":doc:`{module} <{module}>`", first_line(import_module(module))) for module in inside]
        lines += [heading, "-" * len(heading), "", summary(rows)]
        lines += [".. toctree::", "   :hidden:", "", *(f"   {short(module)} <{module}>" for module in inside), ""]
    return "\n".join(lines)


def literals(text):
    """Return a text in which names that end in _ are literals; reStructuredText takes them for links otherwise."""
    text = re.sub(r"(?<!`)\|", r"\\|", text)  # a bar begins a substitution
    return re.sub(r"(?<![`\w.])([A-Za-z]\w*(?:\.\w+)*_)(?![\w`{])", r"`\1`", text)


def links(text):
    """Return a text in which every mention of a page, `docs/FOLDER/PAGE.md`, is a link that shows the page's title."""
    text = re.sub(r"`{0,2}\bdocs/([a-z]+)/(\w+)\.md\b`{0,2}", r":doc:`/\1/\2`", text)
    return re.sub(r"\((:doc:`[^`]+`)\)", r"(see \1)", text)


def safe(text):
    """Return a docstring's text as reStructuredText."""
    return links(literals(text))


def write(app):
    """Write the pages that have changed; delete those of modules that are gone."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    with mock(app.config.autodoc_mock_imports):  # adapters of libraries that are not installed here
        found = public_names()
        texts = {f"{module}.rst": page(module, names) for module, names in found.items()}
        texts["index.rst"] = index(list(found))
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def clean(app, what, name, value, options, lines):
    """Make the lines of a docstring safe for reStructuredText, and link the pages that they mention."""
    lines[:] = [line if re.match(r"\s*\w+_ ?:", line) or ">>>" in line else safe(line) for line in lines]


def setup(app):
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", clean, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Write reference/api/: a page for every module with public names, and one for every class that has methods.

The names are those whose docstrings `make lint` checks (tests/support/sourcetree.py), and the constants below.
"""

import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

from sphinx.ext.autodoc.mock import mock

import sourcetree

FIRST = (  # the first modules, and the first names of a module; then by name
    *("echolearn", "echolearn.metrics", "echolearn.datasets"),
    *("ESNClassifier", "ESNRegressor", "DeepESNClassifier", "DeepESNRegressor", "SeriesClassifier", "SeriesRegressor"),
    *("ESNForecaster", "Reservoir", "ReservoirFeatures"),
)
CONSTANTS = {  # they have no docstring
    "__version__": "The version of echolearn, as text.",
    "SCORERS": "The names of all scores that `scorer` takes: those of scikit-learn, and `neg_nrmse`.",
    "ENGLISH": "The phones of synthetic speech.",
    "TIMIT_61": "The 61 phones of TIMIT.",
}

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
    """Return {module: {name: module with its entry}}: a name has its entry where it is listed first."""
    seen, found = {}, {}
    for module, name in sourcetree.exported_names():
        definition = sourcetree.find(module, name)
        place = f"{module}.{name}" if definition is None else definition.name
        found.setdefault(module, {})[name] = seen.setdefault(place, module)
    return {module: {name: found[module][name] for name in ordered(found[module])} for module in ordered(found)}


def ordered(names):
    """Return names by their places in `FIRST`, then by the alphabet."""
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name.lower()))


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
    if not callable(value):
        return f".. py:data:: {module}.{name}\n\n   {CONSTANTS[name]}\n"
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


def has_page(module, name):
    """Whether a name is a class with methods, which has a page of its own."""
    value = getattr(import_module(module), name)
    return inspect.isclass(value) and not issubclass(value, BaseException) and bool(methods(value))


def pages():
    """Return the texts of all pages by their files."""
    found = public_names()
    texts = {"index.rst": index(list(found))}
    for module, names in found.items():
        own = [name for name, place in names.items() if place == module]
        classes = [name for name in own if has_page(module, name)]
        texts[f"{module}.rst"] = module_page(module, names, classes, [name for name in own if name not in classes])
        for name in classes:
            texts[f"{module}/{name}.rst"] = "\n".join([name, "=" * len(name), "", entry(module, name)])
    return texts


def module_page(module, names, classes, others):
    """Return a page: what the module is for, a line on each name, and all about those without a page of their own."""
    package = import_module(module)
    lines = [module, "=" * len(module), "", safe(inspect.getdoc(package) or ""), ""]
    if len(names) > 1:
        lines.append(
            summary(
                (f":py:obj:`{name} <{place}.{name}>`", CONSTANTS.get(name) or first_line(getattr(package, name)))
                for name, place in names.items()
            )
        )
    if classes:
        lines += [".. toctree::", "   :hidden:", "", *(f"   {module}/{name}" for name in classes), ""]
    return "\n".join([*lines, *(entry(module, name) for name in others)])


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
    """Write the pages that have changed; delete those of modules and classes that are gone."""
    folder = Path(app.srcdir) / "reference" / "api"
    with mock(app.config.autodoc_mock_imports):  # adapters of libraries that are not installed here
        texts = pages()
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def clean(app, what, name, value, options, lines):
    """Make the lines of a docstring safe for reStructuredText, and link the pages that they mention."""
    lines[:] = [line if re.match(r"\s*\w+_ ?:", line) or ">>>" in line else safe(line) for line in lines]


def setup(app):
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", clean, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

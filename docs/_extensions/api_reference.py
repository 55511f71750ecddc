"""Write reference/api/: one page for every module with public names, and on it every name with every parameter.

The names are those whose docstrings `make lint` checks (tests/support/sourcetree.py).
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import sourcetree

ORDER = ("echolearn", "echolearn.metrics", "echolearn.datasets")  # the first pages; then by name


def public_names():
    """Return {module: [names]}, each class or function once, under the first path that makes it public."""
    seen, found = set(), {}
    former = sourcetree.constant("echolearn.validation.former_paths", "FORMER")
    for module, name in sourcetree.exported_names():
        definition = sourcetree.find(module, name)
        if definition is None or definition.name in seen:
            continue
        seen.add(definition.name)
        module = former.get(module, module)
        found.setdefault(module, []).append(name)
    known = [module for module in ORDER if module in found]
    return {module: sorted(found[module]) for module in [*known, *sorted(set(found) - set(known))]}


def importable(module):
    """Return whether a module can be imported here; adapters of other libraries need those libraries."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def methods(kind):
    """Return the public methods and properties of a class that echolearn itself defines."""
    result = []
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        value = getattr(value, "__func__", getattr(value, "fget", value))
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


def page(module, names):
    """Return a page: what the module is for, its names, and all about each of them."""
    text = (inspect.getdoc(import_module(module)) or "").split("\n\n")[0].replace("\n", " ")
    lines = [module, "=" * len(module), "", literals(text), ""]
    lines += [entry(module, name) for name in names]
    return "\n".join(lines)


def literals(text):
    """Return a text in which names that end in _ are literals; reStructuredText takes them for links otherwise."""
    text = re.sub(r"(?<!`)\|", r"\\|", text)  # a bar begins a substitution
    return re.sub(r"(?<![`\w.])([A-Za-z]\w*(?:\.\w+)*_)(?![\w`{])", r"`\1`", text)


def write(app):
    """Write the pages that have changed; delete those of modules that are gone."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    found = {module: names for module, names in public_names().items() if importable(module)}
    texts = {f"{module}.rst": page(module, names) for module, names in found.items()}
    toctree = "\n".join(f"   {module}" for module in found)
    title = "Python"
    texts["index.rst"] = (
        f"{title}\n{'=' * len(title)}\n\nEvery public name.\n\n.. toctree::\n   :maxdepth: 2\n\n{toctree}\n"
    )
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def clean(app, what, name, value, options, lines):
    """Make the lines of a docstring safe for reStructuredText."""
    lines[:] = [line if re.match(r"\s*\w+_ ?:", line) or ">>>" in line else literals(line) for line in lines]


def setup(app):
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", clean, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

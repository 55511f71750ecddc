"""The campaign of mutants: its named mutants fit the source, and what is drawn is a change of the code."""

import ast
from pathlib import Path

import pytest

from reliability.mutants import drawing, judging, named, tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""A module."""

import numpy as np

LIMIT = 3


def chosen(values, best: int = 2, *, part="train"):
    """Return one > another."""
    if len(values) > LIMIT and not best:
        raise ValueError(f"{best + 1} is too many")
    assert best < 9
    warnings.warn("1 < 2", stacklevel=3)
    order = np.argmin(values[best : len(values)])
    return -order
'''


@pytest.fixture
def found(tmp_path):
    """Return the mutants of a small module, as pairs of an operator and the changed line."""
    folder = tmp_path / "src" / "echolearn" / "readout"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(SOURCE, encoding="utf-8")
    sites = drawing.mutants_of(folder / "module.py", tmp_path)
    pairs = set()
    for mutant in (mutant for site in sites for mutant in site):
        changed = set(mutant.apply(SOURCE).splitlines()) - set(SOURCE.splitlines())
        pairs.add((mutant.operator, " ".join(line.strip() for line in changed)))
    return pairs


@pytest.mark.parametrize("name", named.MUTANTS)
def test_every_named_mutant_fits_the_source(name):
    patch = named.MUTANTS[name]
    source = (ROOT / patch.path).read_text(encoding="utf-8")
    mutant = patch.apply(source)
    assert ast.dump(ast.parse(mutant)) != ast.dump(ast.parse(source))


def test_a_patch_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 times, not once"):
        named.Patch("a.py", "x", "y").apply("x + x")


def test_the_operators(found):
    assert {
        ("constant", "LIMIT = 4"),
        ("constant", 'def chosen(values, best: int = 1, *, part="train"):'),
        ("part", "def chosen(values, best: int = 2, *, part='test'):"),
        ("comparison", "if (len(values) >= LIMIT) and not best:"),
        ("and, or", "if (len(values) > LIMIT or not best):"),
        ("condition", "if (not (len(values) > LIMIT and (not best))):"),
        ("sign", "if len(values) > LIMIT and (best):"),
        ("statement removed", "pass"),
        ("opposite", "order = (np.argmax(values[best:len(values)]))"),
        ("slice", "order = np.argmin(values[best : (len(values) + 1)])"),
        ("result", "return None"),
        ("sign", "return (order)"),
    } <= found


def test_texts_annotations_and_assertions_are_left_alone(found):
    changed = " ".join(line for _, line in found)
    assert all(text not in changed for text in ("another", "too many", "assert", "stacklevel", "int |", "import"))


def test_a_draw_is_repeatable_and_every_mutant_stands_alone():
    first, again = (drawing.draw(ROOT, "training", 20, 1) for _ in range(2))
    assert first == again
    assert first != drawing.draw(ROOT, "training", 20, 2)
    assert len({(m.path, m.start, m.end, m.operator) for m in first}) == 20
    for mutant in first:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))


def test_the_function_around_a_line():
    assert drawing.function_around(SOURCE, 5) is None
    assert drawing.function_around(SOURCE, 11) == (9, 15)


def test_every_package_is_drawn_from():
    folders = {path.name for path in (ROOT / "src" / "echolearn").iterdir() if (path / "__init__.py").is_file()}
    assert set(drawing.PACKAGES) == folders
    assert {"forecasting", "gradients", "states"} <= folders
    assert all((ROOT / "tests" / folder).is_dir() for folder in folders)


def test_a_mutant_may_be_judged_by_the_tests_of_its_own_package_alone(monkeypatch):
    def entry(name):
        return tree.Entry("", {f"{name}::test_a": 0.1}, {"src/echolearn/readout/ridge.py": {"3": [0]}})

    tests = tree.TestMap()
    names = ("tests/readout/test_network.py", "tests/readout/test_ridge.py", "tests/training/test_ridge.py")
    monkeypatch.setattr(tests, "files", {name: entry(name) for name in names})
    places = judging.Places("src/echolearn/readout/ridge.py", (3, 3), (2, 4))
    own = [f"{name}::test_a" for name in ("tests/readout/test_ridge.py", "tests/readout/test_network.py")]
    assert judging.choose_tests(tests, places, 60.0, own_alone=True) == [own]
    assert "tests/training/test_ridge.py::test_a" in judging.choose_tests(tests, places, 60.0)[0]

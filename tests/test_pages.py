"""Everything that a reader of the documentation may type runs in its build, or the page says why it does not."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w{}-]*)[^\n]*\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(\$ |(echolearn|python|pip|make|curl|docker|gcc|cc|clang) )")
INDENTED = re.compile(r"\n\n((?: {4}[^\n]*\n?)+)")


def pages():
    tracked = (ROOT / "docs").glob("*/*.md")
    return [page for page in (ROOT / "docs" / "index.md", *sorted(tracked)) if "_build" not in page.parts]


def offences(text):
    """Return the first lines of blocks that a reader would type, and that the build neither runs nor explains."""
    found = []
    for fence in FENCE.finditer(text):
        first, language = fence["body"].split("\n")[0], fence["language"]
        if language in ("sh", "bash", "shell", "zsh") or (fence["indent"] and language in ("python", "console")):
            found.append(first)
        if language in ("", "text") and COMMAND.match(first):
            found.append(first)
        if language == "console" and not first.startswith("$ "):
            found.append(first)
    prose = re.sub(r"<!-- setup\n.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)
    found += [block[1].strip().split("\n")[0] for block in INDENTED.finditer(prose) if COMMAND.match(block[1].strip())]
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_python_run_in_the_build(page):
    text = page.read_text(encoding="utf-8")
    rendered = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)  # commands of result files
    assert not offences(rendered)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_are_words_and_not_file_names(page):
    assert not re.findall(r"\[[\w/]+\.md\]\(", page.read_text(encoding="utf-8"))


def test_what_is_not_run_is_found():
    assert offences("```sh\nls\n```") == ["ls"]
    assert offences("- a\n\n  ```python\n  import x\n  ```") == ["  import x"]
    assert offences("```text\n$ make\n```") == ["$ make"]
    assert offences("Text:\n\n    make test\n    make demo\n\nand more") == ["make test"]
    assert not offences("```console\n$ make\n```\n\n    H = run(x)\n")


def test_blocks_that_are_not_run_have_a_reason():
    from executed_blocks import blocks

    text = "<!-- not executed: it needs a cluster -->\n```python\nfit()\n```\n\n```console\n$ ls\n$ pwd\n```\n"
    assert blocks(text) == [None, "$ ls\n$ pwd\n"]
    assert blocks("<!-- not executed -->\n```python\nfit()\n```") == ["fit()\n"]  # without a reason it runs


def test_examples_run_again_if_the_library_has_changed(tmp_path, monkeypatch):
    import executed_blocks

    app = SimpleNamespace(outdir=tmp_path / "_build" / "html", srcdir=tmp_path)
    done = tmp_path / "gallery" / "plot_one.py.md5"
    done.parent.mkdir()
    for digest, kept in (("first", False), ("first", True), ("second", False), ("second", True)):
        done.touch()
        monkeypatch.setattr(executed_blocks, "source_digest", lambda digest=digest: digest)
        executed_blocks.forget_examples(app, None)
        assert done.exists() == kept


def test_pages_that_docstrings_mention_are_links():
    from api_reference import links

    assert links("a table: docs/howto/scikit_learn.md.") == "a table: :doc:`/howto/scikit_learn`."
    assert links("layers (docs/howto/deep.md).") == "layers (see :doc:`/howto/deep`)."
    assert links("`docs/howto/data.md` and ``docs/howto/data.md``") == ":doc:`/howto/data` and :doc:`/howto/data`"
    assert links("mydocs/howto/data.md, docs/index.md") == "mydocs/howto/data.md, docs/index.md"


def test_every_public_name_has_an_entry_in_the_reference():
    import api_reference
    from sphinx.ext.autodoc.mock import mock

    import sourcetree

    with mock(["sktime", "aeon"]):
        texts = api_reference.pages()
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", "\n".join(texts.values()), re.MULTILINE)
    assert len(entries) == len(set(entries))
    for module, names in api_reference.public_names().items():
        assert set(names) == {name for where, name in sourcetree.exported_names() if where == module}
        for name, place in names.items():
            assert f"{place}.{name}" in entries
            assert f":py:obj:`{name} <{place}.{name}>`" in texts[f"{module}.rst"] or len(names) == 1
    assert all(text.count("autoclass") <= 1 for file, text in texts.items() if "/" in file)
    listed = re.findall(r"^   (?:[\w.]+ <)?([\w./]+)>?$", "\n".join(texts.values()), re.MULTILINE)
    assert {f"{page}.rst" for page in listed} | {"index.rst"} == set(texts)  # each page is in one list


def test_a_public_constant_without_a_text_fails(monkeypatch):
    import api_reference

    monkeypatch.setattr(api_reference, "public_names", lambda: {"echolearn.speech": {"ENGLISH": "echolearn.speech"}})
    assert "The phones of" in api_reference.pages()["echolearn.speech.rst"]
    monkeypatch.delitem(api_reference.CONSTANTS, "ENGLISH")
    with pytest.raises(KeyError, match="ENGLISH"):
        api_reference.pages()


def test_what_a_page_printed_is_kept_until_the_library_changes(tmp_path, monkeypatch):
    import executed_blocks

    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(executed_blocks, "SOURCE", tmp_path)
    found = [executed_blocks.source_digest.__wrapped__()]
    (tmp_path / "a.py").write_text("x = 2\n")
    found.append(executed_blocks.source_digest.__wrapped__())
    (tmp_path / "a.py").write_text("x = 1\n")
    assert found[0] != found[1]
    assert found[0] == executed_blocks.source_digest.__wrapped__()


MOVING = sorted((ROOT / "docs" / "moving").glob("*.md"))


def ours(page):
    """Return the pieces of Python in the last column of a page's tables."""
    rows = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [code for row in rows if "---" not in row[-1] for code in re.findall(r"`([^`]+)`", row[-1])]


@pytest.mark.parametrize("page", MOVING, ids=lambda page: page.stem)
def test_calls_of_the_tables_exist_with_their_keywords(page):
    import ast
    import inspect
    from importlib import import_module

    import sourcetree

    public = {
        name: module for module, name in sourcetree.exported_names() if not module.startswith("echolearn.interop")
    }
    for code in ours(page):
        if code.startswith(("echolearn ", "--", "[")) or not code.replace("...", "x").strip():
            continue
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue  # a part of a call
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("echolearn"):
                for alias in node.names:
                    assert hasattr(import_module(str(node.module)), alias.name), code
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("echolearn."):
                module, _, name = ast.unparse(node).rpartition(".")
                assert any(f"{m}.{n}".startswith(f"{module}.{name}") for m, n in sourcetree.exported_names()), code
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in public:
                value = getattr(import_module(public[node.func.id]), node.func.id)
                known = set(inspect.signature(value).parameters)
                assert {str(k.arg) for k in node.keywords} <= known, (code, known)


def test_properties_that_are_computed_once_have_an_entry():
    from api_reference import methods

    from echolearn.speech import Corpus

    assert {"words", "which", "frames"} <= set(methods(Corpus))


def test_pages_that_the_source_mentions_exist():
    mentioned = {
        (path.name, page)
        for path in (ROOT / "src").rglob("*.py")
        for page in re.findall(r"\bdocs/[a-z]+/\w+\.md\b", path.read_text(encoding="utf-8"))
    }
    assert len(mentioned) > 20
    assert not [(name, page) for name, page in sorted(mentioned) if not (ROOT / page).is_file()]

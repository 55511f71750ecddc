"""The README tells the truth: its example runs as pasted, its commands exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_pasted_and_prints_what_stands_below_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ((example, output),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert _rounded(capsys.readouterr().out) == _rounded(output)


def _rounded(text):
    """Return a text in which percentages have no decimals: the last digit may depend on the processor."""
    return re.sub(r"(\d+\.\d)%", lambda match: f"{float(match[1]):.0f}%", text)


def test_commands_and_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert f"\n{command}:" in makefile
    for page in re.findall(r"\]\(([\w./]+)\)", README):
        assert (ROOT / page).exists(), page

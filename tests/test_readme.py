"""The README tells the truth: its example runs as pasted, its commands exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_pasted_and_says_what_the_comment_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    fixed, learned = (float(p) for p in re.findall(r": ([\d.]+)% of steps wrong", capsys.readouterr().out))
    assert 40 < fixed < 60
    assert learned < 10
    assert (tmp_path / "model.safetensors").exists()


def test_commands_and_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert f"\n{command}:" in makefile
    for page in re.findall(r"\]\(([\w./]+)\)", README):
        assert (ROOT / page).exists(), page

"""Write reference/command_line.md: every command of echolearn with the help that it prints."""

import re
from pathlib import Path

import click

from echolearn.cli.main import main

HEAD = """# Command line

This page lists every command of `echolearn` with its options. The texts are those that `echolearn COMMAND --help`
prints.

## All commands

{table}

**Files.** A MODEL is one safetensors file that the method `save`, `echolearn.save` or `echolearn train` has written.
`recognize` needs a recogniser, which `echolearn train --for recognition` writes. Tables are CSV files with one row per
time step ([an example](../howto/csv_labels.md#on-the-command-line)). No command replaces its input or, unless `--force`
is given, a file whose content no command has written. Corpora are described in [speech](../howto/speech.md), and the
file of `--config` in [configuration](configuration.md).

**Exit status.** A command ends with status 0 if it succeeded, and with 130 after Ctrl-C. If it cannot use what it was
given, it prints what was given, what was expected and what to do, and ends with status 2. `recognize` ends with status
1 if it could not read some of the recordings. A traceback is an error in echolearn itself.

**Output.** Results are printed on stdout, and progress on stderr.

## An example

A forecast of a CSV file, and the description of a saved model:

```python
import numpy as np
from echolearn import ESNClassifier

with open("sales.csv", "w") as file:
    months = range(96)
    values = [200 + 3 * m + 40 * np.sin(2 * np.pi * m / 12) + 5 * np.cos(2.3 * m) for m in months]
    file.write("sales\\n" + "\\n".join(f"{{value:.1f}}" for value in values))

rng = np.random.default_rng(0)
X = [rng.standard_normal((100, 3)) for _ in range(40)]
y = [(np.roll(x[:, 0], 1) > 0).astype(int) for x in X]
ESNClassifier(30, learn="none").fit(X, y).save("model.safetensors")
```

```console
$ echolearn forecast sales.csv --horizon 3
$ echolearn info model.safetensors
```

"""
PAGES = {  # a page on which each command is used
    "align": "evidence/table1",
    "evaluate": "howto/csv_labels",
    "export": "howto/export",
    "forecast": "howto/forecasting",
    "info": "howto/speech",
    "page": "howto/browser",
    "phones": "evidence/phones",
    "predict": "howto/csv_labels",
    "recognize": "howto/recognition",
    "score": "howto/recognition",
    "serve": "howto/service",
    "table1": "evidence/table1",
    "train": "howto/speech",
    "tune": "howto/tuning",
}


def page():
    """Return the text of the page."""
    names = {"help_option_names": ["-h", "--help"], "terminal_width": 100, "max_content_width": 100}
    with click.Context(main, info_name="echolearn", **names) as context:
        commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
        rows = [
            f"| [`{name}`](#echolearn-{name}) | {described(command)} | {link(PAGES[name])} |"
            for name, command in commands.items()
        ]
        texts = [HEAD.format(table="\n".join(["| command | what it does | used in |", "|---|---|---|", *rows]))]
        for name, command in commands.items():
            with click.Context(command, info_name=name, parent=context, terminal_width=100) as inner:
                texts.append(f"## echolearn {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(texts)


def described(command):
    """Return the first sentence of a command, its options as code: a dash would be made of two hyphens otherwise."""
    return re.sub(r"(--[a-z-]+)", r"`\1`", command.get_short_help_str(300))


def link(name):
    """Return a link to a page, under the last part of its name."""
    return f"[{name.rsplit('/', 1)[1].replace('_', ' ')}](../{name}.md)"


def write(app):
    """Write the page, if it has changed."""
    path = Path(app.srcdir) / "reference" / "command_line.md"
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Write reference/command_line.md: every command of echolearn with the help that it prints."""

from pathlib import Path

import click

from echolearn.cli.main import main

HEAD = """# Command line

`echolearn COMMAND --help` prints what stands here. Commands that take a model accept every file that `save` or
`echolearn train` has written. A command that cannot use what it was given prints what was given, what was expected and
what to do, and ends with status 2. `recognize` ends with status 1 if it could not read some of the recordings.

"""


def page():
    """Return the text of the page."""
    texts = [HEAD]
    with click.Context(main, info_name="echolearn", terminal_width=100, max_content_width=100) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            with click.Context(command, info_name=name, parent=context, terminal_width=100) as inner:
                texts.append(f"## echolearn {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(texts)


def write(app):
    """Write the page, if it has changed."""
    path = Path(app.srcdir) / "reference" / "command_line.md"
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

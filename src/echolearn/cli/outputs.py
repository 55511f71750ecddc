"""The files that commands write. None replaces its input or, without --force, a file that no command wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import click

from echolearn.cli.options import FORCE
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._preparation import default_cache


def claim(*paths: Path) -> None:
    """Refuse, before any work is done, to write files where they would replace what is not to be replaced."""
    ctx, known = click.get_current_context(), _record()
    for path in paths:
        if not path.absolute().parent.is_dir():
            raise ValueError(f"{path} cannot be written: its folder does not exist.")
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} cannot be written: it is a folder or a device.")
        if not path.exists():
            continue
        if any(one.exists() and one.samefile(path) for one in _inputs(ctx)):
            raise ValueError(f"{path} is an input of this command, which would be replaced. Write to another file.")
        if not ctx.meta.get(FORCE) and known.get(_key(path)) != file_digest(path):
            raise ValueError(
                f"{path} exists, and its content was not written by a command of echolearn. Write to another file, or "
                "add --force to replace it."
            )


def claim_folder(folder: Path, own: str, *, force: bool) -> None:
    """Refuse a folder that holds files, but not the entry `own`, which all runs of a command put there."""
    if not force and folder.is_dir() and any(folder.iterdir()) and not (folder / own).exists():
        raise ValueError(
            f"{folder} holds files, and none of an earlier run of this command. Write to another folder, or add "
            "--force to replace files of the same names."
        )


def report(path: Path, note: str = "", files: tuple[Path, ...] = ()) -> None:
    """Print what was written, and remember the content: while it stays as it is, a command may replace it.

    files: those below `path`, if it is a folder."""
    known = {key: digest for key, digest in _record().items() if Path(key).exists()}
    known |= {_key(file): file_digest(file) for file in files or (path,)}
    with contextlib.suppress(OSError):  # without a cache, --force is needed
        default_cache().mkdir(parents=True, exist_ok=True)
        write_atomically(_record_file(), json.dumps(known, indent=0).encode())
    click.echo(f"written: {path}{note}")


def _inputs(ctx: click.Context) -> Iterator[Path]:
    """Yield the files that were given to a command, apart from those that it writes."""
    for name, value in ctx.params.items():
        if name == "corpus" and value:
            yield Path(value.partition(":")[2] or value)
        elif name not in ("out", "plot"):
            yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Path))


def _record_file() -> Path:
    return default_cache() / "written.json"


def _record() -> dict[str, str]:
    """Return the digests of files that commands wrote, by their places."""
    try:
        found = json.loads(_record_file().read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(path: Path) -> str:
    return str(path.resolve())


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Renders Helm charts and kustomizations among the given paths, by the user's own helm or kubectl, so that what they
produce is checked. Where the program is missing, an error says how to pipe its output instead.

No shell is used. The program gets the folder as an argument behind `--`, a time limit and a bound for its output. It
may contact the servers that the folder names, as for remote bases of a kustomization.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.api.plain_objects import PlainObjects

_LONGEST_S = 60
_MOST_BYTES = 64 << 20
_MOST_ERROR_BYTES = 64 << 10
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_TEMPLATE = b"{{"


def with_charts(
    paths: Sequence[str], read: Callable[[Sequence[str]], PlainObjects], most_bytes: int = _MOST_BYTES
) -> PlainObjects:
    """What `read` finds in the paths, in which charts and kustomizations are replaced by what they render to."""
    with tempfile.TemporaryDirectory(prefix="shoal-lint-") as folder:
        shown: dict[str, str] = {}
        errors: list[UserError] = []
        plain: list[str] = []
        for number, path in enumerate(paths):
            command = _command(path)
            if command is None:
                plain.append(path)
                continue
            try:
                rendered = Path(folder) / f"{number}.yaml"
                rendered.write_bytes(_rendered(path, command, most_bytes))
                shown[str(rendered)] = f"{path} (rendered)"
                plain.append(str(rendered))
            except UserError as error:
                errors.append(error)
        found = read(plain)
        found.errors[:] = [*errors, *(_explained(error, found.data) for error in found.errors)]
        return found.renamed(shown) if shown else found


def _command(path: str) -> list[str] | None:
    if (Path(path) / "Chart.yaml").is_file():
        return ["helm", "template", "--", "lint"]
    if any((Path(path) / name).is_file() for name in _KUSTOMIZATIONS):
        return ["kubectl", "kustomize", "--"]
    return None


def _rendered(path: str, command: list[str], most_bytes: int) -> bytes:
    program, where = shutil.which(command[0]), Where(file=path)
    if program is None:
        words = " ".join(word for word in command if word != "--")
        fix = f"render it where {command[0]} is: {words} {path} | shoal lint -"
        raise UserError(f"{command[0]} is not installed here, which renders this folder", where=where, fix=fix)
    with tempfile.TemporaryFile() as errors:
        try:
            # A fixed program without a shell; the path is an argument behind --.
            process = subprocess.Popen([program, *command[1:], path], stdout=subprocess.PIPE, stderr=errors)  # noqa: S603
        except OSError as error:
            raise UserError(f"{command[0]} cannot be started: {error.strerror}", where=where) from error
        data, is_late = _output(process, most_bytes)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MOST_ERROR_BYTES))
        lines = errors.read().decode(errors="replace").strip().splitlines()
    if len(data) > most_bytes:
        raise UserError(f"{command[0]} writes more than {most_bytes >> 20} MiB", where=where)
    if is_late:
        raise UserError(f"{command[0]} needs more than {_LONGEST_S} seconds", where=where)
    if process.returncode:
        raise UserError(f"{command[0]} cannot render it: {excerpt(lines[-1] if lines else '')}", where=where)
    return data


def _output(process: subprocess.Popen[bytes], most_bytes: int) -> tuple[bytes, bool]:
    """What the program writes, at most one byte beyond the bound, and whether it took too long. It has ended then."""
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(_LONGEST_S, end)
    timer.start()
    try:
        with process:
            data = process.stdout.read(most_bytes + 1) if process.stdout is not None else b""
            if len(data) > most_bytes:
                process.kill()
    finally:
        timer.cancel()
    return data, is_late.is_set()


def _explained(error: UserError, data: dict[str, bytes]) -> UserError:
    """Says of a template that it is one. A file that is not text may have the same bytes by chance."""
    content = data.get(error.where.file, b"")
    if _TEMPLATE not in content or not _is_text(content):
        return error
    fix = "render it: helm template CHART | shoal lint -, or name the folder of the chart"
    return UserError("is a template with {{ }} and no YAML before it is rendered", where=error.where, fix=fix)


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False

"""Renders Helm charts and kustomizations among the given paths, by the user's own helm or kubectl, so that what they
produce is checked. Where the program is missing, an error says how to pipe its output instead.

No shell is used. The program gets the folder as an argument behind `--`, a time limit and a bound for its output.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.api.plain_objects import PlainObjects

_LONGEST_S = 60
_MOST_BYTES = 64 << 20
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_TEMPLATE = b"{{"


def with_charts(paths: Sequence[str], read: Callable[[Sequence[str]], PlainObjects]) -> PlainObjects:
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
                rendered.write_bytes(_rendered(path, command))
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


def _rendered(path: str, command: list[str]) -> bytes:
    program, where = shutil.which(command[0]), Where(file=path)
    if program is None:
        words = " ".join(word for word in command if word != "--")
        fix = f"render it where {command[0]} is: {words} {path} | shoal lint -"
        raise UserError(f"{command[0]} is not installed here, which renders this folder", where=where, fix=fix)
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program without a shell; the path is an argument behind --
            [program, *command[1:], path], capture_output=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{command[0]} needs more than {_LONGEST_S} seconds", where=where) from error
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}", where=where) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{command[0]} cannot render it: {excerpt(lines[-1] if lines else '')}", where=where)
    if len(done.stdout) > _MOST_BYTES:
        raise UserError(f"{command[0]} writes more than {_MOST_BYTES >> 20} MiB", where=where)
    return done.stdout


def _explained(error: UserError, data: dict[str, bytes]) -> UserError:
    """Says of a template that it is one."""
    if _TEMPLATE not in data.get(error.where.file, b""):
        return error
    fix = "render it: helm template CHART | shoal lint -, or name the folder of the chart"
    return UserError("is a template with {{ }} and no YAML before it is rendered", where=error.where, fix=fix)

"""Files as people name them on a command line: a manifest, a folder of them, or `-` for standard input.

Guarantees: a path that cannot be read is one `UserError` that names it; folders are walked in the order of names, so
the same folder gives the same list on every machine; nothing is read beyond the limits, however large the disk is.

Rejected: reading whatever lies in a folder. Charts, images and notes lie beside manifests; only the endings that
`kubectl apply -f` takes are read, and a folder without any is an error and not an empty cluster.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from shoal.api.decode import MAX_BYTES, Document, Report, read, unique
from shoal.units.errors import UserError, Where

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILES = 10_000
STANDARD_INPUT = "-"
_SHOWN_INPUT = "standard input"


def read_whole(path: Path, most_bytes: int) -> bytes:
    """The file's bytes, or why there are none."""
    where = Where(file=str(path))
    try:
        with path.open("rb") as stream:
            return _read(stream, most_bytes, where)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=where) from error


def read_manifests(paths: Sequence[str], max_bytes: int = MAX_BYTES, report: Report | None = None) -> list[Document]:
    """All objects in all files, in the order given; two of one kind and name are refused, as in one file.

    With `report` each error is reported, and the other files and objects are read.
    """
    documents: list[Document] = []
    left = max_bytes
    files = 0
    for given in paths:
        for path in _sound_files(given, report):
            files += 1
            if files > MAX_FILES:
                raise UserError(f"more than {MAX_FILES:,} files", where=Where(file=given))
            name = _SHOWN_INPUT if path is None else str(path)
            try:
                data = _read_input(left) if path is None else read_whole(path, left)
                left -= len(data)
                documents += read(data, name, report=report)
            except UserError as error:
                if report is None:
                    raise
                report(error)
    return unique(documents, report)


def _sound_files(given: str, report: Report | None) -> Iterator[Path | None]:
    try:
        yield from _files(given)
    except UserError as error:
        if report is None:
            raise
        report(error)


def _files(given: str, endings: tuple[str, ...] = ENDINGS) -> Iterator[Path | None]:
    """The files below a path; None is standard input."""
    if given == STANDARD_INPUT:
        yield None
        return
    path = Path(given)
    if not path.is_dir():
        yield path
        return
    found = False
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(endings):
                found = True
                yield Path(folder) / name
    if not found:
        raise UserError(f"holds no file ending in {', '.join(endings)}", where=Where(file=given))


def _read_input(most_bytes: int) -> bytes:
    return _read(sys.stdin.buffer, most_bytes, Where(file=_SHOWN_INPUT))


def _read(stream: BinaryIO, most_bytes: int, where: Where) -> bytes:
    data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UserError(f"is larger than {most_bytes // 2**20} MiB", where=where)
    return data


def read_each(
    paths: Sequence[str], max_bytes: int = MAX_BYTES, endings: Sequence[str] = ENDINGS
) -> Iterator[tuple[str, bytes | UserError]]:
    """The names and bytes of all files, in the order given; an error in place of the bytes of a file that cannot be
    read. Only a path without any file is raised.
    """
    left, files = max_bytes, 0
    for given in paths:
        for path in _files(given, tuple(endings)):
            files += 1
            if files > MAX_FILES:
                raise UserError(f"more than {MAX_FILES:,} files", where=Where(file=given))
            try:
                data = _read_input(left) if path is None else read_whole(path, left)
            except UserError as error:
                yield str(path), error
                continue
            left -= len(data)
            yield _SHOWN_INPUT if path is None else str(path), data

"""A tar.gz of texts within a limit of bytes.

Guarantees: the same files and time give the same bytes; no file is readable by others; what does not fit is named in
the list of contents.
"""

from __future__ import annotations

import gzip
import io
import tarfile

import msgspec

_MODE = 0o600
CONTENTS = "contents.json"


class LeftOut(msgspec.Struct, frozen=True):
    name: str
    why: str


class BundleArchive:
    def __init__(self, folder: str, most_bytes: int, now_s: int) -> None:
        """`folder`: the name of the only folder in the archive. `most_bytes`: of all files before compression."""
        self._folder = folder
        self._left = most_bytes
        self._now_s = now_s
        self.files: dict[str, bytes] = {}
        self.left_out: list[LeftOut] = []

    def add(self, name: str, data: bytes) -> bool:
        """False if it does not fit."""
        if len(data) > self._left:
            self.leave_out(name, f"{len(data):,} bytes do not fit into the limit of the bundle")
            return False
        self._left -= len(data)
        self.files[name] = data
        return True

    def add_json(self, name: str, value: object) -> bool:
        return self.add(name, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

    def leave_out(self, name: str, why: str) -> None:
        self.left_out.append(LeftOut(name, why))

    def packed(self) -> bytes:
        listed = {"files": {name: len(data) for name, data in self.files.items()}, "leftOut": self.left_out}
        contents = msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n"
        raw = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=raw, mode="wb", mtime=self._now_s) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            for name, data in {CONTENTS: contents, **self.files}.items():
                info = tarfile.TarInfo(f"{self._folder}/{name}")
                info.size, info.mode, info.mtime = len(data), _MODE, self._now_s
                tar.addfile(info, io.BytesIO(data))
        return raw.getvalue()

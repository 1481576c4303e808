"""Writes what a diagnosis reads into a bundle, and reads it back, so that `shoal doctor -f BUNDLE` gives the answer
that it gave in the cluster.

Guarantees: values of environment variables, former configurations in annotations and `managedFields` are not written,
and what looks like a secret is replaced. A file from others is read within a limit of bytes and unpacked nowhere; which
kinds were not read, and why, is kept, so that their checks count as not run.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.client.item import Obj
from shoal.policy.kinds import GroupKind
from shoal.store.diagnosed_objects import DiagnosedObjects
from shoal.store.support_bundle.secrets_in_text import value_without_secrets, without_secrets
from shoal.units.errors import UserError, Where

DIAGNOSED = "diagnosed.json"
ENDINGS = (".tar.gz", ".tgz")
_MOST_BYTES = 512 << 20
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class _File(msgspec.Struct, frozen=True):
    objects: list[dict[str, Any]]
    complete: list[GroupKind]
    unread: list[tuple[GroupKind, str]]
    logs: dict[str, str]


def diagnosed_file(read: DiagnosedObjects, logs: Mapping[str, str]) -> object:
    objects = [value_without_secrets(_reduced(obj)) for obj in read.objects]
    texts = {name: without_secrets(text) for name, text in logs.items()}
    unread = [(kind, without_secrets(why)) for kind, why in read.unread.items()]
    return msgspec.to_builtins(_File(objects, sorted(read.complete), unread, texts))


def read_diagnosed_file(path: str) -> tuple[DiagnosedObjects, dict[str, str]]:
    """The objects, and logs by `namespace/pod`. Raises UserError for what is no bundle."""
    data = _member(path)
    try:
        found = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{DIAGNOSED} cannot be read: {error}", where=Where(file=path)) from None
    return DiagnosedObjects(found.objects, set(found.complete), dict(found.unread)), found.logs


def _member(path: str) -> bytes:
    left = _MOST_BYTES
    try:
        with Path(path).open("rb") as file, tarfile.open(fileobj=file, mode="r|gz") as tar:
            for info in tar:
                left -= max(info.size, 0)
                if left < 0:
                    raise UserError(f"has more than {_MOST_BYTES >> 20} MiB", where=Where(file=path))
                if info.isreg() and info.name.rpartition("/")[2] == DIAGNOSED:
                    member = tar.extractfile(info)
                    return member.read() if member is not None else b""
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UserError(f"is no bundle: {error}", where=Where(file=path)) from None
    fix = "write it with a shoal bundle of this version, or give its snapshot.json"
    raise UserError(f"has no {DIAGNOSED}", where=Where(file=path), fix=fix)


def _reduced(obj: Obj) -> Obj:
    """Without what no diagnosis reads."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {key: value for key, value in meta["annotations"].items() if key != _LAST_APPLIED}
    found: Obj = _without_values({**obj, "metadata": meta})
    return found


def _without_values(value: Any) -> Any:
    """Without the values of environment variables, at any depth: pods, templates of jobs, copies in annotations."""
    if isinstance(value, list):
        return [_without_values(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _without_values(each) for key, each in value.items()}
    for field in _CONTAINERS:
        for container in found.get(field) or () if isinstance(found.get(field), list) else ():
            if isinstance(container, dict) and isinstance(container.get("env"), list):
                container["env"] = [{"name": one.get("name")} for one in container["env"] if isinstance(one, dict)]
    return found

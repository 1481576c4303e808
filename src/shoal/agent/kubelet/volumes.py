"""Provides the volumes of a pod as folders: emptyDir, hostPath, configMap, secret, downwardAPI and projected.

Content from objects is written when a container starts, and again by `refresh`. An emptyDir is kept until the pod is
removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from shoal.agent.kubelet.volume_files import VolumeFile, replace_files
from shoal.client.kubelet.environment import Surroundings
from shoal.client.kubelet.pod_fields import field_value, resource_value
from shoal.client.kubelet.references import MissingSourceError, Of, all_values

Obj = dict[str, Any]
KINDS = ("emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected")
_WITH_CONTENT = frozenset({"configMap", "secret", "downwardAPI", "projected"})
_MODE, _OWN_MODE = 0o644, 0o600
TokenKind = tuple[str, int]
"""The audience of a token, and its requested life in seconds."""
Tokens = Mapping[TokenKind, str]
"""Tokens of the service account."""
_TOKEN_LIFE_S = 3600


class VolumeFault(Exception):  # noqa: N818 - it is reported as the reason why the pod waits
    """A volume cannot be provided now."""


class FileAccess(msgspec.Struct, frozen=True):
    """Who may read the files of volumes."""

    token_mode: int = _OWN_MODE
    group: int | None = None


ONLY_OWN = FileAccess()


def kind_of(volume: Obj) -> str:
    """`emptyDir`, or another source; emptyDir if the volume has none."""
    return next((key for key in volume if key != "name"), "emptyDir")


def tokens_of(pod: Obj) -> list[TokenKind]:
    """The requested ones."""
    projected = [volume.get("projected") or {} for volume in pod["spec"].get("volumes") or ()]
    sources = [source for one in projected for source in one.get("sources") or ()]
    return [_kind_of_token(one["serviceAccountToken"]) for one in sources if "serviceAccountToken" in one]


def _kind_of_token(source: Obj) -> TokenKind:
    return source.get("audience", ""), int(source.get("expirationSeconds") or _TOKEN_LIFE_S)


def has_content(volume: Obj) -> bool:
    """Whether its files come from objects of the API, which can change."""
    return kind_of(volume) in _WITH_CONTENT


def provide(
    pod: Obj, folder: Path, around: Surroundings, tokens: Tokens, access: FileAccess = ONLY_OWN
) -> dict[str, Path]:
    """The folder or file of each volume, by name; `folder`: where they are made. Raises VolumeFault, and OSError."""
    found: dict[str, Path] = {}
    for volume in pod["spec"].get("volumes") or ():
        if kind_of(volume) == "hostPath":
            found[volume["name"]] = _host_path(volume)
            continue
        found[volume["name"]] = folder / volume["name"]
        found[volume["name"]].mkdir(parents=True, exist_ok=True)
    refresh(pod, folder, around, tokens, access)
    return found


def refresh(pod: Obj, folder: Path, around: Surroundings, tokens: Tokens, access: FileAccess = ONLY_OWN) -> None:
    """Write the files that differ from their objects. Raises VolumeFault, and OSError."""
    for volume in pod["spec"].get("volumes") or ():
        if not has_content(volume):
            continue
        try:
            files = [*_files(pod, volume, around, tokens, access.token_mode)]
        except MissingSourceError as error:
            raise VolumeFault(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from None
        for file in files:
            pure = PurePosixPath(file.path)
            if pure.is_absolute() or not pure.parts or pure.parts[0].startswith("..") or ".." in pure.parts:
                raise VolumeFault(f"invalid path in a volume: {file.path}")
        replace_files(folder / volume["name"], files, access.group)


def _host_path(volume: Obj) -> Path:
    path, type_ = Path(volume["hostPath"]["path"]), volume["hostPath"].get("type", "")
    if type_ == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif type_ == "FileOrCreate":
        path.touch(exist_ok=True)
    checks = {"Directory": path.is_dir, "File": path.is_file, "Socket": path.is_socket}
    checks |= {"CharDevice": path.is_char_device, "BlockDevice": path.is_block_device, "": path.exists}
    if type_ in checks and not checks[type_]():
        what = f"is not a {type_.lower()}" if type_ and path.exists() else "does not exist"
        raise VolumeFault(
            f'MountVolume.SetUp failed for volume "{volume["name"]}" : hostPath type check failed: {path} {what}'
        )
    return path


def _files(pod: Obj, volume: Obj, around: Surroundings, tokens: Tokens, token_mode: int) -> Iterator[VolumeFile]:
    kind = kind_of(volume)
    source = volume.get(kind) or {}
    mode = source.get("defaultMode") or _MODE
    if kind == "configMap":
        yield from _of_object("configmap", source, "name", mode, around)
    elif kind == "secret":
        yield from _of_object("secret", source, "secretName", mode, around)
    elif kind == "downwardAPI":
        yield from _downward(pod, source, mode, around)
    elif kind == "projected":
        for part in source.get("sources") or ():
            if "configMap" in part:
                yield from _of_object("configmap", part["configMap"], "name", mode, around)
            elif "secret" in part:
                yield from _of_object("secret", part["secret"], "name", mode, around)
            elif "downwardAPI" in part:
                yield from _downward(pod, part["downwardAPI"], mode, around)
            elif "serviceAccountToken" in part:
                token = part["serviceAccountToken"]
                yield VolumeFile(token["path"], tokens.get(_kind_of_token(token), "").encode(), token_mode)


def _of_object(of: Of, source: Obj, key: str, mode: int, around: Surroundings) -> Iterator[VolumeFile]:
    values = all_values(around.sources, of, source, key)
    items = source.get("items")
    if items is None:
        yield from (VolumeFile(name, content, mode) for name, content in values.items())
        return
    for item in items:
        if item["key"] in values:
            yield VolumeFile(item["path"], values[item["key"]], item.get("mode") or mode)
        elif not source.get("optional"):
            raise MissingSourceError(f"{of} references non-existent config key: {item['key']}")


def _downward(pod: Obj, source: Obj, mode: int, around: Surroundings) -> Iterator[VolumeFile]:
    for item in source.get("items") or ():
        if "fieldRef" in item:
            value = field_value(pod, item["fieldRef"]["fieldPath"], around.addresses) or ""
        else:
            value = resource_value(pod, {}, item["resourceFieldRef"], around.allocatable)
        yield VolumeFile(item["path"], value.encode(), item.get("mode") or mode)

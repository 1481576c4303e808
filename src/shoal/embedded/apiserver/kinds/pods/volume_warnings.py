"""Warns about the volumes of a pod: removed volume types, files that hide each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache

from shoal.embedded.apiserver.kinds.complaints import Obj

_OLD_KINDS = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN = {"storageos": "storageOS"}
"""Kubernetes warns of another spelling than the field's."""


def volume_warnings(volumes: list[Obj], path: str) -> Iterator[str]:
    for place, volume in enumerate(volumes):
        for kind in volume.keys() & _OLD_KINDS.keys():
            yield f"{path}[{place}].{_SHOWN.get(kind, kind)}: {_OLD_KINDS[kind]}"
    for volume in volumes:
        if projected := volume.get("projected"):
            yield from _projected(projected.get("sources") or [], volume.get("name", ""))
        else:
            yield from _files(volume)


def _files(volume: Obj) -> Iterator[str]:
    name = json.dumps(volume.get("name", ""))
    if (found := volume.get("configMap")) and found.get("items"):
        yield from _overlaps(_paths(found), f"volume {name} (ConfigMap {json.dumps(found.get('name', ''))})")
    if (found := volume.get("secret")) and found.get("items"):
        yield from _overlaps(_paths(found), f"volume {name} (Secret {json.dumps(found.get('secretName', ''))})")
    if (found := volume.get("downwardAPI")) and found.get("items"):
        yield from _overlaps(_paths(found), f"volume {name} (DownwardAPI)")


def _projected(sources: list[Obj], name: str) -> Iterator[str]:
    """Of each source by itself, then of it beside those before it."""
    found = [(source, *_source(source)) for source in sources]
    if all(sources) and _is_clear(tuple(path for _, _, paths in found for path in paths)):
        return
    before: set[str] = set()
    for source, kind, paths in found:
        if not source:
            yield f"volume {json.dumps(name)} (Projected) has no sources provided"
        elif paths:
            said = f"volume {json.dumps(name)} (Projected {kind})"
            yield from _overlaps(paths, said)
            yield from _overlaps(sorted([*set(paths), *before]), said)
            before.update(paths)


@lru_cache(maxsize=1024)
def _is_clear(paths: tuple[str, ...]) -> bool:
    """Whether these paths cause no warning; cached, because every pod has the same volume for its token."""
    return not list(_overlaps(paths, ""))


def _source(source: Obj) -> tuple[str, list[str]]:
    if found := source.get("configMap"):
        return f"ConfigMap {json.dumps(found.get('name', ''))}", _paths(found)
    if found := source.get("secret"):
        return f"Secret {json.dumps(found.get('name', ''))}", _paths(found)
    if found := source.get("downwardAPI"):
        return "DownwardAPI", _paths(found)
    if found := source.get("serviceAccountToken"):
        return "ServiceAccountToken", [found.get("path", "")]
    if found := source.get("clusterTrustBundle"):
        named = found.get("name") or found.get("signerName", "")
        return f"ClusterTrustBundle {json.dumps(named)}", [found.get("path", "")]
    return "", []


def _paths(source: Obj) -> list[str]:
    return [one.get("path", "") for one in source.get("items") or ()]


def _overlaps(paths: Iterable[str], said: str) -> Iterator[str]:
    """Kubernetes compares letters, not folders: `data` and `data1` are reported only where Kubernetes does so too."""
    seen: list[str] = []
    for path in (one.rstrip("/") for one in paths):
        other = next((one for one in seen if _collide(one, path)), "")
        if other and path:
            yield f"{said}: overlapping paths: {json.dumps(path)} with {json.dumps(other)}"
        seen.append(path)


def _collide(one: str, other: str) -> bool:
    return one == other or f"{one}/".startswith(other) or f"{other}/".startswith(one)

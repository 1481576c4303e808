"""Lists the ConfigMaps and Secrets that a pod refers to, and looks their values up.

Both are fetched once before a container starts; functions that need them are pure.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Obj = dict[str, Any]
Of = Literal["configmap", "secret"]


class Reference(NamedTuple):
    of: Of
    name: str


Sources = Mapping[Reference, Mapping[str, bytes] | None]
"""The data of each referenced object; None: it does not exist."""


class MissingSourceError(Exception):
    """A required ConfigMap or Secret, or a key in it, does not exist. The message has the kubelet's words."""


def values_in(obj: Obj) -> dict[str, bytes]:
    """The values of a ConfigMap or Secret."""
    found = {key: b64decode(text) for key, text in (obj.get("binaryData") or {}).items()}
    is_secret = obj.get("kind") == "Secret" or "type" in obj
    for key, text in (obj.get("data") or {}).items():
        found[key] = b64decode(text) if is_secret else text.encode()
    return found


def references_of(pod: Obj) -> Iterator[Reference]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for source in container.get("envFrom") or ():
            yield from _named(source.get("configMapRef"), source.get("secretRef"))
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            yield from _named(source.get("configMapKeyRef"), source.get("secretKeyRef"))
    for secret in spec.get("imagePullSecrets") or ():
        yield Reference("secret", secret.get("name", ""))
    yield from volume_references_of(pod)


def volume_references_of(pod: Obj) -> Iterator[Reference]:
    for volume in pod["spec"].get("volumes") or ():
        yield from _named(volume.get("configMap"), volume.get("secret"), "secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _named(source.get("configMap"), source.get("secret"))


def _named(config_map: Obj | None, secret: Obj | None, key: str = "name") -> Iterator[Reference]:
    if config_map is not None:
        yield Reference("configmap", config_map.get("name", ""))
    if secret is not None:
        yield Reference("secret", secret.get(key, ""))


def all_values(sources: Sources, of: Of, reference: Obj, key: str = "name") -> Mapping[str, bytes]:
    """All values of a referenced object. Raises MissingSourceError unless it is optional."""
    name = reference.get(key, "")
    found = sources.get(Reference(of, name))
    if found is None and not reference.get("optional"):
        raise MissingSourceError(f'{of} "{name}" not found')
    return found or {}


def value_of(sources: Sources, of: Of, reference: Obj, namespace: str) -> bytes | None:
    """The value of one key; None if it is optional and absent."""
    found = all_values(sources, of, reference)
    if reference["key"] in found:
        return found[reference["key"]]
    if reference.get("optional"):
        return None
    title = {"configmap": "ConfigMap", "secret": "Secret"}[of]
    raise MissingSourceError(f"couldn't find key {reference['key']} in {title} {namespace}/{reference['name']}")

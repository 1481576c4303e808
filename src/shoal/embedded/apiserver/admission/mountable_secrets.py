"""A service account may say that its pods use no secrets but those it lists."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.reading import Obj

_CONTAINERS = (
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
)
_ENFORCED = "kubernetes.io/enforce-mountable-secrets"


def secrets_fault(account: Obj, spec: Obj) -> str:
    """What a pod may not use under its account; empty when it may use all it asks for."""
    metadata = account["metadata"]
    annotations = metadata.get("annotations")
    if not annotations or str(annotations.get(_ENFORCED)).lower() not in ("true", "1", "t"):
        return ""
    mountable = {one.get("name") for one in account.get("secrets") or ()}
    refusal = f"is not allowed because service account {metadata['name']} does not reference that secret"
    for words, secret in _uses(spec):
        if secret not in mountable:
            return f'{words}secret.secretName="{secret}" {refusal}'
    pullable = {one.get("name") for one in account.get("imagePullSecrets") or ()}
    for at, one in enumerate(spec.get("imagePullSecrets") or ()):
        if one.get("name") not in pullable:
            where = f'imagePullSecrets[{at}].name="{one.get("name", "")}"'
            return (
                f"{where} is not allowed because service account {metadata['name']} "
                "does not reference that imagePullSecret"
            )
    return ""


def _uses(spec: Obj) -> Iterator[tuple[str, str]]:
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            yield "volume with ", volume["secret"].get("secretName", "")
    for field, word in _CONTAINERS:
        for container in spec.get(field) or ():
            for variable in container.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if reference:
                    named = f"{word} {container['name']} with envVar {variable['name']} referencing "
                    yield named, reference.get("name", "")

"""Labels definitions that this server provides, with the project that each belongs to.

Versions of such kinds are converted by the server itself, where the definition names no webhook: what one version
calls differently is stored as the stored version calls it and shown as each version does. This needs no
process and no address, so a server without Shoal's controllers, or one that restarts, converts too.

A provided definition yields to the project's own: while only its provider has written its spec, a client that applies
another spec takes it over without a conflict, and versions that the new spec does not have are given up. Objects that
were stored in one of these are stored anew (`server/custom_resources.py`).

Rejected: a webhook on the loopback, as a real cluster needs one. Its address is known only after the start, so that
definitions would lie for a moment after each; every read in the other version would cost a request to the same process;
and objects could not be read at all while it is away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.resource import Converter

Obj = dict[str, Any]
LABEL = "shoal.dev/provided"
SHAPE = "shoal.dev/shape"
"""An annotation: which shape was written."""
_SHAPE_FIELD = f"f:{SHAPE}"


def provider_of(definition: Obj) -> str:
    """The project for which it was provided; empty for those that people bring."""
    return str((definition["metadata"].get("labels") or {}).get(LABEL, ""))


def is_untouched(definition: Obj) -> bool:
    """Whether it was provided, and its spec was written by its provider alone."""
    return bool(provider_of(definition)) and _owners(definition, "spec") == _owners(definition, "shape")


def without_owner(definition: Obj) -> Obj:
    """An untouched definition whose spec belongs to no manager, so that the next one to apply meets no conflict."""
    metadata = definition["metadata"]
    freed = []
    for entry in metadata.get("managedFields") or ():
        fields = {key: value for key, value in (entry.get("fieldsV1") or {}).items() if key != "f:spec"}
        if fields:
            freed.append({**entry, "fieldsV1": fields})
    return {**definition, "metadata": {**metadata, "managedFields": freed}}


def brought(stored: Obj, definition: Obj, to_version: str) -> Obj:
    """An object that is stored in a version that was given up, in another one. Raises UserError where that fails."""
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    wanted = f"{group}/{to_version}"
    for (_, converted), makes in _CONVERTERS.items():
        if converted == group and (convert := makes(kind)) is not None:
            return convert(stored, wanted)
    return {**stored, "apiVersion": wanted}


def _owners(definition: Obj, part: str) -> set[str]:
    """The managers of the spec, or of the annotation that only a provider writes."""
    found = set()
    for entry in definition["metadata"].get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        annotations = (fields.get("f:metadata") or {}).get("f:annotations") or {}
        if "f:spec" in fields if part == "spec" else _SHAPE_FIELD in annotations:
            found.add(str(entry.get("manager", "")))
    return found


def converter_of(definition: Obj) -> Converter | None:
    """Of a definition of ours that does not lead to a webhook; None: versions call everything alike."""
    spec = definition["spec"]
    if (spec.get("conversion") or {}).get("strategy") == "Webhook" or len(spec["versions"]) < 2:
        return None
    makes = _CONVERTERS.get((provider_of(definition), spec["group"]))
    return None if makes is None else makes(spec["names"]["kind"])


def _kueue(kind: str) -> Converter | None:
    # Imported here: a server without such kinds is up before this is read.
    from shoal.api.kueue.conversion import convert, differs

    return convert if differs(kind) else None


_CONVERTERS: dict[tuple[str, str], Callable[[str], Converter | None]] = {("kueue", "kueue.x-k8s.io"): _kueue}
"""By project and group."""

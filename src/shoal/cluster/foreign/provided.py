"""What a label says of a definition: that it came from here, and for which project.

Versions of such kinds are converted by the server itself, where the definition names no webhook: what one version
calls differently is stored as the stored version calls it and shown as each version does. Nobody has to be running for
that, nothing has an address, and a server without Shoal's controllers, or one that starts again, converts too.

Rejected: a webhook on the loopback, as a real cluster needs one. Its address is known only after the start, so that
definitions would lie for a moment after each; every read in the other version would cost a request to the same process;
and objects could not be read at all while it is away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.resource import Converter

Obj = dict[str, Any]
LABEL = "shoal.dev/provided"


def provider_of(definition: Obj) -> str:
    """The project for which it was provided; empty for those that people bring."""
    return str((definition["metadata"].get("labels") or {}).get(LABEL, ""))


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

"""Reads the advisor's Events about an object or its owners from a live cluster, for `shoal why`.

Rejected: looking for the same faults here. The objects that `shoal why` reads contain no commands and no variables of
containers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.cli.cluster_access import speak
from shoal.cli.object_names import POD
from shoal.store.inventory import Inventory
from shoal.store.queues.members import Members

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.views.explanation import Explanation

HEADING = "advice"
_ADVISOR = "shoal-advisor"
_FROM = f"source={_ADVISOR}"


def show_advice(explanation: Explanation, documents: Sequence[Document], access: Access) -> None:
    """Returns the lines at the end of the answer, one for each fault."""
    about = set(_concerned(explanation, documents))
    lines = [
        f"{kind} {name}: {event.get('message', '')}"
        for event in speak(access, _said)
        for kind, namespace, name in (_involved(event),)
        if (kind.lower(), f"{namespace}/{name}") in about and event.get("type") == "Warning"
    ]
    explanation.add(HEADING, *dict.fromkeys(lines))


def _concerned(explanation: Explanation, documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Kinds in lower case, and keys: the object that is explained, and its owners."""
    words = explanation.title.replace(",", " ").replace(":", " ").split()
    kind, key = (POD, words[0]) if "/" in words[0] or len(words) == 1 else (words[0], words[1])
    yield kind, key
    if kind != POD:
        return
    for document in documents:
        value = document.value
        if isinstance(value, Pod) and value.metadata.key == key:
            for namespace, owner, name in Members(Inventory(documents)).owners(value):
                yield owner.lower(), f"{namespace}/{name}"


async def _said(api: Api) -> list[dict[str, Any]]:
    """None if the Events may not be read; the answer is then given without them."""
    from shoal.client.kind import EVENTS
    from shoal.client.port import Select
    from shoal.client.refusals import ForbiddenError

    try:
        return [item.obj() for item in (await api.list(EVENTS, "", Select(fields=_FROM))).items]
    except ForbiddenError:
        return []


def is_advice(event: Mapping[str, Any]) -> bool:
    """Whether `show_advice` says it."""
    return (event.get("source") or {}).get("component") == _ADVISOR and event.get("type") == "Warning"


def _involved(event: dict[str, Any]) -> tuple[str, str, str]:
    about = event.get("involvedObject") or {}
    return str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))

"""Objects that are in the cluster and that no decision reads: services of inference, workflows, pipelines.

Their operators make other objects, which are read. `shoal why` shows the pods of such an
object; the advisor reports what is wrong with it on the object itself.

Rejected: reading them into every picture of the cluster. The list of such kinds is open, and they do not affect
decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.pod import Pod
from shoal.cli.explanation_text import by_node, counted
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation

if TYPE_CHECKING:
    from shoal.client.port import Api, ServedKind

_MOST_NAMES = 4
Owner = tuple[str, str, str]
"""(namespace, kind, name)."""


class Unread(NamedTuple):
    kind: str
    namespace: str
    name: str


async def find_unread(api: Api, text: str, namespace: str, *, is_only: bool = False) -> Unread | None:
    """What `kind/name` or `kind/namespace/name` means; None where it means nothing, or may not be seen. `is_only`: only
    the namespace is searched, unless the text names another one."""
    from shoal.client.port import Select
    from shoal.client.refusals import RefusedError
    from shoal.client.served import answering

    word, _, rest = text.partition("/")
    within, _, name = rest.rpartition("/")
    within = within or (namespace if is_only else "")
    for served in await answering(api):
        if name and _is_meant(served, word.lower()):
            try:
                found = await api.list(served.kind, within, Select(fields=f"metadata.name={name}"))
            except RefusedError:
                continue
            # Of several the one in the namespace that is looked at.
            for item in sorted(found.items, key=lambda item: item.namespace != namespace):
                return Unread(served.kind.name, item.namespace, item.name)
    return None


def _is_meant(served: ServedKind, word: str) -> bool:
    from shoal.store.snapshot.kinds import WANTED

    kind = served.kind
    is_kubernetes = "." not in kind.group or (kind.group.endswith(".k8s.io") and not kind.group.endswith(".x-k8s.io"))
    if not kind.is_namespaced or is_kubernetes or "list" not in served.verbs:
        return False
    if any((kind.group, kind.plural) == (each.group, each.plural) for each in WANTED):
        return False
    plain, _, group = word.partition(".")
    return plain in (kind.plural, kind.name.lower()) and (not group or kind.group.startswith(group))


def explain_unread(unread: Unread, documents: Sequence[Document]) -> Explanation:
    """With those of its pods that have not ended."""
    pods = _pods_of(unread, documents)
    waiting = sorted(pod.metadata.name for pod in pods if not pod.spec.node_name)
    words = counted(pods, len(waiting), 0)
    what = f"exists; pods: {words}" if words else "exists and has no pods yet"
    explanation = Explanation(f"{unread.kind.lower()} {unread.namespace}/{unread.name}", what)
    explanation.add("pods", *by_node(pods), f"those that wait: {few(waiting, _MOST_NAMES)}" if waiting else "")
    explanation.add(
        "read", "no decision reads it, only what its operator makes of it: shoal why pod/... tells of a pod"
    )
    return explanation


def _pods_of(unread: Unread, documents: Sequence[Document]) -> list[Pod]:
    """Of all that it owns, over however many others."""
    above: dict[Owner, Owner] = {}
    pods = []
    for document in documents:
        value = document.value
        meta = meta_of(value)
        owner = meta.controller()
        if owner is not None:
            kind = value.kind if isinstance(value, Unknown) else type(value).__name__
            above[meta.namespace, kind, meta.name] = (meta.namespace, owner.kind, owner.name)
        if isinstance(value, Pod) and not value.is_finished():
            pods.append(value)
    wanted = (unread.namespace, unread.kind, unread.name)
    return [pod for pod in pods if _is_below((pod.metadata.namespace, "Pod", pod.metadata.name), wanted, above)]


def _is_below(owner: Owner | None, wanted: Owner, above: dict[Owner, Owner]) -> bool:
    seen = set()
    while owner is not None and owner not in seen:
        if owner == wanted:
            return True
        seen.add(owner)
        owner = above.get(owner)
    return False

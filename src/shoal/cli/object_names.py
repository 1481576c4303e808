"""Resolves a name of the command line among the objects that were read: `pod/x`, `job/x`, `wl/x`, `gang/x`, or `x`.

Guarantees: kinds have the names that kubectl accepts; a name is looked for in the namespace given, then in all others,
or in a namespace of the command line alone; one that means several things is refused with all of them, and one that
means nothing with what is most like it.

A job, the gang that its pods are and its Workload in the queue are one matter under one name: the
gang tells most, then the workload, then the pods.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.kueue import Workload
from shoal.api.pod import Pod
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from shoal.units.errors import UserError, excerpt
from shoal.units.near_texts import nearest_name
from shoal.views.enumeration import few

POD, GANG, WORKLOAD = "pod", "gang", "workload"
_ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("pod", "pods", "po"), POD),
    **dict.fromkeys(("gang", "gangs", "podgroup", "podgroups", "pg"), GANG),
    **dict.fromkeys(("workload", "workloads", "wl"), WORKLOAD),
    **dict.fromkeys(("deploy", "deployments"), "deployment"),
    **dict.fromkeys(("rs", "replicasets"), "replicaset"),
    **dict.fromkeys(("sts", "statefulsets"), "statefulset"),
    **dict.fromkeys(("ds", "daemonsets"), "daemonset"),
    **dict.fromkeys(("vj", "vcjob", "vcjobs"), "job"),
    "jobs": "job",
    "lws": "leaderworkerset",
}
_MAKERS = (Job, Deployment, ReplicaSet, StatefulSet, DaemonSet)
_MAKER_NAMES = tuple(each.__name__.lower() for each in _MAKERS)
_FIRST = (GANG, WORKLOAD)
"""Kinds in order of precedence if several objects have one name; other owners of pods follow."""
_NEAR = 3
_ALIKE = 0.75


_EXPLAINED = "shoal why explains pods, gangs, workloads and what makes pods"
_UNEXPLAINED: Mapping[str, str] = {
    **dict.fromkeys(("node", "nodes", "no"), "see shoal get nodes {name}"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "its Jobs can: shoal why job/NAME"),
    **dict.fromkeys(("clusterqueue", "clusterqueues", "cq", "cohort", "cohorts"), "see shoal queue {name}"),
    **dict.fromkeys(("localqueue", "localqueues", "lq", "queue", "queues"), "see shoal queue {name}"),
    **dict.fromkeys(("service", "services", "svc", "namespace", "namespaces", "ns"), _EXPLAINED),
    **dict.fromkeys(("configmap", "configmaps", "cm", "secret", "secrets", "event", "events"), _EXPLAINED),
    **dict.fromkeys(
        ("persistentvolume", "persistentvolumes", "pv", "storageclass", "storageclasses", "sc"), _EXPLAINED
    ),
    **dict.fromkeys(("persistentvolumeclaim", "persistentvolumeclaims", "pvc"), _EXPLAINED),
    **dict.fromkeys(("resourceflavor", "resourceflavors", "flavor", "rf"), _EXPLAINED),
}
"""Types that exist and have no pods of their own, with what to do instead."""


class Subject(NamedTuple):
    kind: str
    """In small letters, as kubectl writes it."""
    key: str
    """namespace/name."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.key}"


class Subjects:
    """Everything that can be asked about."""

    def __init__(
        self,
        documents: Iterable[Document],
        pods: Iterable[str],
        gangs: Iterable[str],
        workloads: Iterable[str],
        uncreated: Container[str] = frozenset(),
    ):
        """`pods`, `gangs` and `workloads` are the keys that the facts know; of those that ended documents tell.
        `uncreated`: the pods that have no object yet, which can be asked about and are not counted."""
        self._uncreated = uncreated
        self._kinds: dict[str, dict[str, None]] = {}
        for kind, keys in ((POD, pods), (GANG, gangs), (WORKLOAD, workloads)):
            for key in keys:
                self._add(key, kind)
        for document in documents:
            kind = _kind_of(document)
            if kind:
                self._add(meta_of(document.value).key, kind)

    def find(self, text: str, namespace: str = "", *, is_only: bool = False) -> Subject:
        """What is meant. `is_only`: the namespace was requested, so objects of others are not meant."""
        if text in self._kinds:
            return self._one(text)
        kind, name = self._split(text)
        found = list(self._matching(kind, name, namespace))
        if found and is_only and "/" not in name and not found[0].startswith(f"{namespace}/"):
            raise _elsewhere(f"{kind}/" if kind else "", name, namespace, found)
        if not found:
            raise self._nothing(text, kind, name)
        if len(found) == 1:
            return Subject(kind, found[0]) if kind else self._one(found[0])
        raise UserError(f"{excerpt(text)} is in several namespaces", fix=f"name one of {', '.join(found[:_NEAR])}")

    def _add(self, key: str, kind: str) -> None:
        self._kinds.setdefault(key, {})[kind] = None

    def _split(self, text: str) -> tuple[str, str]:
        """The kind, if one is named, and the rest."""
        word, slash, rest = text.partition("/")
        word = word.partition(".")[0].lower()
        known = {kind for kinds in self._kinds.values() for kind in kinds}
        known |= {*_MAKER_NAMES}
        kind = _ALIASES.get(word) or next((each for each in (word, word.removesuffix("s")) if each in known), "")
        is_kind = slash and (kind in known or kind in _ALIASES.values())
        return (kind, rest) if is_kind else ("", text)

    def _matching(self, kind: str, name: str, namespace: str) -> Iterator[str]:
        full = name if "/" in name else f"{namespace}/{name}" if namespace else name
        if full in self._kinds and (not kind or kind in self._kinds[full]):
            yield full
            return
        if "/" in name:
            return
        for key, kinds in sorted(self._kinds.items()):
            if key.partition("/")[2] == name and (not kind or kind in kinds):
                yield key

    def _one(self, key: str) -> Subject:
        """Resolves a name without a kind; a name with several meanings is refused."""
        kinds = self._kinds[key]
        if POD in kinds and len(kinds) > 1:
            names = " or ".join(f"{kind}/{key.partition('/')[2]}" for kind in kinds)
            raise UserError(f"{excerpt(key)} is a {' and a '.join(kinds)}", fix=f"say {names}")
        return Subject(next((kind for kind in _FIRST if kind in kinds), next(iter(kinds))), key)

    def _nothing(self, text: str, kind: str, name: str) -> UserError:
        if not kind and (meant := self._with_nearest_kind(text)):
            return UserError(f"type {excerpt(text.partition('/')[0])} not found", fix=f"did you mean {meant}?")
        word, slash, rest = text.partition("/")
        instead = _UNEXPLAINED.get(word.partition(".")[0].lower(), "") if slash and not kind else ""
        if instead and not self._has_namespace(word):
            return UserError(f"type {excerpt(word)} cannot be explained", fix=instead.format(name=rest))
        names = sorted(key for key, kinds in self._kinds.items() if not kind or kind in kinds)
        bare = {known.partition("/")[2]: known for known in names}
        near = difflib.get_close_matches(name, names, n=_NEAR, cutoff=_ALIKE)
        short = name.rpartition("/")[2]
        near += [bare[each] for each in difflib.get_close_matches(short, bare, n=_NEAR, cutoff=_ALIKE)]
        shown = [f"{kind}/{each}" if kind else each for each in dict.fromkeys(near)][:_NEAR]
        if slash and not shown and not kind and not self._has_namespace(word):
            near_kind = nearest_name(word.lower(), (*_ALIASES, *_MAKER_NAMES))
            fix = f"did you mean {_ALIASES.get(near_kind, near_kind)}?" if near_kind else _EXPLAINED
            return UserError(f"{excerpt(word)} is no type, and no namespace with pods", fix=fix)
        what = kind or "pod or gang"
        count = sum(self._is_created(key, kind) for key in names)
        many = f"{count:,} {kind or 'pods and gang'}s exist" if count != 1 else f"1 {what} exists"
        fix = f"did you mean {' or '.join(shown)}?" if shown else many
        return UserError(f"{what} {excerpt(name if kind else text)} not found", fix=fix)

    def _is_created(self, key: str, kind: str) -> bool:
        if kind in ("", POD) and POD in self._kinds[key] and key not in self._uncreated:
            return True
        return GANG in self._kinds[key] if not kind else kind != POD

    def _has_namespace(self, word: str) -> bool:
        return any(key.startswith(f"{word}/") for key in self._kinds)

    def _with_nearest_kind(self, text: str) -> str:
        """An object that exists, whose kind is misspelled: `pdo/x`. Empty where the word is a namespace."""
        word, slash, name = text.partition("/")
        if not slash or self._has_namespace(word):
            return ""
        known = dict.fromkeys([*_ALIASES, *(kind for kinds in self._kinds.values() for kind in kinds)])
        for near in difflib.get_close_matches(word.lower(), known, _NEAR):
            kind = _ALIASES.get(near, near)
            if any(True for _ in self._matching(kind, name, "")):
                return f"{kind}/{name}"
        return ""


def _elsewhere(kind: str, name: str, namespace: str, found: Sequence[str]) -> UserError:
    what = kind.removesuffix("/") or "pod or gang"
    others = [key.partition("/")[0] for key in found]
    namespaces = f"namespace{'s' * (len(others) > 1)} {few(others, _NEAR)}"
    fix = f"{kind}{name} exists in {namespaces}: use -n {others[0]}"
    return UserError(f"{what} {excerpt(name)} not found in namespace {namespace}", fix=fix)


def kind_called(word: str) -> str:
    """The kind that kubectl means by the word, in lower case."""
    small = word.partition(".")[0].lower()
    return _ALIASES.get(small, small)


def _kind_of(document: Document) -> str:
    """Kinds that can be explained; empty for all other objects."""
    value = document.value
    if isinstance(value, Pod):
        return POD
    if isinstance(value, Workload):
        return WORKLOAD
    if isinstance(value, _MAKERS):
        return type(value).__name__.lower()
    is_job = isinstance(value, Unknown) and "/" in value.api_version and isinstance(value.raw.get("spec"), dict)
    # Of kinds without a type, those of other projects that live in namespaces may make pods; claims of volumes do not.
    return value.kind.lower() if isinstance(value, Unknown) and is_job and value.metadata.namespace else ""

"""Writes the change of a field as a sentence and, where kubectl can make it, as a command. Each name and each patch is
one word of the shell.

Most fields of a pod cannot be changed: such a pod is replaced by a corrected copy. The template of a Job can be changed
only while the Job is suspended; otherwise only a sentence says what to change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from shlex import join as joined
from shlex import quote as quoted
from typing import Any

import msgspec

from shoal.api.taints import Taint
from shoal.engine.queues.flavors.capacity import shown
from shoal.engine.queues.remedies.remedy import FieldChange
from shoal.views.enumeration import few

_MOST_PODS = 8


class FieldEdit(msgspec.Struct, frozen=True):
    """One field of a pod or of its template, before and after."""

    path: tuple[str, ...]
    before: Any
    after: Any
    key: str = ""
    """Of a map: the entry `before` is renamed to `after`, with this value."""

    @classmethod
    def renamed(cls, path: tuple[str, ...], before: str, after: str, value: str) -> FieldEdit:
        return cls(path, before, after, value)

    @classmethod
    def removed(cls, path: tuple[str, ...], before: str) -> FieldEdit:
        return cls(path, before, None)

    def words(self, prefix: str = "") -> str:
        path = _dotted(self.path, prefix)
        if self.after is None:
            return f"remove {path}: {_shown(self.before)}"
        if self.key:
            return f"{path}: rename {self.before} to {self.after}"
        return f"{path}: {_shown(self.after)} instead of {_shown(self.before)}"

    def patch(self, prefix: Sequence[str] = ()) -> list[dict[str, Any]]:
        """As a JSON patch."""
        path = (*prefix, *self.path)
        if self.after is None:
            return [{"op": "remove", "path": _pointer(path)}]
        if self.key:
            return [
                {"op": "remove", "path": _pointer((*path, self.before))},
                {"op": "add", "path": _pointer((*path, self.after)), "value": self.key},
            ]
        return [{"op": "replace", "path": _pointer(path), "value": self.after}]


class PatchTarget(msgspec.Struct, frozen=True):
    """Where the spec of pods is written."""

    kind: str
    """In small letters, as kubectl takes it."""
    keys: tuple[str, ...]
    """namespace/name of each object."""
    is_template: bool = False
    is_open: bool = False
    """Whether the template can be changed while the object exists."""
    pods: tuple[str, ...] = ()
    """Of a template: the waiting pods that exist."""
    keeps_pods: bool = False
    """Whether the controller does not replace its pods when the template changes: a ReplicaSet never does, a
    StatefulSet not where a pod waits that has to start before the next, and a DaemonSet not with OnDelete."""

    @property
    def outdated(self) -> tuple[str, ...]:
        """Pods that have to be deleted after a change of the template, to be created again from it."""
        return self.pods if self.is_open and self.keeps_pods else ()

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("spec", "template") if self.is_template else ()

    def called(self) -> str:
        what = self.kind if len(self.keys) == 1 else f"{self.kind}s"
        return f"{what} {few(self.keys, 4)}"


def edit_words(edits: Sequence[FieldEdit], target: PatchTarget) -> str:
    changes = "; ".join(edit.words(".".join(target.prefix)) for edit in edits)
    words = f"In {target.called()}, {changes}.{deletion_words(target)}"
    if target.is_template and not target.is_open:
        words += f" The template of an existing {target.kind} cannot be changed: delete it and create it again."
    return words


def deletion_words(target: PatchTarget) -> str:
    """Begins with a blank; empty where the controller replaces its pods itself."""
    if not target.outdated:
        return ""
    pods = f"pod{'s' * (len(target.outdated) > 1)} {few(target.outdated, 4)}"
    return f" After that, delete {pods}, which {target.called()} creates again from its template."


def edit_commands(edits: Sequence[FieldEdit], target: PatchTarget) -> tuple[str, ...]:
    """Empty where no command can make the change."""
    body = _steps([step for edit in edits for step in edit.patch(target.prefix)])
    if target.is_template:
        patch = f"kubectl patch {_named(target.kind, target.keys[0])} --type=json -p={body}"
        return (patch, *delete_commands(target.outdated)) if target.is_open else ()
    if len(target.keys) > _MOST_PODS:
        return ()
    return tuple(
        f"kubectl get {_named('pod', key)} -o yaml | kubectl patch -f - --local --type=json -p={body} -o yaml | "
        "kubectl replace --force -f -"
        for key in target.keys
    )


def toleration_commands(taints: Sequence[Taint], target: PatchTarget, has_list: Mapping[str, bool]) -> tuple[str, ...]:
    """Tolerations can be added to pods that exist. `has_list`: whether a pod, or the template, has some already."""
    values = [_toleration(taint) for taint in taints]
    if target.is_template and target.is_open:
        body = _added(("spec", "template", "spec", "tolerations"), values, has_list=has_list.get(target.keys[0], False))
        patch = f"kubectl patch {_named(target.kind, target.keys[0])} --type=json -p={body}"
        return (patch, *delete_commands(target.outdated))
    pods = target.pods if target.is_template else target.keys
    if len(pods) > _MOST_PODS:
        return ()
    return tuple(
        f"kubectl patch {_named('pod', pod)} --type=json -p="
        f"{_added(('spec', 'tolerations'), values, has_list=has_list.get(pod, False))}"
        for pod in pods
    )


def quota_commands(steps: Sequence[tuple[FieldChange, tuple[str, ...]]]) -> tuple[str, ...]:
    """One for each object whose quota or limit changes; with each change the path of its field."""
    by_object: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for change, path in steps:
        value = shown(change.resource, change.after) if isinstance(change.after, int) else change.after
        step = {"op": "add", "path": _pointer(path), "value": value}
        by_object.setdefault((change.object.lower(), change.name), []).append(step)
    return tuple(
        f"kubectl patch {kind} {quoted(name)} --type=json -p={_steps(body)}" for (kind, name), body in by_object.items()
    )


def label_commands(kind: str, keys: Sequence[str], label: str, value: str) -> tuple[str, ...]:
    """Change one label of each object; empty for too many of them."""
    commands = (f"kubectl label {_named(kind, key)} {quoted(f'{label}={value}')} --overwrite" for key in keys)
    return () if len(keys) > _MOST_PODS else tuple(commands)


def annotation_commands(kind: str, keys: Sequence[str], annotation: str, value: str) -> tuple[str, ...]:
    """Set one annotation of each object; empty for too many of them."""
    commands = (f"kubectl annotate {_named(kind, key)} {quoted(f'{annotation}={value}')} --overwrite" for key in keys)
    return () if len(keys) > _MOST_PODS else tuple(commands)


def flavor_command(flavor: str, topology: str) -> str:
    return field_command("resourceflavor", flavor, {"topologyName": topology})


def field_command(kind: str, key: str, spec: Mapping[str, Any]) -> str:
    """Sets fields of the spec of an object."""
    return f"kubectl patch {_named(kind, key)} --type=merge -p={_spec(spec)}"


def replacement_command(kind: str, key: str, spec: Mapping[str, str]) -> str:
    """Replaces an object by one with other fields in its spec, for fields that cannot be changed."""
    patch = f"kubectl patch -f - --local --type=merge -p={_spec(spec)} -o yaml"
    return f"kubectl get {_named(kind, key)} -o yaml | {patch} | kubectl replace --force -f -"


def copy_command(kind: str, key: str, name: str, path: Sequence[str], value: Any) -> str:
    """Creates a copy of an object with another name and another value at the path."""
    steps = [
        {"op": "replace", "path": "/metadata/name", "value": name},
        {"op": "remove", "path": "/metadata/resourceVersion"},
        {"op": "replace", "path": _pointer(path), "value": value},
    ]
    patch = f"kubectl patch -f - --local --type=json -p={_steps(steps)} -o yaml"
    return f"kubectl get {_named(kind, key)} -o yaml | {patch} | kubectl create -f -"


def names_command(kind: str, key: str, names: Iterable[tuple[Sequence[str], str]]) -> str:
    """Writes another name at each of these paths of an object."""
    steps = [{"op": "replace", "path": _pointer(path), "value": name} for path, name in names]
    return f"kubectl patch {_named(kind, key)} --type=json -p={_steps(steps)}"


def number_command(kind: str, key: str, path: Sequence[str], value: int) -> str:
    """Sets a number of an object."""
    steps = [{"op": "replace", "path": _pointer(path), "value": value}]
    return f"kubectl patch {_named(kind, key)} --type=json -p={_steps(steps)}"


def removal_command(kind: str, key: str, path: Sequence[str]) -> str:
    """Removes a field of an object."""
    steps = [{"op": "remove", "path": _pointer(path)}]
    return f"kubectl patch {_named(kind, key)} --type=json -p={_steps(steps)}"


def priority_class_command(name: str, value: int) -> str:
    return f"kubectl create priorityclass {quoted(name)} --value={value}"


def covering_command(queue: str, flavors: int, quotas: Mapping[str, str]) -> str:
    """Adds resources with these quotas to the first resource group of a ClusterQueue, which has so many flavors."""
    group = ("spec", "resourceGroups", "0")
    steps: list[dict[str, Any]] = []
    for name, amount in quotas.items():
        steps.append({"op": "add", "path": _pointer((*group, "coveredResources", "-")), "value": name})
        for at in range(flavors):
            path = _pointer((*group, "flavors", str(at), "resources", "-"))
            steps.append({"op": "add", "path": path, "value": {"name": name, "nominalQuota": amount}})
    return f"kubectl patch clusterqueue {quoted(queue)} --type=json -p={_steps(steps)}"


def _spec(fields: Mapping[str, Any]) -> str:
    """As a word of the shell, like the next."""
    return quoted(json.dumps({"spec": fields}, separators=(",", ":")))


def _steps(patch: Sequence[Mapping[str, Any]]) -> str:
    return quoted(json.dumps(patch, separators=(",", ":")))


def delete_commands(pods: Sequence[str]) -> tuple[str, ...]:
    """One for each namespace."""
    by_namespace: dict[str, list[str]] = {}
    for pod in pods:
        namespace, _, name = pod.partition("/")
        by_namespace.setdefault(namespace, []).append(name)
    return tuple(
        f"kubectl delete pod {joined(names)} -n {quoted(namespace)}"
        for namespace, names in sorted(by_namespace.items())
    )


def _named(kind: str, key: str) -> str:
    namespace, _, name = key.rpartition("/")
    return f"{kind} {quoted(name)} -n {quoted(namespace)}" if namespace else f"{kind} {quoted(name)}"


def _toleration(taint: Taint) -> dict[str, str]:
    found = {"key": taint.key, "operator": "Equal" if taint.value else "Exists"}
    return {**found, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _added(path: Sequence[str], values: Sequence[dict[str, str]], *, has_list: bool) -> str:
    steps: list[dict[str, Any]] = [{"op": "add", "path": _pointer((*path, "-")), "value": each} for each in values]
    if not has_list:
        steps = [{"op": "add", "path": _pointer(path), "value": list(values)}]
    return _steps(steps)


def _pointer(path: Sequence[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def _dotted(path: Sequence[str], prefix: str) -> str:
    text = prefix
    for part in path:
        if part.isdecimal():
            text += f"[{part}]"
        elif "/" in part or "." in part:
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""Finds the objects that a pod names and that its kubelet does not find.

Shoal may not list Secrets, so that whether one exists is known from the kubelet only: from the state of the container,
and from Events about volumes and pulls. The words are the kubelet's, which also tells of missing keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster, event_words, message_of, named, text_of
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, shell_command
from shoal.policy.kinds import SECRET
from shoal.policy.object_set import key_of
from shoal.policy.pod_references import pod_references
from shoal.policy.pod_templates import pod_templates

_MOST_TEXT: Final = 4096
_NAME: Final = r"[a-z0-9][a-z0-9.-]{0,252}"
_MISSING: Final = re.compile(rf'(secret|configmap|persistentvolumeclaim)s? "({_NAME})" not found')
_NO_KEY: Final = re.compile(rf"couldn't find key ([-._a-zA-Z0-9]{{1,253}}) in (Secret|ConfigMap) {_NAME}/({_NAME})")
_PULL_SECRETS: Final = "FailedToRetrieveImagePullSecret"
_MOUNT: Final = "FailedMount"
_KINDS: Final = {"secret": "Secret", "configmap": "ConfigMap", "persistentvolumeclaim": "PersistentVolumeClaim"}


_AFTER_MOUNT = frozenset({"Pulling", "Pulled", "Created", "Started"})


def missing_in(message: str, where: str, namespace: str) -> FoundCause | None:
    """The object or key that a message of the kubelet says is missing."""
    text = message[:_MOST_TEXT]
    if found := _MISSING.search(text):
        kind, name = _KINDS[found[1]], found[2]
        what = f'{kind} "{name}" does not exist in namespace {namespace}, so the container is not started'
        fix = "create it, or correct the name; the kubelet tries again by itself"
    elif found := _NO_KEY.search(text):
        kind, name = found[2], found[3]
        what = f'{kind} "{name}" has no key {found[1]}, so the container is not started'
        fix = "add the key, or correct its name; the kubelet tries again by itself"
    else:
        return None
    # Names only: what is in a Secret must not be shown.
    command = shell_command("kubectl get {} -n {}", f"{kind.lower()}s", namespace)
    return FoundCause(f"Missing{kind}", where, what, fix, (text_of(message),), (command,))


def missing_in_events(facts: DiagnosedCluster, pod: Obj) -> Iterator[FoundCause]:
    """For volumes; the state of the container says ContainerCreating only. Once an image is pulled, all volumes of the
    pod are there."""
    subject, namespace = named(pod), key_of(pod)[0]
    known: set[str] = set()
    for event in reversed(facts.events(pod)):
        if event.get("reason") in _AFTER_MOUNT:
            return
        if event.get("reason") == _MOUNT:
            cause = missing_in(message_of(event), subject, namespace)
            if cause is not None and cause.what not in known:
                known.add(cause.what)
                yield cause


def pull_secrets_words(facts: DiagnosedCluster, pod: Obj) -> tuple[str, ...]:
    """What the kubelet says about Secrets for the registry: it goes on without those that are missing."""
    found = [event for event in facts.events(pod) if event.get("reason") == _PULL_SECRETS]
    return tuple(event_words(event) for event in found[-1:])


def unchecked_secrets(facts: DiagnosedCluster, pod: Obj) -> Iterator[NotRun]:
    """Of a pod whose containers are being created, and of which no Event is known."""
    if facts.events(pod):
        return
    namespace = key_of(pod)[0]
    references = (each for template in pod_templates(pod) for each in pod_references(template))
    for name in dict.fromkeys(each.name for each in references if each.kind == SECRET):
        command = shell_command("kubectl get secret {} -n {}", name, namespace)
        why = f"Shoal may not read Secrets, and no Event of the pod is known; run {command}"
        yield NotRun(named(pod), f"whether Secret {text_of(name)} exists", why)

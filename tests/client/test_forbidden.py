"""Who may not do a thing is told which rule lacks, and how to grant it."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from pathlib import Path

import pytest
import yaml

from build.small_clusters import START_S
from shoal.client.clock import LoopClock
from shoal.client.kind import DEPLOYMENTS, NODES, PODS
from shoal.client.rbac_advice import rbac_advice
from shoal.client.refusals import ForbiddenError, refusal_of
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage

WORDS = 'User "system:serviceaccount:shoal:shoal" cannot {}'


def refused(words: str) -> ForbiddenError:
    found = refusal_of({"code": 403, "reason": "Forbidden", "message": words})
    assert isinstance(found, ForbiddenError)
    return found


CASES: list[tuple[str, str, str, str]] = [
    (
        "in a namespace",
        'create resource "pods/binding" in API group "" in the namespace "team-a"',
        '- apiGroups: [""]\n  resources: ["pods/binding"]\n  verbs: ["create"]',
        "kubectl create role shoal-create-pods-binding --verb=create --resource=pods/binding -n team-a",
    ),
    (
        "in the cluster",
        'list resource "workloads" in API group "kueue.x-k8s.io" at the cluster scope',
        '- apiGroups: ["kueue.x-k8s.io"]\n  resources: ["workloads"]\n  verbs: ["list"]',
        "kubectl create clusterrole shoal-list-workloads --verb=list --resource=workloads.kueue.x-k8s.io",
    ),
    (
        "a path",
        'get path "/metrics"',
        '- nonResourceURLs: ["/metrics"]\n  verbs: ["get"]',
        "kubectl create clusterrole shoal-get-metrics --verb=get --non-resource-url=/metrics",
    ),
]


@pytest.mark.parametrize(("what", "rule", "command"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_the_rule_that_lacks_is_said_with_the_commands_that_grant_it(what: str, rule: str, command: str) -> None:
    first, second = rbac_advice(refused(f"x is forbidden: {WORDS.format(what)}")).split("to grant it:\n")
    assert yaml.safe_load(first.removeprefix("the missing rule:\n")) == yaml.safe_load(rule)
    role, binding = (line.strip() for line in second.split("\n"))
    assert role == command
    assert "--serviceaccount=shoal:shoal" in binding
    assert ("-n team-a" in binding) == ("team-a" in what)


def test_a_person_is_bound_as_a_user() -> None:
    error = refused('nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope')
    assert (error.user, error.verb, error.resource, error.group, error.namespace) == ("jane", "list", "nodes", "", "")
    assert "--user=jane" in rbac_advice(error)


@pytest.mark.parametrize("words", ["exceeded quota: a", 'violates PodSecurity "restricted"', json.dumps({})])
def test_what_was_not_refused_by_rbac_is_not_granted_by_a_rule(words: str) -> None:
    error = refused(f'pods "p" is forbidden: {words}')
    assert (error.verb, error.resource, rbac_advice(error)) == ("", "", "")


async def test_the_words_of_the_server_are_understood(tmp_path: Path) -> None:
    settings = Settings(None, tmp_path / "kubeconfig", authorization="rbac")
    plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), LoopClock(START_S))
    api = InsideApi(plane, Actor("jane", ("system:authenticated",)), "test")
    asked: list[tuple[Awaitable[object], tuple[str, ...]]] = [
        (api.list(NODES), ("jane", "list", "nodes", "", "")),
        (api.post(PODS, "default", "p", "binding", {"target": {}}), ("jane", "create", "pods/binding", "", "default")),
        (api.get(DEPLOYMENTS, "default", "d"), ("jane", "get", "deployments", "apps", "default")),
    ]
    for call, expected in asked:
        with pytest.raises(ForbiddenError) as refused:
            await call
        error = refused.value
        assert (error.user, error.verb, error.resource, error.group, error.namespace) == expected
    await plane.close()

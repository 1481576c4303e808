"""What is served, from discovery documents as the test wants them."""

from __future__ import annotations

from typing import Any

import pytest

from build.told_server import Server
from shoal.client.http.api import KubeApi
from shoal.client.port import SilentGroupError
from shoal.client.refusals import BadRequestError
from shoal.client.served import answering


def group(name: str, *versions: tuple[str, list[str]], freshness: str = "Current") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "versions": [
            {
                "version": version,
                "freshness": freshness,
                "resources": [
                    {"resource": one, "responseKind": {"kind": one.title()}, "scope": "Cluster", "verbs": ["get"]}
                    for one in resources
                ],
            }
            for version, resources in versions
        ],
    }


def groups(*found: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(found)}


async def test_a_resource_is_taken_from_the_first_version_that_has_it(server: Server, api: KubeApi) -> None:
    server.script = [groups(group("", ("v1", ["pods"]))), groups(group("g", ("v2", ["a"]), ("v1", ["a", "b"])))]
    served = await api.served()
    assert [(one.kind.group, one.kind.version, one.kind.plural) for one in served] == [
        ("", "v1", "pods"),
        ("g", "v2", "a"),
        ("g", "v1", "b"),
    ]
    assert (served[0].kind.name, served[0].kind.is_namespaced, served[0].verbs) == ("Pods", False, frozenset({"get"}))


async def test_a_group_whose_server_is_silent_keeps_what_it_had_and_an_unknown_one_stops_it_all(
    server: Server, api: KubeApi
) -> None:
    core = groups(group("", ("v1", ["pods"])))
    silent = groups(group("g", ("v1", []), freshness="Stale"))
    server.script = [core, silent, core, groups(group("g", ("v1", ["a"]))), core, silent]
    with pytest.raises(SilentGroupError, match="the server of g/v1 does not answer"):
        await api.served()
    known = await api.served()
    assert await api.served() == known
    assert [one.kind.plural for one in known] == ["pods", "a"]


async def test_whoever_only_looks_for_kinds_goes_by_those_who_answer(server: Server, api: KubeApi) -> None:
    broken = group("metrics.k8s.io", ("v1beta1", []), freshness="Stale")
    server.script = [groups(group("", ("v1", ["pods"]))), groups(broken, group("g", ("v1", ["a"])))]
    assert [one.kind.plural for one in await answering(api)] == ["pods", "a"]


async def test_the_metrics_of_custom_metrics_are_no_resources_and_hide_no_others(server: Server, api: KubeApi) -> None:
    metrics = group("custom.metrics.k8s.io", ("v1beta2", ["pods"]))
    metrics["versions"][0]["resources"][0] |= {"verbs": None, "responseKind": None}
    server.script = [groups(), groups(metrics, group("g", ("v1", ["a"])))]
    served = {one.kind.plural: one.verbs for one in await api.served()}
    assert served == {"pods": frozenset(), "a": frozenset({"get"})}


async def test_a_server_without_these_documents_is_too_old(server: Server, api: KubeApi) -> None:
    server.script = [{"kind": "APIVersions", "versions": ["v1"]}]
    with pytest.raises(BadRequestError, match="or later is needed"):
        await api.served()

"""Requests are classified by the FlowSchemas that every cluster has, as Kubernetes classifies them."""

from __future__ import annotations

import pytest

from shoal.embedded.apiserver.bootstrap.flow_control import flow_control
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.flowcontrol.schemas import Schema, read_schemas
from shoal.embedded.apiserver.request_info import RequestInfo

OBJECTS = [obj for _, obj in flow_control("2026-11-21T10:00:00Z")]
LEVELS = [obj["metadata"]["name"] for obj in OBJECTS if obj["kind"] == "PriorityLevelConfiguration"]
SCHEMAS = read_schemas([obj for obj in OBJECTS if obj["kind"] == "FlowSchema"], LEVELS)
KNOWN = "system:authenticated"


def user(name: str, *groups: str) -> Actor:
    return Actor(name, (*groups, KNOWN))


def account(namespace: str, name: str) -> Actor:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return user(f"system:serviceaccount:{namespace}:{name}", *groups)


def on(verb: str, resource: str, group: str = "", namespace: str = "", below: str = "") -> RequestInfo:
    return RequestInfo(verb, group, "v1", resource, below, namespace)


def schema_of(actor: Actor, asked: RequestInfo) -> Schema:
    return next(schema for schema in SCHEMAS if schema.matches(actor, asked))


LEASES = on("update", "leases", "coordination.k8s.io", "kube-system")


@pytest.mark.parametrize(
    ("actor", "asked", "schema"),
    [
        (user("admin", "system:masters"), on("list", "pods"), "exempt"),
        (Actor("system:anonymous", ("system:unauthenticated",)), RequestInfo.of_path("get", "/readyz"), "probes"),
        (user("ada"), RequestInfo.of_path("get", "/readyz/etcd"), "probes"),
        (user("ada"), RequestInfo.of_path("get", "/readyzz"), "global-default"),
        (user("system:kube-scheduler"), LEASES, "system-leader-election"),
        (account("kube-system", "x"), LEASES, "system-leader-election"),
        (account("team", "x"), LEASES, "service-accounts"),
        (account("kube-system", "x"), on("get", "leases", "coordination.k8s.io", "team"), "workload-leader-election"),
        (account("kube-system", "endpoint-controller"), on("get", "endpoints", "", "team"), "endpoint-controller"),
        (user("system:node:a", "system:nodes"), on("update", "nodes", below="status"), "system-node-high"),
        (user("system:node:a", "system:nodes"), on("list", "pods"), "system-nodes"),
        (user("system:kube-controller-manager"), on("list", "pods"), "kube-controller-manager"),
        (user("system:kube-scheduler"), on("create", "pods", "", "team", "binding"), "kube-scheduler"),
        (account("kube-system", "x"), on("list", "pods"), "kube-system-service-accounts"),
        (account("team", "x"), on("list", "pods"), "service-accounts"),
        (user("ada"), on("list", "pods"), "global-default"),
        (Actor("ada"), on("list", "pods"), None),
    ],
)
def test_a_request_belongs_to_the_first_schema_that_matches(
    actor: Actor, asked: RequestInfo, schema: str | None
) -> None:
    found = [one.name for one in SCHEMAS if one.matches(actor, asked)]
    assert (found[0] if found else None) == schema


def test_flows_are_told_apart_by_user_or_by_namespace() -> None:
    asked = on("list", "pods", "", "team")
    assert schema_of(user("ada"), asked).flow_of(user("ada"), asked) == "ada"
    controllers = user("system:kube-controller-manager")
    assert schema_of(controllers, asked).flow_of(controllers, asked) == "team"


def test_a_schema_of_a_level_that_is_not_there_is_left_out() -> None:
    left = read_schemas([obj for obj in OBJECTS if obj["kind"] == "FlowSchema"], ["catch-all"])
    assert {schema.name for schema in left} == {"catch-all"}

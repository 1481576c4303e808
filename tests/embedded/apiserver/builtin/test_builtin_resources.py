"""The table of built-in resources: what a client of Kubernetes 1.36 counts on finding."""

from __future__ import annotations

import pytest

from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.resource import Home, Resource
from shoal.embedded.apiserver.schema.kubernetes import Shapes
from shoal.embedded.apiserver.strategy import GENERIC, Strategy


@pytest.fixture(scope="module")
def served() -> dict[str, Resource]:
    return _by_path(builtin_resources(Shapes("1.36"), {}))


def _by_path(found: tuple[Resource, ...]) -> dict[str, Resource]:
    return {f"{one.api_version}/{one.plural}": one for one in found}


def _doors(resource: Resource) -> dict[str, str]:
    return {subresource.name: " ".join(subresource.verbs) for subresource in resource.subresources}


def test_every_kind_that_is_on_by_default_is_served(served: dict[str, Resource]) -> None:
    assert len(served) == 68
    assert not [path for path in served if "alpha" in path or "beta" in path]


def test_no_path_is_served_twice() -> None:
    found = builtin_resources(Shapes("1.36"), {})
    assert len(_by_path(found)) == len(found)


def test_a_kind_that_a_version_does_not_know_is_left_out() -> None:
    older = _by_path(builtin_resources(Shapes("1.34"), {}))
    assert "admissionregistration.k8s.io/v1/mutatingadmissionpolicies" not in older
    assert "admissionregistration.k8s.io/v1/validatingadmissionpolicies" in older


def test_an_alpha_version_is_served_only_when_it_is_named() -> None:
    asked = _by_path(builtin_resources(Shapes("1.36"), {}, alpha=frozenset({"scheduling.k8s.io/v1alpha2"})))
    assert _doors(asked["scheduling.k8s.io/v1alpha2/podgroups"]) == {"status": "get patch update"}
    assert "scheduling.k8s.io/v1alpha1/workloads" not in asked


def test_both_faces_of_events_have_one_home(served: dict[str, Resource]) -> None:
    assert served["events.k8s.io/v1/events"].home == served["v1/events"].home == Home("", "events")


def test_both_versions_of_autoscalers_are_kept_as_the_second(served: dict[str, Resource]) -> None:
    for version in ("v1", "v2"):
        assert served[f"autoscaling/{version}/horizontalpodautoscalers"].storage_version == "v2"


def test_reviews_can_only_be_created(served: dict[str, Resource]) -> None:
    reviews = [one for one in served.values() if one.kind.endswith("Review")]
    assert len(reviews) == 6
    assert {one.verbs for one in reviews} == {("create",)}


def test_a_pod_has_all_its_doors(served: dict[str, Resource]) -> None:
    assert _doors(served["v1/pods"]) == {
        "attach": "create get",
        "binding": "create",
        "ephemeralcontainers": "get patch update",
        "eviction": "create",
        "exec": "create get",
        "log": "get",
        "portforward": "create get",
        "proxy": "create delete get patch update",
        "resize": "get patch update",
        "status": "get patch update",
    }


@pytest.mark.parametrize(
    ("path", "subresource", "kind"),
    [
        ("v1/pods", "eviction", ("policy", "v1", "Eviction")),
        ("v1/serviceaccounts", "token", ("authentication.k8s.io", "v1", "TokenRequest")),
        ("v1/replicationcontrollers", "scale", ("autoscaling", "v1", "Scale")),
        ("apps/v1/deployments", "scale", ("autoscaling", "v1", "Scale")),
        ("v1/namespaces", "finalize", ("", "", "")),
        ("certificates.k8s.io/v1/certificatesigningrequests", "approval", ("", "", "")),
    ],
)
def test_a_door_speaks_its_own_kind(
    served: dict[str, Resource], path: str, subresource: str, kind: tuple[str, str, str]
) -> None:
    found = served[path].subresource(subresource)
    assert found is not None
    assert (found.group, found.version, found.kind) == kind


def test_get_all_shows_workloads_and_services(served: dict[str, Resource]) -> None:
    assert {one.plural for one in served.values() if "all" in one.categories} == {
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    }


def test_no_two_kinds_share_a_short_name_but_the_two_faces_of_events(served: dict[str, Resource]) -> None:
    owners: dict[str, set[Home]] = {}
    for one in served.values():
        for short in one.short_names:
            owners.setdefault(short, set()).add(one.home)
    assert all(len(homes) == 1 for homes in owners.values())


def test_namespaces_are_deleted_one_by_one(served: dict[str, Resource]) -> None:
    assert "deletecollection" not in served["v1/namespaces"].verbs
    assert "deletecollection" in served["v1/services"].verbs


def test_a_strategy_is_found_by_group_and_plural() -> None:
    special = Strategy()
    found = _by_path(builtin_resources(Shapes("1.36"), {("apps", "deployments"): special}))
    assert found["apps/v1/deployments"].strategy is special
    assert found["apps/v1/replicasets"].strategy is GENERIC

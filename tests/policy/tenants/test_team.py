"""A team is read from a short file, and each wrong field is named."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.tenants.team import Team, read_team
from shoal.units.errors import UserError


def team(name: str = "team-a", **spec: Any) -> Team:
    return read_team(raw(name, **spec))


def raw(name: str = "team-a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "shoal.dev/v1alpha1", "kind": "Team", "metadata": {"name": name}, "spec": spec}


def test_a_name_is_enough() -> None:
    found = team()
    assert (found.name, found.namespace) == ("team-a", "team-a")
    assert found.spec.pod_security == "restricted"
    assert found.spec.quota.devices() == {"nvidia.com/gpu": 0}


def test_the_namespace_may_have_another_name() -> None:
    assert team(namespace="ml-training").namespace == "ml-training"


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("Team_A", {}, "metadata.name"),
        ("kube-system", {}, "the namespace kube-system belongs to the cluster"),
        ("team-a", {"namespace": "default"}, "the namespace default belongs to the cluster"),
        ("team-a", {"quota": {"gpu": 1}}, "gpu"),
        ("team-a", {"quota": {"gpus": -1}}, "spec.quota.gpus"),
        ("team-a", {"quota": {"gpus": "many"}}, "spec.quota.gpus"),
        ("team-a", {"quota": {"memory": "512 GB"}}, "spec.quota.memory"),
        ("team-a", {"quota": {"resources": {"nvidia.com/gpu": 1}}}, "write quota.gpus"),
        ("team-a", {"quota": {"resources": {"limits.nvidia.com/gpu": 1}}}, "limits of devices never count"),
        ("team-a", {"quota": {"resources": {"requests.nvidia.com/mig-1g.5gb": 1}}}, "write nvidia.com/mig-1g.5gb"),
        ("team-a", {"quota": {"resources": {"gpu": 1}}}, "is no name of a device"),
        ("team-a", {"priorities": ["producton"]}, "did you mean production?"),
        ("team-a", {"members": {"admins": ["user:"]}}, "names no member"),
        ("team-a", {"members": {"developers": ["serviceaccount:x"]}}, "serviceaccount:NAMESPACE/NAME"),
        ("team-a", {"network": {"egress": [{"cidr": "10.0.0.1"}]}}, "as in 10.1.0.0/16"),
        ("team-a", {"network": {"egress": [{"cidr": "10.0.0.0/8", "ports": [70000]}]}}, "ports"),
        ("team-a", {"podSecurity": "privileged"}, "podSecurity"),
        ("team-a", {"budgetPerMonth": -1}, "is no amount of money"),
        ("team-a", {"budgetPerMonth": "NaN"}, "is no amount of money"),
    ],
)
def test_a_wrong_field_is_named(name: str, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        team(name, **spec)
    assert message in str(caught.value)


def test_another_kind_is_refused_with_the_right_head() -> None:
    with pytest.raises(UserError, match=r"write apiVersion: shoal\.dev/v1alpha1 and kind: Team"):
        read_team({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})

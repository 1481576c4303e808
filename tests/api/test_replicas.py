"""Owners of most pods: Deployments, ReplicaSets, StatefulSets."""

import pytest

from shoal.api.decode import read
from shoal.api.workloads import Deployment, ReplicaSet, StatefulSet
from shoal.units.errors import UserError

TEMPLATE = "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}"
SELECTOR = "selector: {matchLabels: {app: web}}"


def text(kind: str, spec: str) -> str:
    return f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{{spec}}}\n"


KINDS = {"Deployment": Deployment, "ReplicaSet": ReplicaSet, "StatefulSet": StatefulSet}


@pytest.mark.parametrize(("kind", "wanted"), KINDS.items(), ids=KINDS)
def test_an_owner_is_read_for_its_pods(kind: str, wanted: type) -> None:
    (document,) = read(text(kind, f"replicas: 3, {SELECTOR}, {TEMPLATE}"))
    owner = document.value
    assert isinstance(owner, (Deployment, ReplicaSet, StatefulSet))
    assert type(owner) is wanted
    assert owner.spec.replicas == 3
    assert owner.spec.selector.matches(owner.spec.template.metadata.labels)
    assert owner.metadata.key == "default/web"


def test_who_does_not_say_wants_one_pod() -> None:
    (document,) = read(text("Deployment", f"{SELECTOR}, {TEMPLATE}"))
    assert isinstance(document.value, Deployment)
    assert document.value.spec.replicas == 1


BAD = {
    "fewer than no pods": (f"replicas: -1, {SELECTOR}, {TEMPLATE}", "spec.replicas: must be at least 0, got -1"),
    "no selector": (TEMPLATE, "spec.selector: is required"),
    "an empty selector": (
        f"selector: {{}}, {TEMPLATE}",
        "spec.selector: an empty selector would take every pod for its own",
    ),
    "an impossible selector": (
        f"selector: {{matchLabels: {{'': a}}}}, {TEMPLATE}",
        'spec.selector.matchLabels: "" is not a label key: name part must be non-empty',
    ),
    "a selector of other pods": (
        f"selector: {{matchLabels: {{app: db}}}}, {TEMPLATE}",
        "spec.template.metadata.labels: selector does not match template labels",
    ),
    "pods that could not exist": (
        f"{SELECTOR}, template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: []}}}}",
        "spec.template.spec.containers: at least one container is required",
    ),
    "pods that end": (
        (
            f"{SELECTOR}, template: {{metadata: {{labels: {{app: web}}}}, "
            "spec: {restartPolicy: Never, containers: [{}]}}"
        ),
        'spec.template.spec.restartPolicy: unsupported value "Never"; supported values are Always',
    ),
}


@pytest.mark.parametrize(("spec", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_owner_is_refused_in_one_line(spec: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("Deployment", spec), "d.yaml")
    assert str(refusal.value) == f"d.yaml: document 1 (Deployment default/web): {complaint}"

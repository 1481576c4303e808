"""Pod Security labels: templates are warned of, and a change of labels says what it means for pods that are there."""

from __future__ import annotations

import pytest

from build.cluster_reader import Obj, container, creating, named, pod, updating, world
from build.hardening import PREFIX, hardened, labelled, ours, refused, validated
from shoal.embedded.apiserver.status import ApiError


@pytest.mark.parametrize(
    "made",
    [
        named("Deployment", "web", spec={"template": {"spec": {"containers": [container()], "hostNetwork": True}}}),
        named(
            "CronJob",
            "night",
            spec={"jobTemplate": {"spec": {"template": {"spec": {"containers": [container()], "hostNetwork": True}}}}},
        ),
    ],
    ids=["deployment", "cronjob"],
)
def test_a_template_is_warned_of_and_never_refused(made: Obj) -> None:
    assert validated(labelled(enforce="restricted", warn="baseline"), creating(made)) == [
        'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    ]
    assert validated(labelled(enforce="restricted"), creating(made)) == []


def namespace(**labels: str) -> Obj:
    made = named("Namespace", "ml")
    made["metadata"]["labels"] = {PREFIX + mode.replace("_", "-"): level for mode, level in labels.items()}
    return made


def test_a_stricter_label_names_the_pods_that_would_not_be_let_in_again() -> None:
    reader = world(pod("b"), pod("a"), pod("net", hostNetwork=True), pod("fine", hardened()))
    bare = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    assert validated(reader, updating(namespace(), namespace(enforce="restricted"))) == [
        'existing pods in namespace "ml" violate the new PodSecurity enforce level "restricted:latest"',
        f"a (and 1 other pod): {bare}",
        f"net: host namespaces, {bare}",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"enforce": "restricted"}, {"enforce": "baseline"}),
        ({"enforce": "restricted"}, {"enforce": "privileged"}),
        ({"enforce": "restricted"}, {"enforce": "restricted", "warn": "restricted"}),
        ({}, {"warn": "restricted"}),
    ],
)
def test_a_label_that_asks_no_more_says_nothing(old: dict[str, str], new: dict[str, str]) -> None:
    assert validated(world(pod("a")), updating(namespace(**old), namespace(**new))) == []


def test_labels_that_cannot_be_read_are_refused_when_written() -> None:
    with pytest.raises(ApiError) as caught:
        validated(world(), creating(namespace(enforce="strict", warn_version="1.2")))
    assert caught.value.code == 422
    assert caught.value.message == (
        'Namespace "ml" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: "
        'Invalid value: "1.2": must be "latest" or "v1.x"]'
    )


def test_bad_labels_that_stand_already_close_the_namespace_but_stop_no_other_change() -> None:
    bad = namespace(enforce="strict")
    assert validated(world(), updating(bad, {**bad, "spec": {}})) == []
    assert "restricted:latest" in refused(labelled(enforce="strict"), pod("x"))


def test_a_looser_label_of_the_same_version_looks_at_no_pod() -> None:
    reader = world(pod("net", hostNetwork=True))
    assert validated(reader, updating(namespace(enforce="restricted"), namespace(enforce="baseline"))) == []
    pinned = namespace(enforce="baseline", enforce_version="v1.20")
    assert len(validated(reader, updating(namespace(enforce="restricted"), pinned))) == 2


def test_a_bad_warn_label_that_stands_already_warns_of_nothing() -> None:
    assert validated(labelled(warn="strict"), creating(ours(pod("x", hostNetwork=True)))) == []

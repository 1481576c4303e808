"""Objects that contradict themselves or others: a few are named to everybody, and each to whoever asks about it."""

from __future__ import annotations

import pytest

from shoal.cli.invalid_objects import explanation_of, note_of, shortened

FORBIDDEN = "nodes.metrics.k8s.io are left out: nobody may list them"
NOTES = [note_of(f"Pod default/b{number}", f"metadata.annotations: {number} is no share") for number in range(5)]


def test_a_few_are_named_and_the_others_counted() -> None:
    assert shortened([*NOTES, FORBIDDEN]) == [
        *NOTES[:3],
        FORBIDDEN,
        "2 more objects are left out; shoal why KIND/NAME says what is wrong with one",
    ]
    assert shortened(NOTES[:3]) == NOTES[:3]


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("pod/b1", "default"), ("po/b1", ""), ("pod/default/b1", "x"), ("b1", "default"), ("default/b1", ""), ("b1", "x")],
)
def test_whoever_asks_about_one_is_told_what_is_wrong(name: str, namespace: str) -> None:
    explanation = explanation_of(NOTES, name, namespace)
    assert explanation is not None
    assert explanation.title == "pod default/b1"
    assert explanation.chapters == [
        ("wrong", ["metadata.annotations: 1 is no share"]),
        ("then", ["correct it with `kubectl edit pod b1 -n default`; Shoal tries it again when it changes"]),
    ]


@pytest.mark.parametrize("name", ["pod/b9", "job/b1", "other/b1", "nodes.metrics.k8s.io"])
def test_others_are_not_told_of(name: str) -> None:
    assert explanation_of([*NOTES, FORBIDDEN], name, "default") is None


def test_an_object_of_another_namespace_is_not_meant_where_one_was_named() -> None:
    assert explanation_of(NOTES, "pod/b1", "x", is_only=True) is None
    assert explanation_of(NOTES, "pod/default/b1", "x", is_only=True) is not None
    assert explanation_of(NOTES, "b1", "default", is_only=True) is not None

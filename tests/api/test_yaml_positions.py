"""Fields of manifests have lines and columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.yaml_positions import Position, Positions

TEXT = """\
# head
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: a
    resources:
      limits: {cpu: 1, nvidia.com/gpu: 2}
  - name: b
---
apiVersion: v1
kind: ConfigMap
data:
  config.yaml: |
    version: v1
    sharing:
      timeSlicing:
        replicas: 4
  plain: text
"""


@pytest.mark.parametrize(
    ("document", "path", "place"),
    [
        (1, "kind", (3, 1)),
        (1, "spec.containers[1].name", (9, 5)),
        (1, "spec.containers[0].resources.limits[nvidia.com/gpu]", (8, 24)),
        (1, "spec.containers[0].image", (6, 5)),
        (1, "spec.containers[7].image", (5, 3)),
        (1, "status", (2, 1)),
        (2, "data[config.yaml].sharing.timeSlicing.replicas", (18, 9)),
        (2, "data[config.yaml].sharing.mps", (16, 5)),
        (2, "data[config.yaml].flags", (14, 3)),
        (2, "data[plain].more", (19, 3)),
        (3, "kind", None),
    ],
)
def test_a_field_has_its_place_or_that_of_the_deepest_part_that_exists(
    document: int, path: str, place: tuple[int, int] | None
) -> None:
    assert Positions(TEXT).of(document, path) == (None if place is None else Position(*place))


def test_json_has_places_too() -> None:
    assert Positions('{"kind": "Pod",\n "spec": {"a": [1, {"b": 2}]}}').of(1, "spec.a[1].b") == Position(2, 21)


def test_text_that_is_no_yaml_has_no_places() -> None:
    assert Positions("a: [").of(1, "a") is None
    assert Positions("a: b\n---\n{").of(2, "a") is None


@given(st.text("ab:[]{}-| \n#&*!\"'.0", max_size=60), st.text("ab.[]0:x", max_size=20))
def test_no_text_and_no_path_is_an_error(text: str, path: str) -> None:
    place = Positions(text).of(1, path)
    assert place is None or (place.line > 0 and place.column > 0)

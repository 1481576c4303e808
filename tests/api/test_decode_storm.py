"""Whatever stands in a file, it is read, or refused in one printable line."""

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.decode import read
from shoal.units.errors import UserError

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
TERM = {"topologyKey": "zone", "labelSelector": SELECTOR, "matchLabelKeys": ["c"]}
AMOUNTS = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": "2026-01-31T12:00:00Z"},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": AMOUNTS}, "ports": [{"hostPort": 80}]}],
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "a", "operator": "Gt", "value": "5"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                    },
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}],
                },
            },
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
            ],
            "overhead": {"cpu": "1"},
            "priority": 1,
        },
    },
    {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n"},
                "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True},
                "status": {"capacity": AMOUNTS, "conditions": [{"type": "Ready", "status": "True"}]},
            }
        ],
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": "50%", "selector": SELECTOR},
    },
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


PLACES = [(index, path) for index, one in enumerate(OBJECTS) for path in places(one)]
odd: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        "",
        "x",
        "-",
        "1.5.2Gi",
        "500m",
        "a b",
        "é\n",
        [],
        [None],
        [[]],
        {},
        {"": 1},
        {"a": {}},
    ]
)


@pytest.mark.parametrize("comment", ["", "# yaml\n"], ids=["json", "yaml"])
@given(st.sampled_from(PLACES), odd)
def test_one_field_gone_wrong_never_breaks_the_reader(
    comment: str, place: tuple[int, tuple[Any, ...]], new: Any
) -> None:
    index, path = place
    text = comment + json.dumps(replaced(OBJECTS[index], path, new))
    try:
        read(text, "f")
    except UserError as refusal:
        line = str(refusal)
        assert line.isprintable()
        assert line.startswith("f: ")


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_noise_is_read_as_nothing_or_refused(noise: bytes | str) -> None:
    with contextlib.suppress(UserError):
        assert read(noise) == []

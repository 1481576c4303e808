"""Conditions that no node can meet, and which label was meant."""

from __future__ import annotations

import difflib

import pytest

from build.nodes import node
from build.pods import AskBuilder, ask, term, where
from build.scenario import Scenario
from shoal.engine.unmatched import Unmatched, unmatched

FLEET = (
    node("a").gpus(8).label("model", "NVIDIA-A100-SXM4-80GB").label("zone", "east-1").label("memory", "81559"),
    node("b").gpus(8).label("model", "NVIDIA-H100-80GB-HBM3").label("zone", "east-2").label("memory", "24576"),
)

MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3")

CONDITIONS: dict[str, tuple[AskBuilder, tuple[Unmatched, ...]]] = {
    "a value with its prefix forgotten": (
        ask().select("model", "In", "A100-SXM4-80GB"),
        (Unmatched("model", ("A100-SXM4-80GB",), True, ("NVIDIA-A100-SXM4-80GB",), MODELS),),
    ),
    "a key misspelled": (
        ask().select("zoen", "In", "east-1"),
        (Unmatched("zoen", ("east-1",), False, ("zone",)),),
    ),
    "too short to be like anything": (ask().select("o", "Exists"), (Unmatched("o", (), False),)),
    "nothing like it": (ask().select("disk", "Exists"), (Unmatched("disk", (), False),)),
    "one of the values is there": (ask().select("zone", "In", "east-1", "west"), ()),
    "two conditions that no node meets at once": (
        ask().select("model", "In", "NVIDIA-A100-SXM4-80GB").select("zone", "In", "east-2"),
        (),
    ),
    "a condition that asks for absence": (ask().select("disk", "DoesNotExist").select("zone", "NotIn", "x"), ()),
    "one alternative can be met": (
        ask().either(term(where("zone", "In", "mars")), term(where("zone", "In", "east-1"))),
        (),
    ),
    "no alternative can be met": (
        ask().either(term(where("zone", "In", "mars")), term(where("disk", "Exists"))),
        (Unmatched("zone", ("mars",), True, present=("east-1", "east-2")), Unmatched("disk", (), False)),
    ),
    "a number that no node has": (
        ask().select("memory", "Gt", "100000"),
        (Unmatched("memory", ("100000",), True, present=("24576", "81559"), operator="Gt"),),
    ),
    "a number below all": (
        ask().select("memory", "Lt", "1000"),
        (Unmatched("memory", ("1000",), True, present=("24576", "81559"), operator="Lt"),),
    ),
    "a number that some node has": (ask().select("memory", "Gt", "30000"), ()),
}


@pytest.mark.parametrize(("wanted", "conditions"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_without_a_node(wanted: AskBuilder, conditions: tuple[Unmatched, ...]) -> None:
    cluster = Scenario(*FLEET).cluster
    assert unmatched(cluster, wanted.made().nodes) == conditions


def test_a_misspelled_key_means_a_key_with_a_like_name_and_not_one_with_the_same_prefix() -> None:
    labels = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname")
    built = node("a").gpus(8)
    for label in labels:
        built = built.label(label, "x")
    for asked, meant in (("topology.kubernetes.io/hostnam", labels[2]), ("topology.kubernetes.io/zonee", labels[0])):
        (condition,) = unmatched(Scenario(built).cluster, ask().select(asked, "Exists").made().nodes)
        assert condition.near == (meant,)


def test_labels_of_nodes_that_are_gone_are_not_offered() -> None:
    world = Scenario(*FLEET).lose("a")
    (condition,) = unmatched(world.cluster, ask().select("zone", "In", "east-1").made().nodes)
    assert condition.near == ("east-2",)


def test_of_thousands_of_conditions_some_are_told_and_what_they_are_like_is_looked_for_of_those_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Scenario(*FLEET).cluster
    wanted = ask().select("model", "In", *(f"none-{at}" for at in range(5000)))
    for at in range(5000):
        wanted = wanted.select(f"zone-{at % 2500}", "Exists")
    looked: list[str] = []

    def note(text: str, _known: object, n: int) -> list[str]:
        looked.append(text)
        return [][:n]

    compared: set[str] = set()

    class Noting(difflib.SequenceMatcher[str]):
        def __init__(self, isjunk: None, a: str, b: str) -> None:
            compared.add(a)
            super().__init__(isjunk, a, b)

    monkeypatch.setattr(difflib, "get_close_matches", note)
    monkeypatch.setattr(difflib, "SequenceMatcher", Noting)
    found = unmatched(cluster, wanted.made().nodes)
    assert len(found) == len(set(found)) == 20
    assert len(found[0].values) == 20
    assert len(looked) + len(compared) == 39
    assert len(looked) == 20


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("A100-SXM4-40GB", ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB")),
        ("A100-SXM4-80GB", ("NVIDIA-A100-SXM4-80GB",)),
        ("NVIDIA-A100-PCIE-40GB", ("NVIDIA-A100-SXM4-80GB",)),
        ("V100-SXM2-16GB", ("Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB")),
        ("H100", ()),
        ("A10", ("NVIDIA-A10",)),
    ],
)
def test_of_gpus_no_other_model_is_offered(asked: str, near: tuple[str, ...]) -> None:
    label = "nvidia.com/gpu.product"
    nodes = [node(name).gpus(8).label(label, name) for name in ("NVIDIA-A100-SXM4-80GB", "Tesla-V100-SXM2-32GB")]
    (condition,) = unmatched(Scenario(*nodes).cluster, ask().select(label, "In", asked).made().nodes)
    assert condition.near == near


@pytest.mark.parametrize(
    ("key", "asked", "near"),
    [
        ("kubernetes.io/arch", "arm64", ()),
        ("kubernetes.io/arch", "amd46", ("amd64",)),
        ("kubernetes.io/os", "windows", ()),
        ("kubernetes.io/os", "linxu", ("linux",)),
    ],
)
def test_another_architecture_or_operating_system_that_exists_is_not_misspelled(
    key: str, asked: str, near: tuple[str, ...]
) -> None:
    built = node("a").label("kubernetes.io/arch", "amd64").label("kubernetes.io/os", "linux")
    (condition,) = unmatched(Scenario(built).cluster, ask().select(key, "In", asked).made().nodes)
    assert condition.near == near


@pytest.mark.parametrize(
    ("asked", "near"),
    [("NVIDIA-A10", ("NVIDIA-A10G",)), ("NVIDIA-L40", ("NVIDIA-L40S",)), ("NVIDIA-A1", ()), ("NVIDIA-A10M", ())],
)
def test_a_variant_of_a_gpu_with_one_letter_more_is_offered(asked: str, near: tuple[str, ...]) -> None:
    label = "nvidia.com/gpu.product"
    nodes = [node(name).gpus(8).label(label, name) for name in ("NVIDIA-A10G", "NVIDIA-L40S")]
    (condition,) = unmatched(Scenario(*nodes).cluster, ask().select(label, "In", asked).made().nodes)
    assert condition.near == near

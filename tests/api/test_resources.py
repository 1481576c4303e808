"""What a pod takes from a node: main containers, the start, sidecars, the pod as a whole, overhead."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.container import Container, Resources
from shoal.api.pod import PodSpec
from shoal.api.resources import SCORING_DEFAULTS, amounts, effective_requests
from shoal.api.wire import Quantities
from shoal.units.quantity import Quantity


def listed(amounts: Mapping[str, str]) -> Quantities:
    return {name.replace("__", "/").replace("_", "."): Quantity.parse(text) for name, text in amounts.items()}


def main(**requests: str) -> Container:
    return Container(resources=Resources(listed(requests)))


def limited(**limits: str) -> Container:
    return Container(resources=Resources(limits=listed(limits)))


def sidecar(**requests: str) -> Container:
    return Container(resources=Resources(listed(requests)), restart_policy="Always")


CASES = {
    "nothing asked is nothing taken": (PodSpec((main(),)), {}),
    "cpu in milli, memory in bytes": (
        PodSpec((main(cpu="1.5", memory="1Gi"),)),
        {"cpu": 1500, "memory": 2**30},
    ),
    "containers add up": (PodSpec((main(cpu="1"), main(cpu="500m"))), {"cpu": 1500}),
    "a limit without a request is a request": (PodSpec((limited(nvidia_com__gpu="2"),)), {"nvidia.com/gpu": 2}),
    "a request below the limit is what counts": (
        PodSpec((Container(resources=Resources(listed({"cpu": "1"}), listed({"cpu": "4"}))),)),
        {"cpu": 1000},
    ),
    "a request of zero is a request": (
        PodSpec((Container(resources=Resources(listed({"cpu": "0"}), listed({"cpu": "4"}))),)),
        {},
    ),
    "an init container runs alone, so the larger counts": (
        PodSpec((main(cpu="1", memory="1"),), (main(cpu="3"),)),
        {"cpu": 3000, "memory": 1},
    ),
    "init containers run one after the other": (
        PodSpec((main(cpu="1"),), (main(cpu="2"), main(cpu="3"))),
        {"cpu": 3000},
    ),
    "a sidecar runs beside the main containers": (PodSpec((main(cpu="1"),), (sidecar(cpu="2"),)), {"cpu": 3000}),
    "an init container runs beside sidecars started before": (
        PodSpec((main(cpu="1"),), (sidecar(cpu="2"), main(cpu="5"))),
        {"cpu": 7000},
    ),
    "but not beside sidecars started after": (
        PodSpec((main(cpu="1"),), (main(cpu="5"), sidecar(cpu="2"))),
        {"cpu": 5000},
    ),
    "sidecars alone may be the highest moment": (
        PodSpec((main(),), (sidecar(cpu="2"), sidecar(cpu="2"))),
        {"cpu": 4000},
    ),
    "each resource has its own highest moment": (
        PodSpec((main(cpu="1", memory="8"),), (main(cpu="4", memory="2"),)),
        {"cpu": 4000, "memory": 8},
    ),
    "the runtime's overhead comes on top of everything": (
        PodSpec((main(cpu="1"),), (main(cpu="3"),), overhead=listed({"cpu": "250m", "memory": "100"})),
        {"cpu": 3250, "memory": 100},
    ),
    "what the pod as a whole requests replaces the sum": (
        PodSpec((main(cpu="1", memory="5"),), resources=Resources(listed({"cpu": "4"}))),
        {"cpu": 4000, "memory": 5},
    ),
    "devices are never asked for by the pod as a whole": (
        PodSpec((limited(nvidia_com__gpu="2"),), resources=Resources(listed({"nvidia.com/gpu": "4"}))),
        {"nvidia.com/gpu": 2},
    ),
    "a limit of the whole is its request where containers ask for nothing": (
        PodSpec((main(),), resources=Resources(limits=listed({"cpu": "4"}))),
        {"cpu": 4000},
    ),
    "where containers do ask, their sum stays": (
        PodSpec((main(cpu="1"),), resources=Resources(limits=listed({"cpu": "4"}))),
        {"cpu": 1000},
    ),
    "crumbs are rounded up to a thousandth each, then to a unit": (
        PodSpec((main(memory="1n"), main(memory="999m"), main(cpu="1n"))),
        {"cpu": 1, "memory": 1},
    ),
    "huge pages and scratch space are counted like memory": (
        PodSpec((main(**{"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Ki", "cpu": "1"}),)),
        {"cpu": 1000, "ephemeral-storage": 1024, "hugepages-2Mi": 4 * 2**20},
    ),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES)
def test_effective_requests(spec: PodSpec, want: dict[str, int]) -> None:
    got = effective_requests(spec)
    assert got == want
    assert list(got) == sorted(got)


def test_scores_see_a_modest_container_where_nothing_is_asked() -> None:
    spec = PodSpec((main(), main(cpu="0", memory="1Gi")))
    assert effective_requests(spec, SCORING_DEFAULTS) == {"cpu": 100, "memory": 200 * 2**20 + 2**30}


def test_a_limit_of_the_whole_is_not_mistaken_for_a_modest_container() -> None:
    spec = PodSpec((main(),), resources=Resources(limits=listed({"cpu": "4"})))
    assert effective_requests(spec, {"cpu": 100}) == {"cpu": 4000}


def test_a_node_may_have_none_of_something() -> None:
    assert amounts(listed({"nvidia.com/gpu": "0", "cpu": "7910m"})) == {"cpu": 7910, "nvidia.com/gpu": 0}


containers = st.builds(
    lambda cpu, memory: main(cpu=f"{cpu}m", memory=str(memory)), st.integers(0, 50), st.integers(0, 50)
)
inits = st.one_of(
    containers,
    st.builds(lambda cpu: sidecar(cpu=f"{cpu}m"), st.integers(0, 50)),
)


@given(st.lists(containers, min_size=1, max_size=3), st.lists(inits, max_size=4))
def test_the_sum_is_the_highest_moment_of_a_played_start(mains: list[Container], starts: list[Container]) -> None:
    """Play the start step by step and remember the most cpu that ever runs at once."""

    def cpu(container: Container) -> int:
        return container.resources.requests.get("cpu", Quantity(0)).milli_value()

    beside, moments = 0, [0]
    for container in starts:
        moments.append(beside + cpu(container))
        if container.is_sidecar():
            beside += cpu(container)
    moments.append(beside + sum(map(cpu, mains)))
    assert effective_requests(PodSpec(tuple(mains), tuple(starts))).get("cpu", 0) == max(moments)

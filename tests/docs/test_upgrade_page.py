"""The page about driver upgrades lists the states and names of the code, and its examples are computed."""

from __future__ import annotations

import contextlib
import io
import re

from build.upgrading import UpgradingFleet, node, policy
from docs.pages import ROOT
from shoal.operator.upgrades import states
from shoal.operator.upgrades.lost_work import DrainedPod, NodeWork, by_lost_work
from shoal.operator.upgrades.policy import UpgradeOptions
from shoal.operator.upgrades.states import UpgradeState
from shoal.operator.upgrades.waiting import VALIDATION_TIMEOUT_S

TEXT = (ROOT / "docs" / "driver-upgrades.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    table = TEXT[TEXT.index(header) :].split("\n\n", 1)[0]
    return [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def test_the_page_lists_all_states_in_their_order() -> None:
    first, *named = [row[0] for row in rows("| state | meaning |")]
    assert first == "no label"
    assert named == [str(state) for state in UpgradeState if state]


def test_the_page_names_the_states_that_follow() -> None:
    for name, _, following in rows("| state | meaning |"):
        state = UpgradeState("" if name == "no label" else name)
        allowed = states.TRANSITIONS.get(state, frozenset()) | states.AFTER_ACTIONS.get(state, frozenset())
        named = {UpgradeState(word) for word in re.findall(r"`([a-z-]+-(?:required|done|failed))`", f"`{following}`")}
        skips = {UpgradeState.DONE} if UpgradeState.UNCORDON_REQUIRED in allowed else set()
        assert allowed - skips == named, name


def test_the_page_names_all_labels_and_annotations() -> None:
    named = set(re.findall(r"nvidia\.com/gpu-driver-upgrade[a-z.-]+", TEXT))
    own = {
        value
        for value in vars(states).values()
        if (isinstance(value, str) and value.startswith("nvidia.com/gpu-driver-upgrade-")) or value == states.SKIP_LABEL
    }
    own |= {states.WAITS_FOR_SAFE_LOAD, states.WAS_UNSCHEDULABLE}
    assert named == own
    assert f"after more than {VALIDATION_TIMEOUT_S} s" in TEXT


def test_the_example_prints_what_the_page_shows() -> None:
    code, shown = re.findall(r"```(?:python)?\n(.*?)```", TEXT, flags=re.DOTALL)[:2]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "driver-upgrades.md", "exec"), {})  # noqa: S102 - our own page
    assert printed.getvalue() == shown


def test_the_states_after_each_pass_are_those_of_the_page() -> None:
    names = ("gpu-1", "gpu-2", "gpu-3")
    fleet = UpgradingFleet([node(name) for name in names], policy(maxParallelUpgrades=1), UpgradeOptions())
    for number, *shown in rows("| pass | gpu-1"):
        fleet.run_pass()
        assert [fleet.states()[name] for name in names] == [cell.strip("`") for cell in shown], number
    assert number == "10"


def test_the_order_of_nodes_is_the_one_of_the_page() -> None:
    def pod(on: str, gpus: int, saved_s: float, gang: str = "") -> DrainedPod:
        return DrainedPod(f"default/{on}", on, gpus * 1000, saved_s, gang)

    now_s = 10_000
    pods = (
        *(pod("gpu-1", 8, 0, "train"), pod("gpu-3", 8, 0, "train")),
        *(pod("gpu-2", 4, now_s - 60), pod("gpu-4", 4, now_s - 3600)),
    )
    found = by_lost_work(["gpu-1", "gpu-2", "gpu-3", "gpu-4"], NodeWork(pods), now_s)
    assert f"The order is {', '.join(found)}." in TEXT.replace("\n", " ")

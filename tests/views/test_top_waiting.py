"""How many pods wait, as `shoal top` counts them."""

from __future__ import annotations

import io

from rich.console import Console

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.views.top import HeldBack, Top, top_of
from shoal.views.top_text import show_top


def top(held: HeldBack) -> Top:
    world = Scenario(node("n").gpus(4)).arrive("t/a", ask().gpus(4).made()).arrive("t/b", ask().gpus(2).made())
    return top_of(world.cluster, [], str, held)


def first_line(held: HeldBack) -> str:
    text = io.StringIO()
    show_top(Console(file=text, width=200), top(held))
    return text.getvalue().splitlines()[0]


def test_held_pods_count_with_the_gpus_that_they_ask_for() -> None:
    assert first_line(HeldBack(pods=3, gpu_milli=6000)) == "0 nodes; 5 pods wait for 12 GPUs"


def test_pods_that_do_not_exist_yet_are_counted_apart() -> None:
    assert first_line(HeldBack(not_created={"t/b"})) == "0 nodes; 1 pod waits for 4 GPUs; 1 pod is not created yet"
    assert first_line(HeldBack(not_created={"t/b", "t/refused"})).endswith("; 2 pods are not created yet")

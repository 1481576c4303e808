"""The story of a workload behind queues, as far as somebody waits for it."""

from __future__ import annotations

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus, rounds_on
from build.manifests import node
from build.queue_manifests import flavor
from shoal.sim.explanation import explain

LATE = "t/job-late"


def help_within(most: int | None) -> list[str]:
    """What is said to help if so many questions whether to go on are answered with yes."""
    world = [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/held", 1, 6, "f")]
    left = [most]

    def go_on() -> bool:
        if left[0] is None:
            return True
        left[0] -= 1
        return left[0] >= 0

    explanation = explain(rounds_on(*world, gpu_job("t/late", 2, 2)), {}, LATE, go_on)
    return dict(explanation.chapters).get("would help", [])


def test_a_search_that_was_cut_says_so_after_what_it_has_found() -> None:
    whole = help_within(None)
    assert whole
    assert not any("was ended" in line for line in whole)
    assert help_within(0) == ["The search for more was ended after 0 trials."]
    *found, cut = help_within(5)
    assert found
    assert cut == "The search for more was ended after 5 trials."
    assert help_within(1000) == whole

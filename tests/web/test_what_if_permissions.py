"""What an account may read of the answer to a proposal."""

from __future__ import annotations

from shoal.views.what_if import PodChange, WhatIfAnswer
from shoal.web.what_if_page import permitted_answer


def test_the_pod_of_another_namespace_that_a_pod_gives_way_to_is_not_named() -> None:
    changes = [
        PodChange("vision/a", "runs on n1", "gives way to secret/b"),
        PodChange("vision/c", "gives way to secret/gang/1", "gives way to vision/d"),
        PodChange("secret/b", "waits: m", "runs on n1"),
    ]
    answer = WhatIfAnswer(None, changes, 0)
    assert list(permitted_answer(answer, frozenset({"vision"})).pods) == [
        PodChange("vision/a", "runs on n1", "gives way to a pod of another namespace"),
        PodChange("vision/c", "gives way to a pod of another namespace", "gives way to vision/d"),
    ]
    assert permitted_answer(answer, None) is answer

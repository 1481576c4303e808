"""What is written on a living pod whose claim cannot be used by anybody: decided before any node is looked at."""

from __future__ import annotations

from shoal.engine.asks import Ask
from shoal.engine.reasons import Cause, Code, Evidence, Shortfall
from shoal.views.live_refusals import Outlook, pod_words
from shoal.views.why import nearest_sentence

WORDS = 'resourceclaim "nope" not found'


def test_a_missing_claim_is_told_as_kube_scheduler_tells_it() -> None:
    lack = Shortfall(WORDS, 1, 0, 1, Code.CLAIM_UNUSABLE)
    causes = (Cause(Code.CLAIM_UNUSABLE, WORDS, 6), Cause(Code.UNSCHEDULABLE, "", 1))
    evidence = Evidence(6, causes, nearest="n", shortfalls=(lack,))
    assert pod_words(Outlook(Ask(), evidence)) == (
        '0/6 nodes are available: resourceclaim "nope" not found. no new claims to deallocate, '
        "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
    )
    assert "nearest" not in nearest_sentence(evidence)

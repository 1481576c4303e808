"""Pods that a ResourceQuota refuses: the figures, and the patch that lets them in if the nodes have places."""

from __future__ import annotations

from typing import Any

from shoal.views.explanation import WOULD_RUN, Explanation
from shoal.views.refused_pods import exceeded, missing_account_words, not_created_words, tell_last_refusal, tell_refusal
from shoal.views.remedies import Remedy

GPU = "requests.nvidia.com/gpu"
REFUSED = 'Error creating: pods "w-0" is forbidden: exceeded quota: gpus'
MESSAGE = f"{REFUSED}, requested: {GPU}=2, used: {GPU}=3, limited: {GPU}=4"


def quota(used: str, hard: str) -> dict[str, Any]:
    return {"metadata": {"name": "gpus"}, "status": {"used": {GPU: used}, "hard": {GPU: hard}}}


def test_the_quota_is_told_with_what_is_missing_for_all_pods() -> None:
    (found,) = exceeded([MESSAGE], [quota("3", "4")], pods=2)
    explanation = Explanation("job t/w", "waits")
    tell_refusal(explanation, [found], "t", would_run=True)
    assert explanation.code == "ExceededQuota"
    told = dict(explanation.chapters)
    assert told["quota"] == [
        f"ResourceQuota gpus would be exceeded: 3 of 4 {GPU} used, each of 2 pods requests 2, 3 missing"
    ]
    assert told["would help"] == [
        f"Raise {GPU} from 4 to 7 in ResourceQuota gpus.",
        f'kubectl patch resourcequota gpus -n t --type=merge -p=\'{{"spec":{{"hard":{{"{GPU}":"7"}}}}}}\'',
    ]


def test_a_quota_that_was_raised_since_refuses_nothing() -> None:
    assert exceeded([MESSAGE], [quota("3", "8")], pods=2) == []
    assert exceeded([MESSAGE], [], pods=2) == []


def test_quota_alone_is_no_remedy_where_the_nodes_have_no_place() -> None:
    found = exceeded([MESSAGE], [quota("3", "4")], pods=1)
    hopeless = Explanation("job t/w", "waits", chapters=[("would help", ["Nothing was found."])])
    tell_refusal(hopeless, found, "t", would_run=False)
    assert hopeless.remedies == []
    assert dict(hopeless.chapters)["would help"] == ["Nothing was found."]
    helped = Explanation("job t/w", "waits", remedies=[Remedy("Uncordon node n.", ("kubectl uncordon n",))])
    helped.add("would help", "Uncordon node n.", "kubectl uncordon n")
    tell_refusal(helped, found, "t", would_run=False)
    (remedy,) = helped.remedies
    assert remedy.words.startswith("Two changes are needed. First: Raise")
    assert remedy.commands[-1] == "kubectl uncordon n"
    assert dict(helped.chapters)["would help"] == remedy.lines()


def test_a_present_figure_of_zero_counts_more_than_that_of_an_old_event() -> None:
    (found,) = exceeded([MESSAGE], [quota("0", "1")], pods=1)
    assert (str(found.used), str(found.hard)) == ("0", "1")
    (closed,) = exceeded([MESSAGE], [quota("3", "0")], pods=1)
    assert (str(closed.used), str(closed.hard)) == ("3", "0")
    assert exceeded([MESSAGE], [quota("0", "4")], pods=1) == []


MISSING = 'error looking up service account t/sa: serviceaccount "sa" not found'


def test_the_cause_for_which_no_pod_is_created_is_in_the_headline() -> None:
    explanation = Explanation("job t/w", f"waits: its controller has not created it yet; {WOULD_RUN}n, GPU 3")
    lines = tell_last_refusal(explanation, f'Error creating: pods "w-0" is forbidden: {MISSING}')
    assert explanation.outcome == f"waits: its pods are not created ({MISSING})"
    assert explanation.code == "Forbidden"
    assert lines == [f'Error creating: pods "w-0" is forbidden: {MISSING}', f"once it is created, {WOULD_RUN}n, GPU 3"]


def test_the_cause_of_a_refusal_that_was_foreseen_is_in_the_headline_without_a_quota() -> None:
    words = not_created_words("pods are forbidden: maximum cpu usage per Container is 2, but limit is 4.")
    assert words == "waits: its pods are not created (maximum cpu usage per Container is 2, but limit is 4)"
    assert not_created_words(MESSAGE) == not_created_words("") == "waits: its pods are not created"


def test_a_missing_service_account_has_the_command_that_creates_it() -> None:
    message = f'Error creating: pods "w-0" is forbidden: {MISSING}'
    assert missing_account_words(message, "t")[1] == "kubectl create serviceaccount sa -n t"
    assert missing_account_words(MESSAGE, "t") == []


def test_of_a_service_account_that_exists_now_no_command_is_told() -> None:
    message = f'Error creating: pods "w-0" is forbidden: {MISSING}'
    (words,) = missing_account_words(message, "t", exists=True)
    assert words.startswith("ServiceAccount sa exists now. The controller creates the pods at its next attempt")


def test_a_headline_about_pods_that_run_stays() -> None:
    explanation = Explanation("job t/w", "pods: 3 run")
    message = f'Error creating: pods "w-0" is forbidden: {MISSING}'
    assert tell_last_refusal(explanation, message) == [message]
    assert (explanation.outcome, explanation.code) == ("pods: 3 run", "")


def test_a_quota_that_is_not_short_any_more_is_not_in_the_headline() -> None:
    outcome = "waits: its controller has not created it yet"
    explanation = Explanation("job t/w", outcome)
    assert tell_last_refusal(explanation, MESSAGE) == [MESSAGE]
    assert (explanation.outcome, explanation.code) == (outcome, "")

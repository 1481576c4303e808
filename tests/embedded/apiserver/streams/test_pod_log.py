"""What `kubectl logs` gets: nothing before there is a node, a refusal before the container runs, else one line."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.log_without_kubelet import pod_log

Obj = dict[str, Any]


def pod(*containers: str, node: str = "n1", **status: Any) -> Obj:
    spec = {"containers": [{"name": name} for name in containers or ("main",)], "nodeName": node}
    return {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending", **status}}


def state(name: str, **state: Obj) -> Obj:
    return {"name": name, "state": state}


def refusal(asked: Obj, **query: str) -> str:
    with pytest.raises(ApiError) as caught:
        pod_log(asked, query)
    return caught.value.message


def test_a_container_that_has_started_says_why_there_is_no_more() -> None:
    running = pod(containerStatuses=[state("main", running={})])
    assert pod_log(running, {}).count("\n") == 1
    assert pod_log(pod(phase="Running"), {}) == pod_log(running, {})
    assert pod_log(running, {"tailLines": "0"}) == ""
    assert pod_log(running, {"limitBytes": "4"}) == pod_log(running, {})[:4]


def test_a_container_that_has_not_started_is_refused_with_its_reason() -> None:
    waiting = pod(containerStatuses=[state("main", waiting={"reason": "ContainerCreating"})])
    assert refusal(waiting) == 'container "main" in pod "p" is waiting to start: ContainerCreating'
    assert refusal(pod()) == 'container "main" in pod "p" is not available'


def test_one_of_several_containers_has_to_be_named() -> None:
    two = pod("a", "b", phase="Running")
    two["spec"]["initContainers"] = [{"name": "i"}]
    words = "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
    assert refusal(two) == words
    assert refusal(two, container="c") == "container c is not valid for pod p"
    assert pod_log(two, {"container": "i"})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"tailLines": "-1"}, 'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or'),
        ({"sinceSeconds": "0"}, 'PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than'),
        ({"limitBytes": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"previous": "true"}, 'previous terminated container "main" in pod "p" not found'),
    ],
)
def test_options_that_make_no_sense_are_refused(query: dict[str, str], words: str) -> None:
    assert refusal(pod(phase="Running"), **query).startswith(words)

"""Logs of pods: bounded, with those of containers before a restart, and without those that may not be read."""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.client.refusals import ForbiddenError
from shoal.store.pod_logs import LogBounds, logs_of

BOUNDS = LogBounds(bytes=100, lines=7, pods=2)


class Requests:
    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def ask(self, method: str, path: str, query: dict[str, str]) -> bytes:
        assert method == "GET"
        self.asked.append((path, query))
        if "secret" in path:
            raise ForbiddenError("pods/log is forbidden")
        former = "former " if "previous" in query else ""
        return f"{former}log of {query['container']}\xff".encode("latin-1")


def pod(name: str, *statuses: dict[str, Any], namespace: str = "team") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "status": {"containerStatuses": list(statuses)}}


def status(name: str, restarts: int = 0, started: str = "containerd://1") -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, **({"containerID": started} if started else {})}


def read(requests: Requests, *pods: dict[str, Any]) -> dict[str, str]:
    return asyncio.run(logs_of(requests, pods, BOUNDS))


def test_the_log_before_a_restart_comes_first() -> None:
    found = read(Requests(), pod("a", status("main", restarts=2), status("sidecar")))
    assert found == {"team/a": "former log of main\ufffd\nlog of main\ufffd\nlog of sidecar\ufffd"}


def test_each_log_is_bounded_in_bytes_and_lines() -> None:
    requests = Requests()
    read(requests, pod("a/../b", status("main")))
    ((path, query),) = requests.asked
    assert path == "/api/v1/namespaces/team/pods/a%2F..%2Fb/log"
    assert (query["limitBytes"], query["tailLines"]) == ("100", "7")


def test_containers_that_never_ran_and_pods_beyond_the_limit_are_not_asked_for() -> None:
    requests = Requests()
    assert read(requests, pod("a", status("main", started="")), pod("b"), pod("c", status("main"))) == {}
    assert requests.asked == []


def test_a_log_that_may_not_be_read_is_left_out() -> None:
    found = read(Requests(), pod("a", status("main"), namespace="secret"), pod("b", status("main")))
    assert list(found) == ["team/b"]

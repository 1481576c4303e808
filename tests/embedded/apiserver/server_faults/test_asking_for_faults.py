"""Faults of the server as they are asked for: what makes sense, what is refused, what is shown."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from build.virtual_time import virtual
from shoal.embedded.apiserver.server_faults.fault_routes import LONGEST_BODY, ROOT, FaultRoutes, is_of_faults
from shoal.embedded.apiserver.server_faults.faults import Faults
from shoal.embedded.apiserver.status import ApiError

SLOW = f"{ROOT}/slow-api"


class AdmissionDiscipline:
    """Faults that expire nothing, and the paths to them."""

    def __init__(self) -> None:
        self.expired = 0
        self.faults = Faults(self._expire, lambda: 0.5)
        self._paths = FaultRoutes(self.faults)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._paths.answer(method, path, b"" if body is None else msgspec.json.encode(body))

    def refusal(self, method: str, path: str, body: Any = None) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.ask(method, path, body)
        return caught.value

    def _expire(self) -> None:
        self.expired += 1


@virtual
async def test_a_slow_api_is_shown_for_as_long_as_it_goes_on() -> None:
    desk = AdmissionDiscipline()
    assert desk.ask("GET", ROOT)["slow-api"] is None
    shown = desk.ask("POST", SLOW, {"delay_ms": 200, "jitter_ms": 100, "seconds": 30, "verbs": ["list"]})
    assert shown["slow-api"] == {
        "delay_ms": 200,
        "jitter_ms": 100,
        "seconds": 30,
        "verbs": ("list",),
        "seconds_left": 30.0,
    }
    await asyncio.sleep(10)
    assert desk.ask("GET", ROOT)["slow-api"]["seconds_left"] == 20.0
    await asyncio.sleep(20)
    assert desk.ask("GET", ROOT)["slow-api"] is None


@virtual
async def test_requests_of_the_named_verbs_wait_and_others_do_not() -> None:
    desk, time = AdmissionDiscipline(), asyncio.get_running_loop().time
    desk.ask("POST", SLOW, {"delay_ms": 200, "jitter_ms": 100, "verbs": ["list"]})
    started = time()
    await desk.faults.before("get")
    assert time() == started
    await desk.faults.before("list")
    assert time() - started == pytest.approx(0.25)
    assert desk.ask("DELETE", ROOT)["slow-api"] is None
    await desk.faults.before("list")
    assert time() - started == pytest.approx(0.25)
    assert desk.faults.counts.delayed_requests == 1
    assert "shoal_faults_delayed_requests_total 1" in desk.faults.metrics()
    assert 'shoal_faults_total{fault="slow-api"} 1' in desk.faults.metrics()


@virtual
async def test_a_delay_of_nothing_ends_the_one_before() -> None:
    desk = AdmissionDiscipline()
    desk.ask("POST", SLOW, {"delay_ms": 200})
    assert desk.ask("POST", SLOW, {"delay_ms": 0})["slow-api"] is None
    assert desk.faults.counts.slow_api == 1
    assert desk.ask("POST", SLOW, {"delay_ms": 0, "jitter_ms": 5})["slow-api"] is not None


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "delay_ms: Required value: how many milliseconds each request waits"),
        ({"delay_ms": -1}, "delay_ms: Invalid value: -1: must be between 0 and 60000, inclusive"),
        ({"delay_ms": 5, "seconds": 86401}, "seconds: Invalid value: 86401: must be between 1 and 86400, inclusive"),
        ({"delay_ms": "5"}, 'delay_ms: Invalid value: "5": must be an integer'),
        ({"delay_ms": True}, "delay_ms: Invalid value: true: must be an integer"),
        ({"delay_ms": 5, "verbs": ["read"]}, 'verbs[0]: Unsupported value: "read": supported values: "create"'),
        ({"delay_ms": 5, "verbs": "get"}, 'verbs: Invalid value: "get": must be a list of verbs'),
        ({"delay_ms": 5, "dely": 1}, 'dely: Unsupported value: "dely": supported values: "delay_ms"'),
        ([], "Invalid value: []: must be an object"),
    ],
)
def test_what_makes_no_sense_is_invalid(sent: Any, words: str) -> None:
    desk = AdmissionDiscipline()
    error = desk.refusal("POST", SLOW, sent)
    assert (error.code, error.reason) == (422, "Invalid")
    assert words in error.message
    assert desk.faults.counts.slow_api == 0


def test_other_paths_methods_and_bodies_are_refused() -> None:
    desk = AdmissionDiscipline()
    assert desk.refusal("POST", f"{ROOT}/slow").code == 404
    assert desk.refusal("GET", SLOW).code == 405
    assert desk.refusal("POST", ROOT).code == 405
    assert desk.refusal("POST", f"{ROOT}/expire-watches", {"now": True}).code == 400
    assert desk.refusal("POST", SLOW, "x" * LONGEST_BODY).code == 413
    with pytest.raises(ApiError, match="the body is not JSON"):
        FaultRoutes(desk.faults).answer("POST", SLOW, b"{")
    assert desk.expired == 0


@virtual
async def test_watches_are_expired_once_for_each_time_it_is_asked() -> None:
    desk = AdmissionDiscipline()
    assert desk.ask("POST", f"{ROOT}/expire-watches", {})["counts"]["expire_watches"] == 1
    assert desk.ask("POST", f"{ROOT}/expire-watches")["counts"]["expire_watches"] == 2
    assert desk.expired == 2


def test_only_paths_below_the_root_are_of_faults() -> None:
    assert is_of_faults(SLOW)
    assert is_of_faults(ROOT)
    assert not is_of_faults(f"{ROOT}y")

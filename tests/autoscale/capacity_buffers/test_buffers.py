"""For how many pods a CapacityBuffer keeps room, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.autoscale.capacity_buffers.buffer import buffer_of, buffer_pods
from shoal.units.errors import UserError

FRIDAY_NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
SATURDAY = datetime(2026, 11, 28, 12, tzinfo=UTC)
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "2"}}}]},
}


def _names(now: datetime = FRIDAY_NOON, notes: dict[str, str] | None = None, **spec: Any) -> list[str]:
    raw = {
        "metadata": {"namespace": "default", "name": "ready", "annotations": notes or {}},
        "spec": {"podTemplateRef": {"name": "worker"}, **spec},
    }
    return [pod.metadata.name for pod in buffer_pods(buffer_of(raw), TEMPLATE, now)]


def test_a_buffer_has_its_replicas_as_far_as_its_limits_allow() -> None:
    assert _names(replicas=2) == ["ready-buffer-0", "ready-buffer-1"]
    assert len(_names(replicas=9, limits={"nvidia.com/gpu": "7"})) == 3
    assert len(_names(limits={"cpu": "17", "nvidia.com/gpu": "100"})) == 4
    assert _names(replicas=0) == []


def test_a_buffer_with_schedules_is_kept_between_them_in_its_time_zone() -> None:
    week = {"shoal.dev/buffer-start": "0 8 * * 1-5", "shoal.dev/buffer-end": "0 18 * * 1-5"}
    east = {**week, "shoal.dev/buffer-time-zone": "Asia/Tokyo"}

    assert len(_names(notes=week, replicas=1)) == 1
    assert _names(SATURDAY, notes=week, replicas=1) == []
    assert _names(notes=east, replicas=1) == [], "it is nine in the evening there"


@pytest.mark.parametrize(
    ("notes", "spec", "message"),
    {
        "another strategy": (
            {},
            {"replicas": 1, "provisioningStrategy": "other"},
            "the strategy other is not supported",
        ),
        "no template": ({}, {"replicas": 1, "podTemplateRef": {}}, "no PodTemplate is named"),
        "no number": ({}, {}, "neither replicas nor limits are set"),
        "one schedule": ({"shoal.dev/buffer-start": "0 8 * * *"}, {"replicas": 1}, "missing required parameter"),
        "a time zone that is none": (
            {
                "shoal.dev/buffer-start": "0 8 * * *",
                "shoal.dev/buffer-end": "0 9 * * *",
                "shoal.dev/buffer-time-zone": "Mars",
            },
            {"replicas": 1},
            "unknown time zone Mars",
        ),
    }.values(),
)
def test_a_buffer_that_cannot_be_kept_says_why(notes: dict[str, str], spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        _names(notes=notes, **spec)

from __future__ import annotations

import pytest

from build.kind_objects import complaints, template, workload
from shoal.embedded.apiserver.kinds.workloads.schedules import schedule_fault
from shoal.embedded.apiserver.kinds.workloads.time_zones import time_zone_faults


@pytest.mark.parametrize(
    "schedule",
    ["* * * * *", "*/5 0-6 1,15 * MON-FRI", "0 0 ? jan sun", "@daily", "@every 1h30m", "5/10 * * * *"],
)
def test_schedules_that_can_be_read(schedule: str) -> None:
    assert schedule_fault(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/1/2 * * * *", "too many slashes: */1/2"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
    ],
)
def test_other_schedules_say_what_is_wrong(schedule: str, fault: str) -> None:
    assert schedule_fault(schedule) == fault


def cron(name: str = "nightly", **spec: object) -> list[str]:
    jobs = {"spec": {"template": template(restartPolicy="Never")}}
    made = workload("CronJob", name=name, group="batch/v1", selector=None, template=None, jobTemplate=jobs, **spec)
    return complaints("batch", "cronjobs", made)


def test_a_zone_has_to_be_one_of_the_world() -> None:
    assert time_zone_faults("Europe/Berlin") == ()
    assert cron(schedule="@daily", timeZone="Mars/Olympus") == [
        'spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'
    ]


def test_a_zone_inside_the_schedule_is_refused() -> None:
    assert cron(schedule="CRON_TZ=UTC 0 0 * * *") == [
        (
            'spec.schedule: Invalid value: "CRON_TZ=UTC 0 0 * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        )
    ]


def test_a_schedule_has_a_length_that_is_read_in_no_time() -> None:
    ranges = ",".join(["0-59/1"] * 100_000)
    assert cron(schedule=f"{ranges} * * * *") == ["spec.schedule: Too long: may not be more than 4096 bytes"]


def test_its_name_leaves_room_for_the_time() -> None:
    assert cron(name="n" * 52, schedule="@daily") == []
    assert cron(name="n" * 53, schedule="@daily") == [
        f'metadata.name: Invalid value: "{"n" * 53}": must be no more than 52 characters'
    ]


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("@every " + "0" * 200_000 + "x", 'time: unknown unit "x" in duration'),
        ("@every " + "0" * 200_000, "time: missing unit in duration"),
        ("@every 1d", 'failed to parse duration @every 1d: time: unknown unit "d" in duration "1d"'),
        ("@every 00", 'failed to parse duration @every 00: time: missing unit in duration "00"'),
        ("9" * 5000 + " * * * *", "value out of range"),
    ],
)
def test_the_length_of_a_schedule_does_not_keep_the_server_busy(schedule: str, fault: str) -> None:
    assert fault in schedule_fault(schedule)


def test_a_schedule_longer_than_any_useful_one_is_refused_unread() -> None:
    assert cron(schedule="0," * 150_000 + "1 * * * *") == ["spec.schedule: Too long: may not be more than 4096 bytes"]

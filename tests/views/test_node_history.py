"""What a history tells of a node: Xid errors where the number changes, and who held its GPUs before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Machine
from shoal.units.calendar_windows import HOUR_MS
from shoal.views.node_history import NodeRecords, XidChange, node_past, xid_changes

MACHINE = Machine("n", 0, None, devices=tuple(f"g{at}" for at in range(8)))


def held(pod: str, start: int, end: int | None, *gpus: int, namespace: str = "lab", share: int = FULL_SHARE) -> Holding:
    devices = tuple(DeviceShare(f"g{at}", share) for at in gpus)
    return Holding(Holder(pod, namespace, job=f"{pod}-job"), "n", start, start, end, devices)


@given(st.lists(st.sampled_from([None, 0, 13, 31, 79]), max_size=12))
def test_an_xid_is_seen_where_the_number_differs_from_the_last_known_one(numbers: list[int | None]) -> None:
    values = np.array([[np.nan if one is None else one for one in numbers]], np.float32).reshape(1, -1)
    found = xid_changes(["g0"], np.arange(len(numbers), dtype=np.int64) * 1_000, values)
    expected, last = [], 0
    for at, number in enumerate(numbers):
        if number is not None and number != last:
            expected += [(number, at * 1_000)] if number else []
            last = number
    assert [(one.number, one.at_ms) for one in found] == expected


def test_the_first_sample_of_a_device_may_tell_an_earlier_error() -> None:
    values = np.array([[79, 79], [0, 31]], np.float32)
    found = xid_changes(["g0", "g1"], np.array([0, 1_000]), values)
    assert [(one.device, one.is_first) for one in found] == [("g0", True), ("g1", False)]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9), st.integers(0, 9), st.sets(st.integers(0, 7), min_size=1), st.booleans(), st.booleans()
        ),
        max_size=6,
    )
)
def test_named_and_unnamed_holders_add_up_to_what_was_held(
    pods: list[tuple[int, int, set[int], bool, bool]],
) -> None:
    holdings = [
        held(f"p{at}", start, None if is_open else start + length, *gpus, namespace="lab" if is_mine else "vault")
        for at, (start, length, gpus, is_mine, is_open) in enumerate(pods)
    ]
    change = XidChange("g3", 79, 5, 5, 5, is_first=False)
    found = node_past(NodeRecords("n", (), [MACHINE], holdings, [change]), lambda holder: holder.namespace == "lab")
    ended = [one for one in holdings if one.end_ms is not None]
    hours = sum((one.end_ms - one.start_ms) * len(one.devices) / HOUR_MS for one in ended if one.end_ms is not None)
    assert abs(sum(one.gpu_hours for one in found.former) + found.unnamed_gpu_hours - hours) < 1e-9
    assert len(found.former) + found.unnamed == len(ended)
    assert all(one.pod.startswith("lab/") for one in found.former)
    around = [one for one in holdings if one.start_ms <= 5 <= (9 if one.end_ms is None else one.end_ms)]
    around = [one for one in around if any(device.device == "g3" for device in one.devices)]
    assert [(one.gpu, one.number) for one in found.xids] == [(3, 79)]
    assert len(found.xids[0].pods) + found.xids[0].unnamed == len(around)


def test_gpus_have_the_numbers_of_the_node_and_parts_their_share() -> None:
    holdings = [held("a", 0, 5, 0, 1, 2, 6), held("b", 0, 4, 3, share=FULL_SHARE // 4), held("c", 0, 3, 1)]
    other = Machine("n", 0, 9, devices=("other",))
    found = node_past(NodeRecords("n", (), [other, MACHINE], holdings, []), lambda _: True)
    assert [list(one.gpus) for one in found.former] == [["0-2", "6"], ["25 % of 3"], ["1"]]
    assert [one.job for one in found.former] == ["a-job", "b-job", "c-job"]


def test_an_xid_of_a_mig_instance_is_of_the_pod_that_held_the_instance() -> None:
    parts = [("a", "m1"), ("b", "m2")]
    holdings = [
        Holding(Holder(pod, "lab"), "n", 0, 0, None, (DeviceShare("g2", FULL_SHARE // 2, part),)) for pod, part in parts
    ]
    change = XidChange("m2", 31, 5, 5, 5, is_first=False)
    found = node_past(NodeRecords("n", (), [MACHINE], holdings, [change]), lambda _: True)
    assert [(one.gpu, list(one.pods)) for one in found.xids] == [(2, ["lab/b"])]

"""Shares of GPUs by compute and by use: what all pods pay together does not change."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.cost.prices.price_file import MigBasis, PriceFile, ShareBasis
from shoal.cost.records import FULL_SHARE, PPM, DeviceShare, Holder, Holding, Records, Use
from shoal.cost.share_basis import with_share_basis

HALF = FULL_SHARE // 2


def _shared(*holdings: Holding, mig: MigBasis = "memory", share: ShareBasis = "replica") -> tuple[Holding, ...]:
    return with_share_basis(Records(holdings=holdings), PriceFile(mig_by=mig, share_by=share)).holdings


def _replica(pod: str, start: int, end: int | None, *uses: Use, share: int = HALF) -> Holding:
    return Holding(Holder(pod), "m", start, start, end, (DeviceShare("g", share, f"g::{pod}"),), uses=uses)


def test_a_mig_instance_counts_by_its_compute_where_that_was_recorded() -> None:
    devices = (DeviceShare("g", HALF, "mig", FULL_SHARE // 7 * 3), DeviceShare("h", HALF, "older"), DeviceShare("i"))
    held = Holding(Holder("p"), "m", 0, devices=devices)
    (found,) = _shared(held, mig="compute", share="use")
    assert [one.share for one in found.devices] == [FULL_SHARE // 7 * 3, HALF, FULL_SHARE]
    assert _shared(held) == (held,)


def test_pods_that_share_a_gpu_pay_by_their_use_while_both_are_measured() -> None:
    busy, calm = Use(0, 100, PPM, 600_000), Use(0, 60, PPM, 200_000)
    found = _shared(_replica("a", 0, 100, busy), _replica("b", 0, None, calm), share="use")
    assert [(one.holder.pod, one.start_ms, one.end_ms, one.devices[0].share / FULL_SHARE) for one in found] == [
        ("a", 0, 60, 0.75),
        ("a", 60, 100, 0.5),
        ("b", 0, 60, 0.25),
        ("b", 60, None, 0.5),
    ]


def test_pods_that_do_nothing_pay_by_replica() -> None:
    idle = Use(0, 100, 0, 0)
    both = (_replica("a", 0, 100, idle), _replica("b", 0, 100, idle))
    assert _shared(*both, share="use") == both


_HELD = st.tuples(
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(1, 4),
    st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=6),
)


@given(st.lists(_HELD, min_size=1, max_size=4))
def test_the_shares_of_each_moment_are_the_same_in_sum_and_in_proportion_to_use(
    given_: list[tuple[int, int, int, list[int | None]]],
) -> None:
    holdings = []
    for at, (start, length, eighths, used) in enumerate(given_):
        uses = [
            Use(start + step, start + step + 1, PPM, part * 250_000)
            for step, part in enumerate(used[:length])
            if part is not None
        ]
        share = FULL_SHARE // 8 * eighths
        holdings.append(_replica(str(at), start, start + length, *uses, share=share))
    found = _shared(*holdings, share="use")
    for moment in range(13):
        before = {one.holder.pod: one for one in holdings if one.start_ms <= moment < (one.end_ms or 0)}
        pieces = [one for one in found if one.start_ms <= moment < (one.end_ms or 0)]
        after = {one.holder.pod: one.devices[0].share for one in pieces}
        # Pieces neither overlap nor leave a hole.
        assert len(pieces) == len(after)
        assert after.keys() == before.keys()
        whole = sum(one.devices[0].share for one in before.values())
        assert sum(after.values()) == whole
        at_work = {
            pod: next((use.used_ppm for use in one.uses if use.start_ms == moment), None) for pod, one in before.items()
        }
        total = sum(one for one in at_work.values() if one is not None)
        for pod, share in after.items():
            if None in at_work.values() or not total:
                assert share == before[pod].devices[0].share
            else:
                assert abs(share - whole * (at_work[pod] or 0) / total) <= len(before)
    joined = msgspec.structs.replace
    assert {joined(one, start_ms=0, end_ms=None, devices=()) for one in found} == {
        joined(one, start_ms=0, end_ms=None, devices=()) for one in holdings
    }

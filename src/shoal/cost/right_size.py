"""Which part of a GPU, or which cheaper GPU, would hold what a workload uses.

The smallest MIG profile whose memory and compute both suffice is recommended; media profiles are left out. Memory is
compared with the size in the name of the profile, as users plan with it, and compute with its slices. A workload that
uses less than 30 % of its GPUs is flagged. Nothing is recommended without a measurement.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from shoal.data.gpu_prices import usd_of_model
from shoal.data.gpus import Model, models
from shoal.data.mig import Layout, Profile

LOW_UTILISATION = Decimal("0.30")
_EXTRA = "+"


class SliceAdvice(msgspec.Struct, frozen=True):
    profile: str
    per_gpu: int
    """So many fit one GPU."""
    wasted_percent: Decimal
    """Of the memory of the whole GPU today."""


def is_underused(utilisation: Decimal) -> bool:
    return utilisation < LOW_UTILISATION


def slice_for(
    layout: Layout, total_gb: Decimal, used_gb: Decimal, activity: Decimal = Decimal(0)
) -> SliceAdvice | None:
    """`activity`: the peak of SM activity as a part of 1. None where only the whole GPU suffices."""
    fitting = [
        one
        for one in layout.profiles
        if _EXTRA not in one.name
        and not one.name.endswith("-me")
        and _gigabytes(one) >= used_gb
        and Decimal(one.compute) / layout.compute_slices >= activity
    ]
    if not fitting:
        return None
    best = min(fitting, key=lambda one: (one.width, one.compute, one.name))
    if best.width >= layout.memory_slices:
        return None
    return SliceAdvice(best.name, best.max, 100 * (total_gb - used_gb) / total_gb)


def cheaper_model(current: Model, used_gb: Decimal, utilisation: Decimal) -> Model | None:
    """The cheapest model of the same vendor with the memory, and enough bandwidth and compute for what is used."""
    price = usd_of_model(current)
    candidates = [
        one
        for one in models()
        if one.vendor == current.vendor
        and one.memory_gb >= used_gb
        and Decimal(str(one.bandwidth_gb_s)) >= utilisation * Decimal(str(current.bandwidth_gb_s))
        and (one.fp16_tflops or 0) >= float(utilisation) * (current.fp16_tflops or 0)
        and usd_of_model(one) < price
    ]
    return min(candidates, key=lambda one: (usd_of_model(one), one.name), default=None)


def _gigabytes(profile: Profile) -> Decimal:
    return Decimal(profile.name.partition("g.")[2].partition("gb")[0])

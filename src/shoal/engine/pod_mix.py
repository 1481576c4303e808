"""Represents the mix of pods that a fleet serves: which classes of requests arrive, and how often.

Policies that judge what a placement leaves behind need to know what may come to use it. A mix is a plain count of
classes, learned from a list of pods or from arrivals seen so far; it knows nothing of single pods or of the future.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from shoal.engine.asks import Ask, gpu_pair


class PodClass(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """Pods alike for packing. `models` keeps the order in which they were written: classes differ by text."""

    cpu_milli: int
    gpu_milli: int
    gpus: int
    models: str = ""
    """Allowed GPU models joined by `|`; empty means any."""

    @property
    def model_set(self) -> frozenset[str]:
        return frozenset(self.models.split("|")) if self.models else frozenset()

    @property
    def total_gpu_milli(self) -> int:
        return self.gpus * self.gpu_milli


class PodMix(msgspec.Struct, frozen=True):
    """Classes with their counts, commonest first; equal counts by descending class, as the FGD paper has it."""

    counts: tuple[tuple[PodClass, int], ...] = ()

    @classmethod
    def of(cls, classes: Iterable[PodClass]) -> PodMix:
        return cls.from_counts(Counter(classes))

    @classmethod
    def from_counts(cls, counts: Counter[PodClass]) -> PodMix:
        by_class = sorted(counts.items(), key=lambda item: item[0], reverse=True)
        return cls(tuple(sorted(by_class, key=lambda item: -item[1])))

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    def popular(self, share: float) -> tuple[tuple[PodClass, float], ...]:
        """The commonest classes that together make up `share` of all pods, and each one's weight among them.

        The class that crosses the line is in. Division in two steps is the published arithmetic, kept to the bit.
        """
        total = self.total
        chosen: list[tuple[PodClass, int]] = []
        cumulated = 0
        for pod_class, count in self.counts:
            chosen.append((pod_class, count))
            cumulated += count
            if cumulated / total >= share:
                break
        return tuple((pod_class, (count / total) / (cumulated / total)) for pod_class, count in chosen)


def class_of(ask: Ask) -> PodClass:
    """The class an ask belongs to."""
    gpus, milli = gpu_pair(ask)
    models = "|".join(sorted(ask.gpu_models)) if gpus else ""
    return PodClass(cpu_milli=ask.request("cpu"), gpu_milli=milli, gpus=gpus, models=models)

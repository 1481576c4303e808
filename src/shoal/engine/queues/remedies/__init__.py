"""Finds the smallest changes that would admit a waiting workload, by trying them."""

from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.search import admission_with_quota, is_admitted_as, remedies
from shoal.engine.queues.remedies.trials import SearchLimit

__all__ = [
    "SearchLimit",
    "FieldChange",
    "Effect",
    "RemedyKind",
    "Remedy",
    "admission_with_quota",
    "is_admitted_as",
    "remedies",
]

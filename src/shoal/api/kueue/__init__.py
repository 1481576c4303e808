"""Kueue's kinds, v1beta1 and v1beta2, as one typed value each: shaped like v1beta2, read from both.

`reading.py` says what an older document becomes, `probable_mistakes.py` what was accepted though a cluster would refuse
it, `conversion.py` writes plain objects in either version. What Kueue's webhooks refuse is refused by the checks beside
the types.
"""

from __future__ import annotations

from shoal.api.kueue.checks import AdmissionCheck
from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.api.kueue.cohorts import Cohort
from shoal.api.kueue.configuration import Configuration
from shoal.api.kueue.flavors import ResourceFlavor
from shoal.api.kueue.local_queues import LocalQueue
from shoal.api.kueue.priority_classes import WorkloadPriorityClass
from shoal.api.kueue.workloads import Workload

__all__ = [
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "Configuration",
    "LocalQueue",
    "ResourceFlavor",
    "Workload",
    "WorkloadPriorityClass",
]

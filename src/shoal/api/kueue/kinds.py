"""The lines of `api/kinds.py` for Kueue. Versions have lines of their own where an older document is translated."""

from __future__ import annotations

from shoal.api.kind import Kind
from shoal.api.kueue import conversion, reading
from shoal.api.kueue.checks import AdmissionCheck, check_admission_check
from shoal.api.kueue.cluster_queue_rules import check_cluster_queue
from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.api.kueue.cohorts import Cohort, check_cohort
from shoal.api.kueue.configuration import Configuration, check_configuration
from shoal.api.kueue.conversion import V1BETA1, V1BETA2
from shoal.api.kueue.flavors import ResourceFlavor, check_flavor
from shoal.api.kueue.local_queues import LocalQueue, check_local_queue
from shoal.api.kueue.priority_classes import WorkloadPriorityClass, check_workload_priority_class
from shoal.api.kueue.workload_rules import check_workload
from shoal.api.kueue.workloads import Workload

_V1ALPHA1 = "kueue.x-k8s.io/v1alpha1"
_CONFIG_V1BETA1 = "config.kueue.x-k8s.io/v1beta1"
_CONFIG_V1BETA2 = "config.kueue.x-k8s.io/v1beta2"

KUEUE_KINDS: tuple[Kind, ...] = (
    Kind("ResourceFlavor", (V1BETA2, V1BETA1), ResourceFlavor, check_flavor, is_namespaced=False),
    Kind(
        "ClusterQueue",
        (V1BETA2,),
        ClusterQueue,
        check_cluster_queue,
        is_namespaced=False,
        reads=reading.cluster_queue,
    ),
    Kind(
        "ClusterQueue",
        (V1BETA1,),
        ClusterQueue,
        check_cluster_queue,
        is_namespaced=False,
        reads=conversion.cluster_queue_up,
    ),
    Kind("Cohort", (V1BETA2, V1BETA1), Cohort, check_cohort, is_namespaced=False),
    Kind("Cohort", (_V1ALPHA1,), Cohort, check_cohort, is_namespaced=False, reads=reading.cohort_v1alpha1),
    Kind("LocalQueue", (V1BETA2,), LocalQueue, check_local_queue),
    Kind("LocalQueue", (V1BETA1,), LocalQueue, check_local_queue, reads=conversion.local_queue_up),
    Kind(
        "WorkloadPriorityClass",
        (V1BETA2, V1BETA1),
        WorkloadPriorityClass,
        check_workload_priority_class,
        is_namespaced=False,
        reads=reading.priority_class,
    ),
    Kind("AdmissionCheck", (V1BETA2, V1BETA1), AdmissionCheck, check_admission_check, is_namespaced=False),
    Kind("Workload", (V1BETA2,), Workload, check_workload),
    Kind("Workload", (V1BETA1,), Workload, check_workload, reads=conversion.workload_up),
    Kind("Configuration", (_CONFIG_V1BETA2,), Configuration, check_configuration, is_namespaced=False),
    Kind(
        "Configuration",
        (_CONFIG_V1BETA1,),
        Configuration,
        check_configuration,
        is_namespaced=False,
        reads=reading.configuration_v1beta1,
    ),
)

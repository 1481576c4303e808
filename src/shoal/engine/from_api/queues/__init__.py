"""Converts queues, flavors, workloads and settings of the API to the facts of the queue engine.

One value gives one fact. What takes several objects to see (a flavor that is missing, a circle of cohorts) is for
the reader of all objects; errors name the field, and the reader of the file adds the object's place.
"""

from shoal.engine.from_api.queues.claimed_devices import claimed_of
from shoal.engine.from_api.queues.equivalents import GPU_MILLI, Equivalents
from shoal.engine.from_api.queues.expected import DURATION_ANNOTATION
from shoal.engine.from_api.queues.flavors import check_facts_of, flavor_facts_of, topology_levels_of
from shoal.engine.from_api.queues.limits import NamespaceRules
from shoal.engine.from_api.queues.pod_sets import CountingRules
from shoal.engine.from_api.queues.progress import holds_quota, is_finished, moments_of, ran_s
from shoal.engine.from_api.queues.queue_nodes import queue_node_of
from shoal.engine.from_api.queues.quotas import cluster_queue_facts_of, cohort_facts_of, local_queue_facts_of
from shoal.engine.from_api.queues.resource_mapping import ResourceMapping
from shoal.engine.from_api.queues.settings import currency_of, equivalents_of, settings_of
from shoal.engine.from_api.queues.workload_priorities import WorkloadPriorities
from shoal.engine.from_api.queues.workloads import ExpectedWorkload, TemplatePods, WorkloadReader

__all__ = [
    "TemplatePods",
    "CountingRules",
    "ResourceMapping",
    "DURATION_ANNOTATION",
    "Equivalents",
    "GPU_MILLI",
    "NamespaceRules",
    "ExpectedWorkload",
    "WorkloadPriorities",
    "WorkloadReader",
    "check_facts_of",
    "claimed_of",
    "cluster_queue_facts_of",
    "cohort_facts_of",
    "currency_of",
    "equivalents_of",
    "flavor_facts_of",
    "holds_quota",
    "is_finished",
    "local_queue_facts_of",
    "moments_of",
    "queue_node_of",
    "ran_s",
    "settings_of",
    "topology_levels_of",
]

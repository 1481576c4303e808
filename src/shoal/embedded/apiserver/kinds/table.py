"""Lists the strategy of each built-in resource, by group and plural. What is not listed inherits the general
behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.kinds.autoscaling.strategy import AutoscalerStrategy
from shoal.embedded.apiserver.kinds.nodes import NodeStrategy
from shoal.embedded.apiserver.kinds.other_table import OTHER_STRATEGIES
from shoal.embedded.apiserver.kinds.pods.strategy import PodStrategy
from shoal.embedded.apiserver.kinds.policy import DisruptionBudgetStrategy
from shoal.embedded.apiserver.kinds.workloads.cron_jobs import CronJobStrategy
from shoal.embedded.apiserver.kinds.workloads.daemon_sets import DaemonSetStrategy
from shoal.embedded.apiserver.kinds.workloads.deployments import DeploymentStrategy, ReplicaSetStrategy
from shoal.embedded.apiserver.kinds.workloads.jobs import JobStrategy
from shoal.embedded.apiserver.kinds.workloads.replication_controllers import ReplicationControllerStrategy
from shoal.embedded.apiserver.kinds.workloads.stateful_sets import StatefulSetStrategy
from shoal.embedded.apiserver.kinds.workloads.stored import ControllerRevisionStrategy, PodTemplateStrategy
from shoal.embedded.apiserver.strategy import Strategy

STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("", "pods"): PodStrategy(),
    ("", "nodes"): NodeStrategy(),
    ("", "podtemplates"): PodTemplateStrategy(),
    ("", "replicationcontrollers"): ReplicationControllerStrategy(),
    ("apps", "controllerrevisions"): ControllerRevisionStrategy(),
    ("apps", "daemonsets"): DaemonSetStrategy(),
    ("apps", "deployments"): DeploymentStrategy(),
    ("apps", "replicasets"): ReplicaSetStrategy(),
    ("apps", "statefulsets"): StatefulSetStrategy(),
    ("autoscaling", "horizontalpodautoscalers"): AutoscalerStrategy(),
    ("batch", "cronjobs"): CronJobStrategy(),
    ("batch", "jobs"): JobStrategy(),
    ("policy", "poddisruptionbudgets"): DisruptionBudgetStrategy(),
    **OTHER_STRATEGIES,
}

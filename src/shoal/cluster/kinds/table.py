"""Which built-in resource behaves how, by group and plural. What is not listed inherits the general behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.kinds.autoscaling.strategy import AutoscalerStrategy
from shoal.cluster.kinds.nodes import NodeStrategy
from shoal.cluster.kinds.other_table import OTHER_STRATEGIES
from shoal.cluster.kinds.pods.strategy import PodStrategy
from shoal.cluster.kinds.policy import DisruptionBudgetStrategy
from shoal.cluster.kinds.workloads.cron_jobs import CronJobStrategy
from shoal.cluster.kinds.workloads.daemon_sets import DaemonSetStrategy
from shoal.cluster.kinds.workloads.deployments import DeploymentStrategy, ReplicaSetStrategy
from shoal.cluster.kinds.workloads.jobs import JobStrategy
from shoal.cluster.kinds.workloads.replication_controllers import ReplicationControllerStrategy
from shoal.cluster.kinds.workloads.stateful_sets import StatefulSetStrategy
from shoal.cluster.kinds.workloads.stored import ControllerRevisionStrategy, PodTemplateStrategy
from shoal.cluster.strategy import Strategy

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

"""The options of `shoal run`: everything that its command line and its files can choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from shoal.api.alert_targets import AlertTargets
from shoal.api.kueue import Configuration
from shoal.api.node_affinity import NodeAffinity
from shoal.api.run_configuration import FreeingStep, RunConfiguration
from shoal.client.http.access import Access
from shoal.cloud.cluster_api_settings import ClusterApiSettings
from shoal.cloud.ec2_settings import Ec2Settings
from shoal.cloud.external_grpc_settings import ExternalGrpcSettings
from shoal.cost.cost_settings import CostSettings
from shoal.embedded.cloud.settings import CloudSettings
from shoal.engine.cycle_state import Step
from shoal.engine.profile import Builder
from shoal.operator.components.facts import OperatorSettings
from shoal.policy.admission_rules.modes import RuleModes, modes_of
from shoal.wiring.cluster_clock import ClockReading

if TYPE_CHECKING:
    from shoal.store.history.prometheus_server import PrometheusAddress
    from shoal.store.history.samples import Retention

SCHEDULER, QUEUES, VOLCANO, KAI, OPERATOR = "scheduler", "queues", "volcano", "kai", "operator"
POD_AUTOSCALING, NODE_SCALING = "pod-autoscaling", "node-scaling"
PLACEHOLDER_PODS = "placeholder-pods"
HISTORY = "history"
"""Records devices alone; every other choice of parts records too if a folder is named."""
SCHEDULER_OF = {VOLCANO: "volcano", KAI: "kai-scheduler"}
"""The scheduler names of other projects whose pods a part schedules while the project does not run."""
OWN_NAMES = ("shoal", "default-scheduler", *SCHEDULER_OF.values())
"""The scheduler names whose pods Shoal places in an embedded cluster."""


class NamedProfile(msgspec.Struct, frozen=True):
    """How the pods of one scheduler name are placed."""

    scheduler_name: str
    builder: Builder
    added: NodeAffinity | None = None
    """Node affinity that is added to that of each of its pods."""


class RunChoice(msgspec.Struct, frozen=True):
    own: RunConfiguration
    builder: Builder
    """Builds the policy for pods whose scheduler name has no profile."""
    steps: tuple[Step, ...]
    controllers: tuple[str, ...]
    kueue: Configuration | None = None
    """The configuration of queues; None: that of the cluster's ConfigMap."""
    identity: str = ""
    """The identity of this process in the Lease."""
    speed: float = 1.0
    since: ClockReading | None = None
    is_child: bool = False
    metrics: str | None = None
    """The address of the metrics endpoint, `none`, or None for the default address."""
    profiles: tuple[NamedProfile, ...] = ()
    """The profiles by scheduler name. `builder` builds the first; names without a profile use it as well."""

    operator: OperatorSettings = OperatorSettings()
    cloud: CloudSettings | Ec2Settings | ClusterApiSettings | ExternalGrpcSettings | None = None
    """The cloud that provides nodes; None: no node is provisioned."""
    cloud_access: Access | None = None
    """That of the management cluster of Cluster API; None: the cluster itself."""
    history: Path | None = None
    """The folder of the history of devices; None: nothing is recorded."""
    retention: Retention | None = None
    """How long the history keeps what; None for the defaults."""
    samples_from: PrometheusAddress | None = None
    """The server from which samples of GPUs are read; None: the exporters are read and their samples stored."""
    costs: CostSettings = CostSettings()
    cost_address: tuple[str, int] | None = None
    """Where OpenCost's API is served from the history: host and port."""
    has_kube_state: bool = False
    """The series of kube-state-metrics are served."""
    alerts: AlertTargets | None = None
    """The receivers of alerts, which are evaluated with the history; None: none is evaluated."""
    alert_sources: tuple[str, ...] = ()
    """Addresses of metrics of other processes of Shoal that alerts need."""

    @property
    def is_timed(self) -> bool:
        """Whether what the steps may do depends on how long pods have run or waited."""
        has_later = set(get_args(FreeingStep)) > set(self.own.node_scaling.before_provisioning)
        return has_later or self.own.preemption.min_runtime_s() > 0

    def rule_modes(self) -> RuleModes | None:
        """The modes of the admission rules; None if they are not enabled."""
        if not self.own.admission.enabled:
            return None
        return modes_of(self.own.admission, self.own.webhook.service_namespace)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The names of the schedulers whose pods are placed."""
        ours = (name for part, name in SCHEDULER_OF.items() if part in self.controllers)
        return tuple(dict.fromkeys((*self.own.scheduler_names, *ours)))

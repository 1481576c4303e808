"""The configuration file of `shoal run`: which pods it schedules, by which policy, preemption, node scaling, leader
election.

A document of its own, so that one file may contain it together with what people have already: Kueue's Configuration and
a KubeSchedulerConfiguration. An unknown field is refused here, because a typing error in the one file that says who may
be evicted must not pass in silence.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.admission_settings import AdmissionSettings
from shoal.api.kueue.durations import seconds
from shoal.api.meta import ObjectMeta
from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.api.webhook_rules import WebhookRules
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

RUN_VERSION = "config.shoal.dev/v1alpha1"
RUN_KIND = "ShoalConfiguration"
IN_USE = "shoal.dev/configuration"
"""The annotation of the Lease by which the leader says how it decides, for those who explain its decisions."""
QUEUES_IN_USE = "shoal.dev/queue-configuration"
"""The same of Kueue's Configuration, where a file and not the ConfigMap of the cluster configures the queues."""
_HERE = Where()
_MOST_NAMES = 64
_JITTER = 1.2

Some = Annotated[int, Meta(ge=1, le=4096)]
FreeingStep = Literal["repartition", "consolidate", "reclaim"]
"""A way in which capacity of nodes that exist becomes free for pods that wait."""


class LeaderElectionRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    leader_elect: bool = True
    resource_namespace: str = "kube-system"
    resource_name: str = "shoal"
    lease_duration: str = "7s"
    renew_deadline: str = "5s"
    retry_period: str = "1s"

    def timing_s(self, where: Where = _HERE) -> tuple[float, float, float]:
        lasts = seconds(self.lease_duration, where.below("leaseDuration"))
        renews = seconds(self.renew_deadline, where.below("renewDeadline"))
        again = seconds(self.retry_period, where.below("retryPeriod"))
        if not lasts > renews > again * _JITTER > 0:
            fix = "as in 7s, 5s and 1s"
            what = f"leaseDuration > renewDeadline > {_JITTER} x retryPeriod > 0 must hold"
            raise UserError(what, where=where, fix=fix)
        return lasts, renews, again


class ClientRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """How hard the API server is pushed; it guards itself, and is obeyed when it says 429."""

    requests_per_second: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    """0 is no limit."""
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] = 2000
    connections: Some = 64


class PreemptionRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    victims: Literal[
        "lowest-priority-first", "fewest-victims", "fewest-gpus", "newest-first", "fifo", "least-lost-work"
    ] = "lowest-priority-first"
    min_runtime: str = "0"
    break_budgets: bool = False
    """Disruption budgets give way when there is no other way, as with kube-scheduler."""
    moves: bool = False
    """Whether running pods may be moved so that others fit: they end, and their controllers make them anew."""

    def min_runtime_s(self, where: Where = _HERE) -> float:
        return seconds(self.min_runtime, where.below("minRuntime"))


class NodeScalingRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """What is done before nodes are provisioned, in which order."""

    before_provisioning: tuple[FreeingStep, ...] = ("repartition", "consolidate", "reclaim")
    repartition_timeout: str = "5m"
    consolidate_timeout: str = "5m"
    reclaim_timeout: str = "5m"
    """After these times a node is provisioned although the step would serve the pod."""
    provisioning_time: str = "15m"
    """How long a pod has to wait for a node before a step is taken for it that is not listed."""

    def timeout_s(self, step: FreeingStep, where: Where = _HERE) -> float:
        return seconds(getattr(self, f"{step}_timeout"), where.below(f"{step}Timeout"))

    def provisioning_s(self, where: Where = _HERE) -> float:
        return seconds(self.provisioning_time, where.below("provisioningTime"))

    def check(self, where: Where) -> None:
        listed = self.before_provisioning
        if len(set(listed)) != len(listed):
            raise UserError("names each step once", where=where.below("beforeProvisioning"))
        for step in listed:
            self.timeout_s(step, where)
        self.provisioning_s(where)


class ProjectNamespaces(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """Where other projects are installed: what they are told, and whether they run, is looked for there alone. Objects
    of the same names elsewhere belong to users."""

    kueue: Annotated[str, Meta(min_length=1)] = "kueue-system"
    volcano: Annotated[str, Meta(min_length=1)] = "volcano-system"
    kai: Annotated[str, Meta(min_length=1)] = "kai-scheduler"
    scheduler_plugins: Annotated[str, Meta(min_length=1)] = "scheduler-plugins"


class RunConfiguration(ApiStruct, frozen=True, forbid_unknown_fields=True):
    api_version: str = RUN_VERSION
    kind: str = RUN_KIND
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    scheduler_names: tuple[str, ...] = ("shoal",)
    policy: str = "Shoal"
    controllers: tuple[str, ...] = ()
    """Empty: all."""
    leader_election: LeaderElectionRules = field(default_factory=LeaderElectionRules)
    client: ClientRules = field(default_factory=ClientRules)
    preemption: PreemptionRules = field(default_factory=PreemptionRules)
    node_scaling: NodeScalingRules = field(default_factory=NodeScalingRules)
    webhook: WebhookRules = field(default_factory=WebhookRules)
    namespaces: ProjectNamespaces = field(default_factory=ProjectNamespaces)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    pod_autoscaling: PodAutoscalingRules = field(default_factory=PodAutoscalingRules)

    def check(self, where: Where) -> None:
        names, here = self.scheduler_names, where.below("schedulerNames")
        if not names or not all(names):
            raise UserError("names at least one scheduler", where=here, fix="the usual one is shoal")
        if len(names) > _MOST_NAMES or len(set(names)) != len(names):
            raise UserError(f"at most {_MOST_NAMES} names, each once", where=here)
        self.leader_election.timing_s(where.below("leaderElection"))
        self.preemption.min_runtime_s(where.below("preemption"))
        self.node_scaling.check(where.below("nodeScaling"))
        self.webhook.check(where.below("webhook"))
        self.admission.check(where.below("admission"))
        self.pod_autoscaling.check(where.below("podAutoscaling"))

    def deciding(self) -> RunConfiguration:
        """Only the fields on which decisions depend."""
        return RunConfiguration(
            scheduler_names=self.scheduler_names,
            policy=self.policy,
            preemption=self.preemption,
            node_scaling=self.node_scaling,
            namespaces=self.namespaces,
        )

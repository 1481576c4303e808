"""Starts the controller that provisions and removes nodes, with the cloud that was chosen."""

from __future__ import annotations

from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.client.context import Context
from shoal.client.http.settings import KubeSettings
from shoal.client.port import Api
from shoal.client.presence import CLUSTER_AUTOSCALER, KARPENTER, Presence
from shoal.client.served import Served
from shoal.cloud.cluster_api_settings import ClusterApiSettings
from shoal.cloud.ec2_settings import Ec2Settings, ec2_client, sqs_client
from shoal.cloud.external_grpc_settings import ExternalGrpcSettings
from shoal.cloud.port import Cloud
from shoal.controllers.node_scaling.controller import NodeScalingController
from shoal.controllers.node_scaling.placeholder_pods import PlaceholderPods
from shoal.embedded.cloud.simulated_cloud import SimulatedCloud
from shoal.wiring.process import client_for
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import NODE_SCALING, PLACEHOLDER_PODS, RunChoice
from shoal.wiring.telemetry import Telemetry

_DEFAULT_SCHEDULER = "default-scheduler"


def start_node_scaling(
    tasks: ProcessTasks, context: Context, served: Served, choice: RunChoice, telemetry: Telemetry | None
) -> None:
    cloud = _cloud(tasks, context, choice)
    # The pods of kube-scheduler get nodes too, where it is the scheduler of the cluster.
    schedulers = frozenset({*choice.scheduler_names, _DEFAULT_SCHEDULER})
    freeing = FreeingPolicy.of(choice.own, choice.scheduler_names)
    controller = NodeScalingController(context, served, cloud, schedulers, _others(context), freeing)
    if telemetry is not None:
        telemetry.follow_node_scaling(lambda: controller.figures, controller.observer)
    tasks.start(NODE_SCALING, controller.run)


def start_placeholder_pods(tasks: ProcessTasks, context: Context, served: Served, choice: RunChoice) -> None:
    schedulers = frozenset(choice.scheduler_names)
    controller = PlaceholderPods(context, served, schedulers, _others(context), choice.operator.namespace)
    tasks.start(PLACEHOLDER_PODS, controller.run)


def _others(context: Context) -> list[Presence]:
    return [Presence(context, sign) for sign in (*KARPENTER, CLUSTER_AUTOSCALER)]


def _cloud(tasks: ProcessTasks, context: Context, choice: RunChoice) -> Cloud:
    assert choice.cloud is not None  # noqa: S101 - the caller checks it
    if isinstance(choice.cloud, Ec2Settings):
        from shoal.cloud.ec2 import Ec2Cloud

        return Ec2Cloud(ec2_client(choice.cloud), context.clock, choice.cloud, sqs_client(choice.cloud))
    if isinstance(choice.cloud, ClusterApiSettings):
        from shoal.cloud.cluster_api import ClusterApiCloud

        api: Api = context.api
        if choice.cloud_access is not None:
            # A process that has lost its lease is no danger: each launch is written at the version that was read.
            api = client_for(tasks, choice.cloud_access, KubeSettings(keeps_managed_fields=False))
        return ClusterApiCloud(api, context.clock, choice.cloud)
    if isinstance(choice.cloud, ExternalGrpcSettings):
        from shoal.cloud.external_grpc import ExternalGrpcCloud
        from shoal.cloud.external_grpc_calls import ExternalGrpcCalls
        from shoal.embedded.apiserver.protobuf.messages import read_object

        calls = ExternalGrpcCalls(choice.cloud)
        tasks.at_end(calls.close)
        return ExternalGrpcCloud(calls, context.api, context.clock, lambda data: read_object("v1", "Node", data))
    # The cloud is no user of the cluster: its records are not what the controller may write.
    return SimulatedCloud(tasks.api, context.clock, choice.cloud)

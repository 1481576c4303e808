"""The functions that make the generic controllers, by the names in `controllers.CONTROLLERS`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.client.context import Context, Controller
from shoal.embedded.controllers.bootstrap_tokens.cleaner import token_cleaner
from shoal.embedded.controllers.certificates.approver import csr_approver
from shoal.embedded.controllers.certificates.cleaner import csr_cleaner
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller
from shoal.embedded.controllers.cron_jobs.controller import cron_job_controller
from shoal.embedded.controllers.daemon_sets.controller import daemon_set_controller
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.disruption.controller import disruption_controller, stale_disruption_controller
from shoal.embedded.controllers.endpoint_slices.controller import endpoint_controller, endpoint_slice_controller
from shoal.embedded.controllers.garbage.collector import garbage_collector
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.controllers.pod_garbage.controller import pod_garbage_collector
from shoal.embedded.controllers.replicas.controller import replica_set_controller, replication_controller
from shoal.embedded.controllers.service_accounts.accounts import service_account_controller
from shoal.embedded.controllers.stateful_sets.controller import stateful_set_controller
from shoal.embedded.controllers.taint_eviction.controller import taint_eviction_controller
from shoal.embedded.controllers.ttl.controller import ttl_after_finished_controller
from shoal.embedded.controllers.volumes.controller import (
    claim_protection,
    volume_binder,
    volume_protection,
    volume_provisioner,
)
from shoal.embedded.controllers.volumes.ephemeral import ephemeral_volume_controller
from shoal.embedded.scheduler.controller import default_scheduler
from shoal.wiring.controllers import CONTROLLERS, DEFAULT_SCHEDULER

MAKERS: dict[str, Callable[[Context], Controller]] = {
    DEFAULT_SCHEDULER: default_scheduler,
    "job": job_controller,
    "cronjob": cron_job_controller,
    "ttl-after-finished": ttl_after_finished_controller,
    "replicaset": replica_set_controller,
    "replicationcontroller": replication_controller,
    "deployment": deployment_controller,
    "statefulset": stateful_set_controller,
    "daemonset": daemon_set_controller,
    "garbagecollector": garbage_collector,
    "namespace": namespace_controller,
    "nodelifecycle": node_lifecycle_controller,
    "taint-eviction": taint_eviction_controller,
    "podgc": pod_garbage_collector,
    "serviceaccount": service_account_controller,
    "disruption": disruption_controller,
    "stale-disruption": stale_disruption_controller,
    "endpointslice": endpoint_slice_controller,
    "endpoint": endpoint_controller,
    "persistentvolume-binder": volume_binder,
    "persistentvolume-provisioner": volume_provisioner,
    "persistentvolumeclaim-protection": claim_protection,
    "persistentvolume-protection": volume_protection,
    "ephemeral-volume": ephemeral_volume_controller,
    "resourceclaim": resource_claim_controller,
    "csrapproving": csr_approver,
    "csrcleaner": csr_cleaner,
    "token-cleaner": token_cleaner,
}


def make(name: str, context: Context) -> Controller:
    row = CONTROLLERS[name]
    if row.reporter:
        context = msgspec.structs.replace(context, events=context.events.named(row.reporter))
    return MAKERS[name](context)

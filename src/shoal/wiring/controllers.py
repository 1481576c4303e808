"""Which controllers there are: the readable list. Each is made from a context, some from a secret of the server too.

The user of a controller is what Kubernetes calls it, so that its own roles say what it may do.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from shoal.store.live.context import Context, Controller

if TYPE_CHECKING:
    from shoal.cluster.server.plane import Plane
    from shoal.store.live.item import Obj


class Row(msgspec.Struct, frozen=True):
    user: str
    """A service account in kube-system, or a user where it has a colon."""
    maker: str
    """Below `shoal.controllers`; imported when it is started."""
    reporter: str = ""
    """What its Events are signed with, where that is not its name."""


_SCHEDULER, _TOKENS = "system:kube-scheduler", "system:kube-controller-manager"
DEFAULT_SCHEDULER = "default-scheduler"
CONTROLLERS: dict[str, Row] = {
    DEFAULT_SCHEDULER: Row(_SCHEDULER, "default_scheduler.controller:default_scheduler"),
    "job": Row("job-controller", "jobs.controller:job_controller", "job-controller"),
    "cronjob": Row("cronjob-controller", "cron_jobs.controller:cron_job_controller", "cronjob-controller"),
    "ttl-after-finished": Row("ttl-after-finished-controller", "ttl.controller:ttl_after_finished_controller"),
    "replicaset": Row("replicaset-controller", "replicas.controller:replica_set_controller", "replicaset-controller"),
    "replicationcontroller": Row(
        "replication-controller", "replicas.controller:replication_controller", "replication-controller"
    ),
    "deployment": Row("deployment-controller", "deployments.controller:deployment_controller", "deployment-controller"),
    "statefulset": Row(
        "statefulset-controller", "stateful_sets.controller:stateful_set_controller", "statefulset-controller"
    ),
    "daemonset": Row("daemon-set-controller", "daemon_sets.controller:daemon_set_controller"),
    "garbagecollector": Row("generic-garbage-collector", "garbage.collector:garbage_collector"),
    "namespace": Row("namespace-controller", "namespaces.controller:namespace_controller"),
    "nodelifecycle": Row("node-controller", "node_lifecycle.controller:node_lifecycle_controller"),
    "taint-eviction": Row("node-controller", "taint_eviction.controller:taint_eviction_controller"),
    "podgc": Row("pod-garbage-collector", "pod_garbage.controller:pod_garbage_collector"),
    "serviceaccount": Row("service-account-controller", "service_accounts.accounts:service_account_controller"),
    "disruption": Row("disruption-controller", "disruption.controller:disruption_controller", "controllermanager"),
    "stale-disruption": Row("disruption-controller", "disruption.controller:stale_disruption_controller"),
    "endpointslice": Row(
        "endpointslice-controller", "endpoint_slices.controller:endpoint_slice_controller", "endpoint-slice-controller"
    ),
    "endpoint": Row("endpoint-controller", "endpoint_slices.controller:endpoint_controller", "endpoint-controller"),
    "persistentvolume-binder": Row(
        "persistent-volume-binder", "volumes.controller:volume_binder", "persistentvolume-controller"
    ),
    "persistentvolume-provisioner": Row("persistent-volume-binder", "volumes.controller:volume_provisioner"),
    "persistentvolumeclaim-protection": Row("pvc-protection-controller", "volumes.controller:claim_protection"),
    "persistentvolume-protection": Row("pv-protection-controller", "volumes.controller:volume_protection"),
    "ephemeral-volume": Row("ephemeral-volume-controller", "volumes.ephemeral:ephemeral_volume_controller"),
    "resourceclaim": Row("resource-claim-controller", "claim_templates.controller:resource_claim_controller"),
    "csrapproving": Row("certificate-controller", "certificates.approver:csr_approver"),
    "csrcleaner": Row("certificate-controller", "certificates.cleaner:csr_cleaner"),
    "token-cleaner": Row("token-cleaner", "bootstrap_tokens.cleaner:token_cleaner"),
}
"""By the name that Kubernetes' controller-manager gives them on its command line."""


def make(name: str, context: Context) -> Controller:
    row = CONTROLLERS[name]
    if row.reporter:
        context = msgspec.structs.replace(context, events=context.events.named(row.reporter))
    module, _, function = row.maker.partition(":")
    maker: Callable[[Context], Controller] = getattr(import_module(f"shoal.controllers.{module}"), function)
    return maker(context)


def own_controllers(plane: Plane) -> dict[str, tuple[str, Callable[[Context], Controller]]]:
    """User and maker of those that need the server's own keys, and so run only beside it."""
    from shoal.cluster.security.service_accounts import Holder, TokenSigner
    from shoal.controllers.certificates.authority import authority_signer
    from shoal.controllers.certificates.signer import csr_signer
    from shoal.controllers.service_accounts.root_certificate import root_certificate_publisher
    from shoal.controllers.service_accounts.token_secrets import token_secrets_controller

    authority = plane.authority
    root, signer = authority.root_certificate, TokenSigner(authority.signing_key)

    def token(account: Obj, secret: Obj) -> str:
        meta = account["metadata"]
        return signer.issue_legacy(Holder(meta["namespace"], meta["name"], meta["uid"]), secret["metadata"]["name"])

    def today() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - certificates want the date

    def sign_requests(context: Context) -> Controller:
        return csr_signer(context, authority_signer(authority.root.certificate, authority.root.key, today))

    return {
        "csrsigning": ("certificate-controller", sign_requests),
        "root-ca-cert-publisher": ("root-ca-cert-publisher", lambda one: root_certificate_publisher(one, root)),
        "serviceaccount-token": (_TOKENS, lambda one: token_secrets_controller(one, token, root)),
    }

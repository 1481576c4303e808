"""Lists the generic controllers by name, with the users that they act as.

The user of a controller is the one that Kubernetes uses, so that Kubernetes' own roles grant its permissions.
`own_controllers` are those that need the server's keys, or more of it than the operations on objects.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from shoal.client.context import Context, Controller

if TYPE_CHECKING:
    from shoal.client.item import Obj
    from shoal.embedded.apiserver.calls import Actor
    from shoal.embedded.apiserver.server.control_plane import ControlPlane


class ControllerEntry(msgspec.Struct, frozen=True):
    user: str
    """A ServiceAccount in kube-system, or a user if the name contains a colon."""
    reporter: str = ""
    """The source of its Events, if that is not its name."""


_SCHEDULER, _TOKENS = "system:kube-scheduler", "system:kube-controller-manager"
_AUTOSCALER = "horizontal-pod-autoscaler"
_ACCOUNTS, _AUTHENTICATED = "system:serviceaccounts", "system:authenticated"
DEFAULT_SCHEDULER = "default-scheduler"
CONTROLLERS: dict[str, ControllerEntry] = {
    DEFAULT_SCHEDULER: ControllerEntry(_SCHEDULER),
    "job": ControllerEntry("job-controller", "job-controller"),
    "cronjob": ControllerEntry("cronjob-controller", "cronjob-controller"),
    "ttl-after-finished": ControllerEntry("ttl-after-finished-controller"),
    "replicaset": ControllerEntry("replicaset-controller", "replicaset-controller"),
    "replicationcontroller": ControllerEntry("replication-controller", "replication-controller"),
    "deployment": ControllerEntry("deployment-controller", "deployment-controller"),
    "statefulset": ControllerEntry("statefulset-controller", "statefulset-controller"),
    "daemonset": ControllerEntry("daemon-set-controller"),
    "garbagecollector": ControllerEntry("generic-garbage-collector"),
    "namespace": ControllerEntry("namespace-controller"),
    "nodelifecycle": ControllerEntry("node-controller"),
    "taint-eviction": ControllerEntry("node-controller"),
    "podgc": ControllerEntry("pod-garbage-collector"),
    "serviceaccount": ControllerEntry("service-account-controller"),
    "disruption": ControllerEntry("disruption-controller", "controllermanager"),
    "stale-disruption": ControllerEntry("disruption-controller"),
    "endpointslice": ControllerEntry("endpointslice-controller", "endpoint-slice-controller"),
    "endpoint": ControllerEntry("endpoint-controller", "endpoint-controller"),
    "persistentvolume-binder": ControllerEntry("persistent-volume-binder", "persistentvolume-controller"),
    "persistentvolume-provisioner": ControllerEntry("persistent-volume-binder"),
    "persistentvolumeclaim-protection": ControllerEntry("pvc-protection-controller"),
    "persistentvolume-protection": ControllerEntry("pv-protection-controller"),
    "ephemeral-volume": ControllerEntry("ephemeral-volume-controller"),
    "resourceclaim": ControllerEntry("resource-claim-controller"),
    "csrapproving": ControllerEntry("certificate-controller"),
    "csrcleaner": ControllerEntry("certificate-controller"),
    "token-cleaner": ControllerEntry("token-cleaner"),
}
"""By the names on the command line of kube-controller-manager."""


def controller_actor(user: str) -> Actor:
    """A ServiceAccount of kube-system, or a user whose name contains a colon."""
    from shoal.embedded.apiserver.calls import Actor

    if ":" in user:
        return Actor(user, (_AUTHENTICATED,))
    name = f"system:serviceaccount:kube-system:{user}"
    return Actor(name, (_ACCOUNTS, f"{_ACCOUNTS}:kube-system", _AUTHENTICATED))


def own_controllers(plane: ControlPlane) -> dict[str, tuple[str, Callable[[Context], Controller]]]:
    """User and maker of the controllers that run only in the server's process: those that need its own keys, and the
    autoscaler, which writes scales and asks the metrics APIs."""
    from shoal.embedded.apiserver.inside.scaling import InsideScaling
    from shoal.embedded.apiserver.security.service_accounts import TokenSigner, TokenSubject
    from shoal.embedded.controllers.autoscalers.controller import autoscaler_controller
    from shoal.embedded.controllers.certificates.authority import authority_signer
    from shoal.embedded.controllers.certificates.signer import csr_signer
    from shoal.embedded.controllers.service_accounts.root_certificate import root_certificate_publisher
    from shoal.embedded.controllers.service_accounts.token_secrets import token_secrets_controller

    authority = plane.authority
    root, signer = authority.root_certificate, TokenSigner(authority.signing_key)

    def token(account: Obj, secret: Obj) -> str:
        meta = account["metadata"]
        return signer.issue_legacy(
            TokenSubject(meta["namespace"], meta["name"], meta["uid"]), secret["metadata"]["name"]
        )

    def today() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - certificates need the date

    def sign_requests(context: Context) -> Controller:
        return csr_signer(context, authority_signer(authority.root.certificate, authority.root.key, today))

    def follow_metrics(context: Context) -> Controller:
        named = msgspec.structs.replace(context, events=context.events.named(_AUTOSCALER))
        return autoscaler_controller(named, InsideScaling(plane, controller_actor(_AUTOSCALER), context.name))

    return {
        "horizontalpodautoscaling": (_AUTOSCALER, follow_metrics),
        "csrsigning": ("certificate-controller", sign_requests),
        "root-ca-cert-publisher": ("root-ca-cert-publisher", lambda one: root_certificate_publisher(one, root)),
        "serviceaccount-token": (_TOKENS, lambda one: token_secrets_controller(one, token, root)),
    }

"""Lists the generic controllers by name, with the users that they act as.

The user of a controller is the one that Kubernetes uses, so that Kubernetes' own roles grant its permissions.
`own_controllers` are those that need the server's keys.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from shoal.client.context import Context, Controller

if TYPE_CHECKING:
    from shoal.client.item import Obj
    from shoal.embedded.apiserver.server.control_plane import ControlPlane


class Row(msgspec.Struct, frozen=True):
    user: str
    """A service account in kube-system, or a user where it has a colon."""
    reporter: str = ""
    """What its Events are signed with, where that is not its name."""


_SCHEDULER, _TOKENS = "system:kube-scheduler", "system:kube-controller-manager"
DEFAULT_SCHEDULER = "default-scheduler"
CONTROLLERS: dict[str, Row] = {
    DEFAULT_SCHEDULER: Row(_SCHEDULER),
    "job": Row("job-controller", "job-controller"),
    "cronjob": Row("cronjob-controller", "cronjob-controller"),
    "ttl-after-finished": Row("ttl-after-finished-controller"),
    "replicaset": Row("replicaset-controller", "replicaset-controller"),
    "replicationcontroller": Row("replication-controller", "replication-controller"),
    "deployment": Row("deployment-controller", "deployment-controller"),
    "statefulset": Row("statefulset-controller", "statefulset-controller"),
    "daemonset": Row("daemon-set-controller"),
    "garbagecollector": Row("generic-garbage-collector"),
    "namespace": Row("namespace-controller"),
    "nodelifecycle": Row("node-controller"),
    "taint-eviction": Row("node-controller"),
    "podgc": Row("pod-garbage-collector"),
    "serviceaccount": Row("service-account-controller"),
    "disruption": Row("disruption-controller", "controllermanager"),
    "stale-disruption": Row("disruption-controller"),
    "endpointslice": Row("endpointslice-controller", "endpoint-slice-controller"),
    "endpoint": Row("endpoint-controller", "endpoint-controller"),
    "persistentvolume-binder": Row("persistent-volume-binder", "persistentvolume-controller"),
    "persistentvolume-provisioner": Row("persistent-volume-binder"),
    "persistentvolumeclaim-protection": Row("pvc-protection-controller"),
    "persistentvolume-protection": Row("pv-protection-controller"),
    "ephemeral-volume": Row("ephemeral-volume-controller"),
    "resourceclaim": Row("resource-claim-controller"),
    "csrapproving": Row("certificate-controller"),
    "csrcleaner": Row("certificate-controller"),
    "token-cleaner": Row("token-cleaner"),
}
"""By the name that Kubernetes' controller-manager gives them on its command line."""


def own_controllers(plane: ControlPlane) -> dict[str, tuple[str, Callable[[Context], Controller]]]:
    """User and maker of those that need the server's own keys, and so run only beside it."""
    from shoal.embedded.apiserver.security.service_accounts import Holder, TokenSigner
    from shoal.embedded.controllers.certificates.authority import authority_signer
    from shoal.embedded.controllers.certificates.signer import csr_signer
    from shoal.embedded.controllers.service_accounts.root_certificate import root_certificate_publisher
    from shoal.embedded.controllers.service_accounts.token_secrets import token_secrets_controller

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

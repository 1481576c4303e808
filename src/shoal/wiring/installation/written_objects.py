"""What processes of Shoal write while they run: admission policies, the webhook, metrics APIs, Leases."""

from __future__ import annotations

from shoal.client.kind import API_SERVICES, LEASES, SECRETS, Kind
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.data.permissions import ELECTION_NAMESPACE, POD_AUTOSCALING
from shoal.install.objects.certificates import AUTHORITY, CERTIFICATE_SECRET
from shoal.install.release import MANAGED_BY, PART
from shoal.wiring.installation.cluster_writer import ClusterWriter

_ADMISSION = "admissionregistration.k8s.io"
_KINDS = tuple(
    Kind(_ADMISSION, version, plural, name, is_namespaced=False)
    for version, plural, name in (
        ("v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        ("v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        ("v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        ("v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("v1beta1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        ("v1beta1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        ("v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    )
)
_GATEKEEPING = f"{MANAGED_BY}=shoal,{PART}=gatekeeping"
_PAPERS = "shoal-webhook-papers"
_SCALING = f"{MANAGED_BY}=shoal,{PART}={POD_AUTOSCALING}"
_LEASES = ("shoal", "shoal-operator", f"shoal-{POD_AUTOSCALING}", "shoal-history")


async def written_objects(writer: ClusterWriter) -> list[tuple[Kind, str, str]]:
    """Kind, namespace and name of those that exist, in the order of their removal; without the certificate."""
    found: list[tuple[Kind, str, str]] = []
    # An APIService whose server is gone keeps namespaces from being deleted.
    for kind, labels in (*((one, _GATEKEEPING) for one in _KINDS), (API_SERVICES, _SCALING)):
        try:
            found += [(kind, "", one["metadata"]["name"]) for one in await writer.all(kind, labels)]
        except ForbiddenError:
            continue
    for name in _LEASES:
        if await _exists(writer, name):
            found.append((LEASES, ELECTION_NAMESPACE, name))
    return found


async def _exists(writer: ClusterWriter, lease: str) -> bool:
    try:
        await writer.patiently(lambda: writer.api.get(LEASES, ELECTION_NAMESPACE, lease))
    except (NotFoundError, ForbiddenError):
        return False
    return True


async def remove_written_objects(writer: ClusterWriter, namespace: str) -> None:
    """After the processes have ended: the API server must not ask a webhook that is gone."""
    secrets = ((SECRETS, namespace, name) for name in (_PAPERS, CERTIFICATE_SECRET, AUTHORITY))
    for kind, inside, name in (*await written_objects(writer), *secrets):
        await _delete(writer, kind, inside, name)


async def _delete(writer: ClusterWriter, kind: Kind, namespace: str, name: str) -> None:
    try:
        await writer.patiently(lambda: writer.api.delete(kind, namespace, name))
    except NotFoundError:
        return

"""Validates the status that a kubelet writes: valid addresses, claims of the pod, no terminated container that runs
again.

The address that a pod is reached by is given twice, alone and first in a list; older kubelets write only the former, so
that one wins where the two differ.
"""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed
from shoal.embedded.apiserver.kinds.addresses import family
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.pods.update import check_pod_annotations
from shoal.embedded.apiserver.kinds.spellings import address_faults, subdomain_faults


def settle_addresses(status: Obj) -> None:
    """The same address in both places."""
    alone, listed = status.get("podIP"), status.get("podIPs")
    if alone:
        if not listed or listed[0].get("ip") != alone:
            status["podIPs"] = [{"ip": alone}]
    elif listed:
        status["podIP"] = listed[0].get("ip", "")


def check_pod_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    check_pod_annotations(new, old, errors)
    status, before = new.get("status") or {}, old.get("status") or {}
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName"):
        add_faults(errors, "status.nominatedNodeName", nominated, subdomain_faults(nominated))
    policy = old["spec"].get("restartPolicy")
    for key in ("containerStatuses", "initContainerStatuses"):
        if before.get(key):
            _check_revived(status.get(key) or [], before[key], policy, f"status.{key}", errors)
    if (claims := status.get("resourceClaimStatuses")) and claims != before.get("resourceClaimStatuses"):
        _check_claims(claims, old["spec"].get("resourceClaims") or [], errors)
    if (addresses := status.get("podIPs")) and addresses != before.get("podIPs"):
        _check_addresses(addresses, before.get("podIPs") or [], "status.podIPs", errors)
    if addresses := status.get("hostIPs"):
        _check_host(status.get("hostIP", ""), addresses, before.get("hostIPs") or [], errors)
    return errors


def _check_host(alone: str, addresses: list[Obj], before: list[Obj], errors: Errors) -> None:
    first = addresses[0].get("ip", "")
    if alone != first:
        errors.append(bad_value("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    if addresses != before:
        _check_addresses(addresses, before, "status.hostIPs", errors)


def _check_addresses(addresses: list[Obj], before: list[Obj], path: str, errors: Errors) -> None:
    """What is no address but was there before may stay."""
    texts, known = [one.get("ip", "") for one in addresses], {one.get("ip", "") for one in before}
    for place, text in enumerate(texts):
        if text not in known:
            add_faults(errors, f"{path}[{place}]", text, address_faults(text))
    if len(texts) > 1 and sorted(map(family, texts)) != ["IPv4", "IPv6"]:
        errors.append(bad_value(path, addresses, "may specify no more than one IP for each IP family"))


def _check_claims(statuses: list[Obj], claims: list[Obj], errors: Errors) -> None:
    known, seen = {claim.get("name") for claim in claims}, set[str]()
    for place, one in enumerate(statuses):
        path, name = f"status.resourceClaimStatuses[{place}].name", one.get("name", "")
        if name not in known:
            errors.append(bad_value(path, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        if made := one.get("resourceClaimName"):
            add_faults(errors, path, made, subdomain_faults(made))


def _check_revived(new: list[Obj], old: list[Obj], policy: str, path: str, errors: Errors) -> None:
    """What ended and is not restarted stays ended."""
    if policy == "Always":
        return
    after = {one.get("name"): one.get("state") or {} for one in new}
    for place, former in enumerate(old):
        ended = (former.get("state") or {}).get("terminated")
        if not ended or (ended.get("exitCode") and policy == "OnFailure"):
            continue
        name = former.get("name")
        if name in after and not after[name].get("terminated"):
            words = "may not be transitioned to non-terminated state"
            errors.append(not_allowed(f"{path}[{place}].state", words))

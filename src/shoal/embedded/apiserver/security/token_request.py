"""A token for a service account, made on request: `serviceaccounts/NAME/token`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shoal.embedded.apiserver import field_errors, status
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.security.service_accounts import DEFAULT_AUDIENCES, Bound, TokenSigner, TokenSubject

Obj = dict[str, Any]
_DEFAULT_S = 3600
_SHORTEST_S = 600
_LONGEST_S = 1 << 32
_PLURALS = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets", ("v1", "Node"): "nodes"}


def token_request(obj: Obj, account: Obj, signer: TokenSigner, reader: Reader, now_s: int) -> Obj:
    """The request with its status; the account is the stored object."""
    spec = obj.get("spec") or {}
    lifetime_s = _DEFAULT_S if spec.get("expirationSeconds") is None else int(spec["expirationSeconds"])
    _check_lifetime(lifetime_s)
    metadata = account["metadata"]
    said = (obj.get("metadata") or {}).get("name") or metadata["name"]
    if said != metadata["name"]:
        fault = field_errors.bad_value("metadata.name", said, "must match the service account name if specified")
        raise status.invalid("TokenRequest", "authentication.k8s.io", metadata["name"], [fault])
    reference = spec.get("boundObjectRef")
    bound = None if not reference else _bound(reference, metadata, reader)
    audiences = list(spec.get("audiences") or DEFAULT_AUDIENCES)
    holder = TokenSubject(metadata["namespace"], metadata["name"], metadata.get("uid") or "")
    token = signer.issue(holder, audiences, now_s, lifetime_s, bound)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "creationTimestamp": _instant(now_s),
        },
        "spec": {"audiences": audiences, "expirationSeconds": lifetime_s, "boundObjectRef": reference or None},
        "status": {"token": token, "expirationTimestamp": _instant(now_s + lifetime_s)},
    }


def _check_lifetime(lifetime_s: int) -> None:
    words = ""
    if lifetime_s < _SHORTEST_S:
        words = "may not specify a duration less than 10 minutes"
    elif lifetime_s > _LONGEST_S:
        words = "may not specify a duration larger than 2^32 seconds"
    if words:
        fault = field_errors.bad_value("spec.expirationSeconds", lifetime_s, words)
        raise status.invalid("TokenRequest", "authentication.k8s.io", "", [fault])


def _bound(reference: Obj, account: Obj, reader: Reader) -> Bound:
    version, kind, name = reference.get("apiVersion") or "", reference.get("kind") or "", reference.get("name") or ""
    plural = _PLURALS.get((version, kind))
    if plural is None:
        group_version = version if "/" in version else f"/{version}"
        raise status.bad_request(f"cannot bind token to object of type {group_version}, Kind={kind}")
    found = reader.get("", plural, "" if kind == "Node" else account["namespace"], name)
    if found is None:
        raise status.not_found(plural, "", name)
    uid = found["metadata"].get("uid") or ""
    if reference.get("uid") and reference["uid"] != uid:
        words = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(kind, "", name, words)
    node_name = node_uid = ""
    if kind == "Pod":
        spec = found.get("spec") or {}
        if (spec.get("serviceAccountName") or "default") != account["name"]:
            what = f"cannot bind token for serviceaccount {field_errors.shown(account['name'])}"
            raise status.bad_request(f"{what} to pod running with different serviceaccount name.")
        node_name = spec.get("nodeName") or ""
        node = reader.get("", "nodes", "", node_name) if node_name else None
        node_uid = (node or {}).get("metadata", {}).get("uid") or ""
    return Bound(kind, name, uid, node_name, node_uid)


def _instant(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

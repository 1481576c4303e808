"""Authorities, accounts and pods for tests about who somebody is."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from shoal.embedded.apiserver.security.authority import Authority, open_authority

Obj = dict[str, Any]
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
NOW_S = int(NOW.timestamp())


@cache
def authority() -> Authority:
    """One for all tests that only look: making one costs as much as a test."""
    return open_authority(None, NOW)


def account(namespace: str, name: str, uid: str = "account-uid") -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
    }


def running_pod(namespace: str, name: str, account_name: str, uid: str = "pod-uid", node: str = "") -> Obj:
    spec: Obj = {"serviceAccountName": account_name}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

"""Chooses the cluster when none is named, in kubectl's order: KUBECONFIG, ~/.kube/config, the pod's service account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from shoal.client.http.access import Access
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.units.errors import UserError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def locate(
    kubeconfig: Path | None = None,
    context: str = "",
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """`kubeconfig`: a requested file, which must exist."""
    if kubeconfig is not None:
        return read_kubeconfig([kubeconfig], context)
    named = [Path(part).expanduser() for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    usual = Path(environment.get("HOME") or Path.home()) / ".kube" / "config"
    files = named or ([usual] if usual.exists() else [])
    if files:
        return read_kubeconfig(files, context)
    inside = in_cluster(environment, service_account)
    if inside is not None and not context:
        return inside
    raise UserError("no cluster is known", fix="name a kubeconfig with --kubeconfig or KUBECONFIG, or run `shoal up`")


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access | None:
    """The API server of the pod's cluster; None outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    token = folder / "token"
    if not host or not token.exists():
        return None
    authority, namespace = folder / "ca.crt", folder / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        where=f"the service account in {folder}",
        authority=authority.read_text() if authority.exists() else "",
        authority_file=authority if authority.exists() else None,
        token_file=token,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )

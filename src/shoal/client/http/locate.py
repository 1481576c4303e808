"""Chooses the cluster when none is named, in kubectl's order: KUBECONFIG, ~/.kube/config, the pod's service account.

A caller that knows a further cluster (the one of `shoal up`) names it as `fallback`. It is used where neither
KUBECONFIG nor ~/.kube/config names a cluster, so that Shoal and kubectl use the same cluster wherever kubectl has one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import structs

from shoal.client.http.access import Access
from shoal.client.http.kubeconfig import KubeconfigChoice, has_context, read_kubeconfig
from shoal.client.http.kubeconfig import context_names as names_in
from shoal.units.errors import UserError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
Fallback = Callable[[], Path | None]
"""The kubeconfig of a further cluster, if it runs."""


def locate(
    kubeconfig: Path | None = None,
    choice: KubeconfigChoice | str = "",
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    fallback: Fallback = lambda: None,
) -> Access:
    """`kubeconfig`: a requested file, which must exist."""
    choice = KubeconfigChoice(choice) if isinstance(choice, str) else choice
    if kubeconfig is not None:
        return _read([kubeconfig], choice, "--kubeconfig")
    named, usual = _named(environment), _usual(environment)
    if named:
        return _read(named, choice, "KUBECONFIG")
    is_there = usual.exists()
    if is_there and has_context([usual], choice.context):
        return _read([usual], choice, "~/.kube/config")
    own = fallback()
    if own is not None and has_context([own], choice.context):
        return _read([own], choice, "`shoal up`")
    inside = in_cluster(environment, service_account)
    if inside is not None and not choice.context:
        return inside
    if is_there:
        return _read([usual], choice, "~/.kube/config")
    raise UserError("no cluster is known", fix="name a kubeconfig with --kubeconfig or KUBECONFIG, or run `shoal up`")


def context_names(kubeconfig: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The contexts of the kubeconfig files that `locate` would read."""
    return names_in([kubeconfig] if kubeconfig is not None else _named(environment) or [_usual(environment)])


def _named(environment: Mapping[str, str]) -> list[Path]:
    return [Path(part).expanduser() for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]


def _usual(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path.home()) / ".kube" / "config"


def _read(files: list[Path], choice: KubeconfigChoice, origin: str) -> Access:
    return structs.replace(read_kubeconfig(files, choice), origin=origin)


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
        origin="the pod's service account",
        authority=authority.read_text() if authority.exists() else "",
        authority_file=authority if authority.exists() else None,
        token_file=token,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )

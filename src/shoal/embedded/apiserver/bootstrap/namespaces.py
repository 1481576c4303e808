"""The first namespaces, and what every namespace gets: an account to run as, and the certificate to trust."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed

FIRST = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAMESPACE = ("v1", "Namespace", "namespaces")
_ACCOUNT = ("v1", "ServiceAccount", "serviceaccounts")
_CONFIG_MAP = ("v1", "ConfigMap", "configmaps")


def first_namespaces(root_certificate: str) -> Iterator[Seed]:
    for name in FIRST:
        labels = {"kubernetes.io/metadata.name": name}
        yield seed(_NAMESPACE, name, labels=labels, spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"})
        yield from namespace_defaults(name, root_certificate)


def namespace_defaults(namespace: str, root_certificate: str) -> Iterator[Seed]:
    """The objects in a namespace soon after it was made; in Kubernetes controllers put it there."""
    yield seed(_ACCOUNT, "default", namespace)
    yield seed(_CONFIG_MAP, "kube-root-ca.crt", namespace, data={"ca.crt": root_certificate})

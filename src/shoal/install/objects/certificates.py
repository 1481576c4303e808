"""The certificate of the webhook where cert-manager creates and renews it: a Certificate and its issuers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
WEBHOOK_SERVICE = "shoal-webhook"
CERTIFICATE = WEBHOOK_SERVICE
CERTIFICATE_SECRET = "shoal-webhook-cert"  # noqa: S105 - the name of the Secret
CERTIFICATE_FOLDER = "/etc/shoal-webhook"
AUTHORITY = "shoal-webhook-ca"
"""The Certificate of the authority, and its Secret."""
_ROOT = "shoal-webhook-root"
_AUTHORITY_LIFE = "17520h0m0s"
_GROUP = "cert-manager.io/v1"


def has_issued_certificate(values: ChartValues) -> bool:
    """Whether cert-manager maintains the certificate."""
    return bool(values.get("webhook.enabled")) and values.get("webhook.certificates") == "cert-manager"


def certificate_objects(release: Release, values: ChartValues) -> Iterator[Obj]:
    """Without labels."""
    if not has_issued_certificate(values):
        return
    issuer = values.get("webhook.issuerRef")
    if not issuer:
        yield from _own_authority(release)
    host = f"{WEBHOOK_SERVICE}.{release.namespace}.svc"
    spec = {
        "secretName": CERTIFICATE_SECRET,
        "dnsNames": [host, f"{host}.cluster.local"],
        "issuerRef": issuer or _issuer(CERTIFICATE),
        "privateKey": {"rotationPolicy": "Always"},
    }
    yield _object("Certificate", release, CERTIFICATE, spec)


def _own_authority(release: Release) -> Iterator[Obj]:
    """An authority that keeps its key: a renewed certificate is trusted before each process presents it."""
    spec = {
        "isCA": True,
        "commonName": AUTHORITY,
        "secretName": AUTHORITY,
        "duration": _AUTHORITY_LIFE,
        "issuerRef": _issuer(_ROOT),
        "privateKey": {"rotationPolicy": "Never"},
    }
    yield _object("Issuer", release, _ROOT, {"selfSigned": {}})
    yield _object("Certificate", release, AUTHORITY, spec)
    yield _object("Issuer", release, CERTIFICATE, {"ca": {"secretName": AUTHORITY}})


def _issuer(name: str) -> Obj:
    return {"name": name, "kind": "Issuer", "group": "cert-manager.io"}


def _object(kind: str, release: Release, name: str, spec: Obj) -> Obj:
    meta = {"name": name, "namespace": release.namespace}
    return {"apiVersion": _GROUP, "kind": kind, "metadata": meta, "spec": spec}

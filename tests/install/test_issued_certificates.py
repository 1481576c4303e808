"""With cert-manager the certificate of the webhook is an object, and Shoal has no right on Secrets."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shoal.install.manifest import manifest
from shoal.install.preflight.checks import findings
from shoal.install.preflight.facts import ClusterFacts, DefinitionFacts, Finding
from shoal.install.readiness import waits_for
from shoal.install.release import Release
from shoal.install.values.reading import ValuesText, read_values

Obj = dict[str, Any]
RELEASE = Release("shoal", "gpus", "0.2.0")
ISSUED = "{webhook: {certificates: cert-manager}}"


def _objects(text: str = ISSUED) -> list[Obj]:
    return manifest(RELEASE, read_values([ValuesText("--values", text, "values.yaml")]))


def _of(kind: str, name: str, text: str = ISSUED) -> Obj:
    (found,) = [one for one in _objects(text) if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def test_the_certificate_is_for_the_service_and_signed_by_an_authority_that_keeps_its_key() -> None:
    spec = _of("Certificate", "shoal-webhook")["spec"]
    assert spec["dnsNames"] == ["shoal-webhook.gpus.svc", "shoal-webhook.gpus.svc.cluster.local"]
    assert _of("Issuer", "shoal-webhook")["spec"] == {"ca": {"secretName": "shoal-webhook-ca"}}
    authority = _of("Certificate", "shoal-webhook-ca")["spec"]
    assert (authority["isCA"], authority["privateKey"]) == (True, {"rotationPolicy": "Never"})
    assert authority["issuerRef"]["name"] == _of("Issuer", "shoal-webhook-root")["metadata"]["name"]


def test_a_named_issuer_replaces_the_own_authority() -> None:
    text = "{webhook: {certificates: cert-manager, issuerRef: {name: ca, kind: ClusterIssuer}}}"
    made = [one for one in _objects(text) if one["apiVersion"] == "cert-manager.io/v1"]
    assert [one["metadata"]["name"] for one in made] == ["shoal-webhook"]
    assert made[0]["spec"]["issuerRef"] == {"name": "ca", "kind": "ClusterIssuer"}


def test_the_pods_read_the_secret_as_a_file_and_may_read_no_secret_by_the_api() -> None:
    pod = _of("Deployment", "shoal")["spec"]["template"]["spec"]
    assert {"name": "certificate", "secret": {"secretName": "shoal-webhook-cert"}} in pod["volumes"]
    config = yaml.safe_load(_of("ConfigMap", "shoal-config")["data"]["config.yaml"])["webhook"]
    assert (config["certificateFolder"], config["injectedFrom"]) == ("/etc/shoal-webhook", "gpus/shoal-webhook")

    def of_shoal(text: str) -> set[str]:
        roles = [one for one in _objects(text) if one["metadata"]["name"] == "shoal-gatekeeper" and "rules" in one]
        return {name for one in roles for rule in one["rules"] for name in rule["resources"]}

    assert "secrets" in of_shoal("{}")
    assert "secrets" not in of_shoal(ISSUED)
    assert "services" in of_shoal(ISSUED)


@pytest.mark.parametrize("text", ["{}", "{webhook: {certificates: cert-manager, enabled: false}}"])
def test_without_cert_manager_or_webhook_there_is_no_object_of_it(text: str) -> None:
    assert not [one for one in _objects(text) if one["apiVersion"] == "cert-manager.io/v1"]
    assert "certificateFolder" not in _of("ConfigMap", "shoal-config", text)["data"]["config.yaml"]


def _found(*definitions: DefinitionFacts) -> list[Finding]:
    values = read_values([ValuesText("--values", ISSUED, "values.yaml")])
    facts = ClusterFacts(version="v1.36.0", definitions=definitions)
    return [one for one in findings(facts, values, RELEASE, manifest(RELEASE, values)) if one.check == "certificates"]


def test_missing_definitions_of_cert_manager_stop_the_installation() -> None:
    (error,) = _found()
    assert (error.level, "certificates.cert-manager.io does not exist" in error.what) == ("error", True)
    served = [DefinitionFacts(f"{name}.cert-manager.io", served=("v1",)) for name in ("certificates", "issuers")]
    assert _found(*served) == []
    (older,) = _found(DefinitionFacts("certificates.cert-manager.io", served=("v1alpha2",)), served[1])
    assert "does not serve the version v1" in older.what


def test_a_certificate_is_ready_when_it_is_issued() -> None:
    def certificate(**condition: str) -> Obj:
        return {"kind": "Certificate", "status": {"conditions": [{"type": "Ready", **condition}]}}

    assert "has not issued it" in waits_for({"kind": "Certificate"})
    told = waits_for(certificate(status="False", reason="DoesNotExist", message="Issuer shoal-webhook not found"))
    assert told == "DoesNotExist: Issuer shoal-webhook not found"
    assert waits_for(certificate(status="True")) == ""

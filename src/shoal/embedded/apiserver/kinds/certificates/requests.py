"""CertificateSigningRequests: what may be asked, and who may say what of the answer."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
    too_long,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LEGACY = "kubernetes.io/legacy-unknown"
_SHORTEST_S = 600
_LONGEST_NAME = 253
_FINAL = ("Approved", "Denied", "Failed")
_SIGNER_WORDS = "must be a fully qualified domain and path of the form 'example.com/signer-name'"


class RequestStrategy(Strategy):
    has_status = True
    counts_generation = False

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})
        for condition in obj.setdefault("status", {}).get("conditions") or ():
            condition.setdefault("status", "True")

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """The requester and the request cannot change."""
        super().prepare_update(new, old)
        new["spec"] = old.get("spec") or {}

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if fault := request_fault(spec.get("request", "")):
            errors.append(bad_value("spec.request", spec.get("request"), fault))
        usages = spec.get("usages") or []
        if not usages:
            errors.append(required("spec.usages"))
        for place, usage in enumerate(usages):
            if usage not in USAGES:
                errors.append(not_supported(f"spec.usages[{place}]", usage, USAGES))
        for place, usage in enumerate(usages):
            if usage in usages[:place]:
                errors.append(duplicate(f"spec.usages[{place}]", usage))
        check_signer(spec.get("signerName", ""), "spec.signerName", errors)
        life_s = spec.get("expirationSeconds")
        if life_s is not None and life_s < _SHORTEST_S:
            words = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(bad_value("spec.expirationSeconds", life_s, words))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - nothing but metadata changes
        return []

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = check_conditions(new, old)
        for kind in ("Approved", "Denied"):
            if len(_found(new, kind)) > len(_found(old, kind)):
                words = f"updates may not add a condition of type {json.dumps(kind)}"
                errors.append(not_allowed("status.conditions", words))
            elif len(_found(new, kind)) == len(_found(old, kind)) and _found(new, kind) != _found(old, kind):
                words = f"updates may not modify a condition of type {json.dumps(kind)}"
                errors.append(not_allowed("status.conditions", words))
        issued, before = (new.get("status") or {}).get("certificate"), (old.get("status") or {}).get("certificate")
        if before and issued != before:
            words = "updates may not modify existing certificate content"
            errors.append(not_allowed("status.certificate", words))
        elif issued and (fault := _certificate_fault(issued)):
            errors.append(bad_value("status.certificate", "<certificate data>", fault))
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:  # noqa: ARG002 - any name will do
        return ""

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("spec.signerName",)


class ApprovalStrategy(RequestStrategy):
    """Behind the door `approval` only the conditions change."""

    def prepare_update(self, new: Obj, old: Obj) -> None:
        conditions = (new.get("status") or {}).get("conditions")
        new["spec"] = old.get("spec") or {}
        new["status"] = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = check_conditions(new, old)
        before = (old.get("status") or {}).get("certificate")
        add_changed(errors, "status.certificate", (new.get("status") or {}).get("certificate"), before)
        return errors


def _found(request: Obj, kind: str) -> list[Obj]:
    return [one for one in (request.get("status") or {}).get("conditions") or () if one.get("type") == kind]


def check_conditions(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    seen: list[str] = []
    for place, one in enumerate((new.get("status") or {}).get("conditions") or ()):
        path, kind, status = f"status.conditions[{place}]", one.get("type", ""), one.get("status", "")
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not kind:
            errors.append(required(f"{path}.type"))
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in allowed:
            errors.append(not_supported(f"{path}.status", status, allowed))
        if {"Approved": "Denied", "Denied": "Approved"}.get(kind) in seen:
            words = "Approved and Denied conditions are mutually exclusive"
            errors.append(bad_value(f"{path}.type", kind, words))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.append(kind)
    for kind in _FINAL:
        if len(_found(new, kind)) < len(_found(old, kind)):
            words = f"updates may not remove a condition of type {json.dumps(kind)}"
            errors.append(not_allowed("status.conditions", words))
    return errors


def request_fault(encoded: str) -> str:
    """Why it is no signed request in PEM."""
    try:
        text = base64.b64decode(encoded or "", validate=True)
    except binascii.Error:
        text = b""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in text:
        return "PEM block type must be CERTIFICATE REQUEST"
    # Loaded when first needed: few clusters ever sign a request, all of them start.
    from cryptography import x509

    from shoal.api.subjects import reading

    try:
        with reading():
            is_signed = x509.load_pem_x509_csr(text).is_signature_valid
    except ValueError as fault:
        return str(fault)
    return "" if is_signed else "x509: ECDSA verification failure"


def _certificate_fault(encoded: str) -> str:
    from cryptography import x509

    text = base64.b64decode(encoded)
    if b"-----BEGIN CERTIFICATE-----" not in text:
        return "must contain at least one CERTIFICATE PEM block"
    from shoal.api.subjects import reading

    try:
        with reading():
            x509.load_pem_x509_certificates(text)
    except ValueError as fault:
        return str(fault)
    return ""


def check_signer(name: str, path: str, errors: Errors) -> None:
    if name == _LEGACY:
        words = "the legacy signerName is not allowed via this API version"
        errors.append(bad_value(path, name, words))
        return
    if not name:
        errors.append(required(path))
        return
    parts = name.split("/")
    if len(parts) != 2:
        errors.append(bad_value(path, name, _SIGNER_WORDS))
        return
    domain, rest = parts
    if len(domain) > _LONGEST_NAME:
        errors.append(too_long(path, _LONGEST_NAME))
    labels = domain.split(".")
    _check_pieces(labels, domain, path, errors, is_domain=True)
    if len(labels) < 2:
        words = "should be a domain with at least two segments separated by dots"
        errors.append(bad_value(path, domain, words))
    _check_pieces(rest.split("."), rest, path, errors, is_domain=False)


def _check_pieces(pieces: list[str], whole: str, path: str, errors: Errors, *, is_domain: bool) -> None:
    for piece in pieces:
        if faults := dns_label_faults(piece) if is_domain else subdomain_faults(piece):
            errors.extend(bad_value(path, whole, f"validating label {json.dumps(piece)}: {one}") for one in faults)
            return

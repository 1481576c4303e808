"""Ingresses and their classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.api.names import SUBDOMAIN
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required, too_long
from shoal.embedded.apiserver.kinds.addresses import address, check_address, check_port_number
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.core.service_checks import check_host
from shoal.embedded.apiserver.kinds.spellings import (
    dns_label_faults,
    path_segment_faults,
    port_name_faults,
    subdomain_faults,
)
from shoal.embedded.apiserver.strategy import Strategy

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_LONGEST_CONTROLLER = 250


class IngressStrategy(Strategy):
    has_status = True
    counts_generation = True

    initial_status: Mapping[str, Any] = {"loadBalancer": {}}

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        _check_spec(obj["spec"], "spec", errors)
        said = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
        name = obj["spec"].get("ingressClassName")
        if said is not None and name is not None and said != name:
            words = "must match `ingressClassName` when both are specified"
            errors.append(bad_value(f"annotations.{_CLASS_ANNOTATION}", said, words))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        _check_spec(new["spec"], "spec", errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        listed = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        for place, one in enumerate(listed):
            path = f"status.loadBalancer.ingress[{place}]"
            if ip := one.get("ip"):
                check_address(ip, f"{path}.ip", errors)
            check_host(one.get("hostname", ""), f"{path}.hostname", errors)
        return errors

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is None and _CLASS_ANNOTATION in (new["metadata"].get("annotations") or ()):
            return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


def _check_spec(spec: Obj, path: str, errors: Errors) -> None:
    rules, usual = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and usual is None:
        words = "either `defaultBackend` or `rules` must be specified"
        errors.append(bad_value(path, spec.get("rules"), words))
    if usual is not None:
        _check_backend(usual, f"{path}.defaultBackend", errors)
    for place, rule in enumerate(rules):
        _check_rule(rule, f"{path}.rules[{place}]", errors)
    for place, secure in enumerate(spec.get("tls") or ()):
        for position, host in enumerate(secure.get("hosts") or ()):
            faults = wildcard_faults(host) if "*" in host else subdomain_faults(host)
            add_faults(errors, f"{path}.tls[{place}].hosts[{position}]", host, faults)
        if name := secure.get("secretName"):
            add_faults(errors, f"{path}.tls[{place}].secretName", name, subdomain_faults(name))
    if (name := spec.get("ingressClassName")) is not None:
        add_faults(errors, f"{path}.ingressClassName", name, subdomain_faults(name))


def _check_rule(rule: Obj, path: str, errors: Errors) -> None:
    if host := rule.get("host"):
        if address(host) is not None:
            errors.append(bad_value(f"{path}.host", host, "must be a DNS name, not an IP address"))
        faults = wildcard_faults(host) if "*" in host else subdomain_faults(host)
        add_faults(errors, f"{path}.host", host, faults)
    if (http := rule.get("http")) is None:
        return
    if not http.get("paths"):
        errors.append(required(f"{path}.http.paths"))
    for place, one in enumerate(http.get("paths") or ()):
        _check_path(one, f"{path}.http.paths[{place}]", errors)


def _check_path(one: Obj, path: str, errors: Errors) -> None:
    kind, where = one.get("pathType"), one.get("path", "")
    if kind is None:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
        return
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not where.startswith("/") and (where or kind != "ImplementationSpecific"):
        errors.append(bad_value(f"{path}.path", where, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        for piece in _BAD_SEQUENCES:
            if piece in where:
                errors.append(bad_value(f"{path}.path", where, f"must not contain '{piece}'"))
        for piece in _BAD_ENDS:
            if where.endswith(piece):
                errors.append(bad_value(f"{path}.path", where, f"cannot end with '{piece}'"))
    _check_backend(one.get("backend") or {}, f"{path}.backend", errors)


def _check_backend(backend: Obj, path: str, errors: Errors) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        errors.append(bad_value(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _check_reference(resource, f"{path}.resource", errors)
    elif service is not None:
        if name := service.get("name"):
            add_faults(errors, f"{path}.service.name", name, dns_label_faults(name))
        else:
            errors.append(required(f"{path}.service.name"))
        _check_port(service.get("port") or {}, path, errors)
    else:
        errors.append(bad_value(path, "", "resource or service backend is required"))


def _check_port(port: Obj, path: str, errors: Errors) -> None:
    name, number = port.get("name", ""), port.get("number", 0)
    if name and number:
        errors.append(bad_value(path, "", "cannot set both port name & port number"))
    elif name:
        add_faults(errors, f"{path}.service.port.name", name, port_name_faults(name))
    elif number:
        check_port_number(number, f"{path}.service.port.number", errors)
    else:
        errors.append(required(path, "port name or number is required"))


def _check_reference(reference: Obj, path: str, errors: Errors) -> None:
    if (group := reference.get("apiGroup")) is not None:
        add_faults(errors, f"{path}.apiGroup", group, subdomain_faults(group))
    for key in ("kind", "name"):
        if value := reference.get(key):
            add_faults(errors, f"{path}.{key}", value, path_segment_faults(value))
        else:
            errors.append(required(f"{path}.{key}"))


class IngressClassStrategy(Strategy):
    counts_generation = True

    def default(self, obj: Obj) -> None:
        parameters = obj.setdefault("spec", {}).get("parameters")
        if parameters is not None:
            parameters.setdefault("scope", "Cluster")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        _check_controller(spec.get("controller", ""), "spec.controller", errors)
        if (parameters := spec.get("parameters")) is not None:
            _check_reference(parameters, "spec.parameters", errors)
            _check_scope(parameters, "spec.parameters", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        add_changed(errors, "spec.controller", new["spec"].get("controller"), old["spec"].get("controller"))
        return errors + self.validate(new)


def _check_controller(controller: str, path: str, errors: Errors) -> None:
    if not controller:
        errors.append(required(path))
        return
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        errors.append(too_long(path, _LONGEST_CONTROLLER))
    host, _, rest = controller.partition("/")
    if not host or not rest:
        errors.append(bad_value(path, controller, 'must be a domain-prefixed path (such as "acme.io/foo")'))
        return
    add_faults(errors, path, host, subdomain_faults(host))
    if not re.fullmatch(_HTTP_PATH, rest):
        errors.append(bad_value(path, rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))


def _check_scope(parameters: Obj, path: str, errors: Errors) -> None:
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        errors.append(not_supported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Cluster":
        if namespace is not None:
            errors.append(not_allowed(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    else:
        add_faults(errors, f"{path}.namespace", namespace, dns_label_faults(namespace))


_PATTERN = rf"\*\.{SUBDOMAIN.pattern}"
_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    f"regex used for validation is '{_PATTERN}')"
)


def wildcard_faults(name: str) -> tuple[str, ...]:
    found = []
    if len(name.encode()) > 253:
        found.append("must be no more than 253 bytes")
    if not re.fullmatch(_PATTERN, name):
        found.append(_WORDS)
    return tuple(found)

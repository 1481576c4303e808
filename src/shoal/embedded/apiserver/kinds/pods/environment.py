"""Checks of ports and environment variables of a container."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, missing_reference, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_out_of_range, add_unsupported
from shoal.embedded.apiserver.kinds.spellings import (
    address_faults,
    config_key_faults,
    dns_label_faults,
    environment_faults,
    label_key_faults,
    port_name_faults,
    subdomain_faults,
)

_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_AMOUNTS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_MANY_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SOURCES_LISTED = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_MORE_THAN_ONE = "may not have more than one field specified at a time"
PROTOCOLS = ("SCTP", "TCP", "UDP")


def check_ports(ports: list[Obj], path: str, errors: Errors) -> None:
    names: set[str] = set()
    for place, port in enumerate(ports):
        here = f"{path}[{place}]"
        if name := port.get("name"):
            if faults := port_name_faults(name):
                add_faults(errors, f"{here}.name", name, faults)
            elif name in names:
                errors.append(duplicate(f"{here}.name", name))
            else:
                names.add(name)
        if number := port.get("containerPort", 0):
            add_out_of_range(errors, f"{here}.containerPort", number, 1, 65535)
        else:
            errors.append(required(f"{here}.containerPort"))
        if number := port.get("hostPort", 0):
            add_out_of_range(errors, f"{here}.hostPort", number, 1, 65535)
        add_unsupported(errors, f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        if address := port.get("hostIP"):
            add_faults(errors, f"{here}.hostIP", address, address_faults(address))


def check_host_ports(containers: list[Obj], path: str, errors: Errors) -> None:
    """Two containers of a pod cannot hold the same port of its host."""
    taken: set[str] = set()
    for place, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not (number := port.get("hostPort")):
                continue
            asked = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            if asked in taken:
                errors.append(duplicate(f"{path}[{place}].ports[{position}].hostPort", asked))
            taken.add(asked)


def check_environment(variables: list[Obj], path: str, volumes: frozenset[str] | None, errors: Errors) -> None:
    """`volumes` is None where a template's are completed later."""
    for place, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.append(required(f"{path}[{place}].name"))
        elif faults := environment_faults(name):
            add_faults(errors, f"{path}[{place}].name", name, faults)
        if (source := variable.get("valueFrom")) is not None:
            here = f"{path}[{place}].valueFrom"
            _check_source(source, variable.get("value", ""), here, errors)
            file = source.get("fileKeyRef")
            if file is not None and volumes is not None and file.get("volumeName") not in volumes:
                errors.append(missing_reference(f"{here}.fileKeyRef.volumeName", file.get("volumeName", "")))


def _check_source(source: Obj, value: str, path: str, errors: Errors) -> None:
    given = [key for key in _SOURCES if source.get(key) is not None]
    for key in given:
        here = f"{path}.{key}"
        if key == "fieldRef":
            check_field_reference(source[key], here, _FIELDS, errors)
        elif key == "resourceFieldRef":
            check_resource_reference(source[key], here, errors)
        elif key == "fileKeyRef":
            _check_file_key(source[key], here, errors)
        else:
            _check_key(source[key], here, errors)
    if not given:
        errors.append(bad_value(path, "", _SOURCES_LISTED))
    elif value:
        errors.append(bad_value(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(bad_value(path, "", _MORE_THAN_ONE))


def check_field_reference(reference: Obj, path: str, allowed: tuple[str, ...], errors: Errors) -> None:
    field = reference.get("fieldPath", "")
    if not field:
        errors.append(required(f"{path}.fieldPath"))
        return
    if field.endswith("']") and "['" in field:
        whole, _, key = field[:-2].partition("['")
        if whole == "metadata.annotations":
            add_faults(errors, path, key, label_key_faults(key.lower()))
        elif whole == "metadata.labels":
            add_faults(errors, path, key, label_key_faults(key))
        else:
            errors.append(bad_value(path, whole, "does not support subscript"))
    elif field not in allowed:
        if field in ("metadata.annotations", "metadata.labels") or field in _FIELDS:
            errors.append(not_supported(f"{path}.fieldPath", field, allowed))
        else:
            words = f"error converting fieldPath: field label not supported: {field}"
            errors.append(bad_value(f"{path}.fieldPath", field, words))


def check_resource_reference(reference: Obj, path: str, errors: Errors, *, needs_container: bool = False) -> None:
    resource, divisor = reference.get("resource", ""), reference.get("divisor", "0")
    is_huge = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if needs_container and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _AMOUNTS and not is_huge:
        errors.append(not_supported(f"{path}.resource", resource, _AMOUNTS))
    if divisor == "0":
        return
    kind = resource.partition(".")[2]
    if kind == "cpu" and divisor not in ("1m", "1"):
        words = "only divisor's values 1m and 1 are supported with the cpu resource"
        errors.append(bad_value(f"{path}.divisor", resource, words))
    elif kind in ("memory", "ephemeral-storage") and divisor not in _MANY_BYTES:
        named = "local ephemeral storage" if kind != "memory" else kind
        words = f"only divisor's values {', '.join(_MANY_BYTES)} are supported with the {named} resource"
        errors.append(bad_value(f"{path}.divisor", resource, words))


def _check_key(reference: Obj, path: str, errors: Errors) -> None:
    name, key = reference.get("name", ""), reference.get("key", "")
    add_faults(errors, f"{path}.name", name, subdomain_faults(name))
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        add_faults(errors, f"{path}.key", key, config_key_faults(key))


def _check_file_key(reference: Obj, path: str, errors: Errors) -> None:
    key, volume, file = (reference.get(name, "") for name in ("key", "volumeName", "path"))
    if key:
        add_faults(errors, f"{path}.key", key, environment_faults(key))
    else:
        errors.append(required(f"{path}.key"))
    if volume:
        add_faults(errors, f"{path}.volumeName", volume, dns_label_faults(volume))
    else:
        errors.append(required(f"{path}.volumeName"))
    if not file:
        errors.append(required(f"{path}.path"))
    elif ".." in file.split("/"):
        errors.append(bad_value(f"{path}.path", file, "must not contain '..'"))


def check_environment_from(sources: list[Obj], path: str, errors: Errors) -> None:
    for place, source in enumerate(sources):
        here = f"{path}[{place}]"
        if prefix := source.get("prefix"):
            add_faults(errors, f"{here}.prefix", prefix, environment_faults(prefix))
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in given:
            if not (name := source[key].get("name", "")):
                errors.append(required(f"{here}.{key}.name"))
            else:
                add_faults(errors, f"{here}.{key}.name", name, subdomain_faults(name))
        if not given:
            errors.append(bad_value(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(bad_value(path, "", _MORE_THAN_ONE))

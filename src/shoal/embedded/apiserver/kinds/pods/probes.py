"""Checks of probes and lifecycle hooks: what is called, and how often."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_negative, add_out_of_range
from shoal.embedded.apiserver.kinds.spellings import header_faults, port_name_faults

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def check_probe(probe: Obj, path: str, errors: Errors, *, once: bool, grace_s: int | None = None) -> None:
    """`once`: a single success decides, as for liveness and start-up."""
    _check_handler(probe, path, grace_s, errors)
    for key in _COUNTS:
        if probe.get(key, 0) < 0:
            add_negative(errors, f"{path}.{key}", probe[key])
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if once and probe.get("successThreshold") != 1:
        errors.append(bad_value(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    if not once and grace is not None:
        words = "must not be set for readinessProbes"
        errors.append(bad_value(f"{path}.terminationGracePeriodSeconds", grace, words))


def check_lifecycle(lifecycle: Obj, path: str, grace_s: int, errors: Errors) -> None:
    for key in ("postStart", "preStop"):
        if (hook := lifecycle.get(key)) is not None:
            _check_handler(hook, f"{path}.{key}", grace_s, errors)


def _check_handler(handler: Obj, path: str, grace_s: int | None, errors: Errors) -> None:
    given = [key for key in _HANDLERS if handler.get(key) is not None]
    if not given:
        errors.append(required(path, "must specify a handler type"))
        return
    for key in given[1:]:
        errors.append(not_allowed(f"{path}.{key}", "may not specify more than 1 handler type"))
    kind = given[0]
    action, here = handler[kind], f"{path}.{kind}"
    if kind == "exec":
        if not action.get("command"):
            errors.append(required(f"{here}.command"))
    elif kind == "httpGet":
        _check_http(action, here, errors)
    elif kind == "tcpSocket":
        check_port_reference(action.get("port", 0), f"{here}.port", errors)
    elif kind == "grpc":
        add_out_of_range(errors, f"{here}.port", action.get("port", 0), 1, 65535)
    else:
        _check_sleep(action, here, grace_s, errors)


def _check_http(action: Obj, path: str, errors: Errors) -> None:
    if not action.get("path"):
        errors.append(required(f"{path}.path"))
    check_port_reference(action.get("port", 0), f"{path}.port", errors)
    if action.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        add_faults(errors, f"{path}.httpHeaders", name, header_faults(name))


def _check_sleep(action: Obj, path: str, grace_s: int | None, errors: Errors) -> None:
    seconds = action.get("seconds", 0)
    most = 30 if grace_s is None else grace_s
    if not 0 <= seconds <= most:
        words = f"must be non-negative and less than terminationGracePeriodSeconds ({most})"
        errors.append(bad_value(path, seconds, words))


def check_port_reference(port: Any, path: str, errors: Errors) -> None:
    """A port by number, or by the name of one of the container's."""
    if isinstance(port, str):
        add_faults(errors, path, port, port_name_faults(port))
    else:
        add_out_of_range(errors, path, port, 1, 65535)

"""Checks of how a pod resolves names and shares its host's ports."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import address_faults, subdomain_faults


def check_network(spec: Obj, path: str, errors: Errors) -> None:
    config = spec.get("dnsConfig")
    if config is not None or spec.get("dnsPolicy") == "None":
        _check_dns(config, spec.get("dnsPolicy", ""), f"{path}.dnsConfig", errors)
    for place, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{place}].ip"
        add_faults(errors, here, alias.get("ip", ""), address_faults(alias.get("ip", "")))
        for name in alias.get("hostnames") or ():
            add_faults(errors, f"{path}.hostAliases.hostnames", name, subdomain_faults(name))
    if spec.get("hostNetwork"):
        for key in ("containers", "initContainers"):
            _check_host_network(spec.get(key) or [], f"{path}.{key}", errors)


def _check_dns(config: Obj | None, policy: str, path: str, errors: Errors) -> None:
    if policy == "None":
        if config is None:
            errors.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            words = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.nameservers", words))
            return
    config = config or {}
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        errors.append(bad_value(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for place, server in enumerate(servers):
        add_faults(errors, f"{path}.nameservers[{place}]", server, address_faults(server))
    if len(searches) > 32:
        errors.append(bad_value(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        words = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(bad_value(f"{path}.searches", searches, words))
    for place, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".").replace("_", "a")
            add_faults(errors, f"{path}.searches[{place}]", search, subdomain_faults(name))
    for place, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{place}]", "must not be empty"))


def _check_host_network(containers: list[Obj], path: str, errors: Errors) -> None:
    for place, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("containerPort", 0)
            if port.get("hostPort", number) != number:
                words = "must match `containerPort` when `hostNetwork` is true"
                errors.append(bad_value(f"{path}[{place}].ports[{position}].hostPort", port["hostPort"], words))

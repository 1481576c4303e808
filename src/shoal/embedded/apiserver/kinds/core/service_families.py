"""Checks of a Service's cluster addresses and of their families."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_supported, required
from shoal.embedded.apiserver.kinds.addresses import check_address, family
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj

_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_HEADLESS = ["None"]


def check_families(spec: Obj, errors: Errors) -> None:
    if spec.get("type") == "ExternalName":
        return
    one, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    path = "spec.clusterIPs"
    if one and not addresses:
        errors.append(required(path))
    elif one and addresses[0] != one:
        errors.append(bad_value(path, addresses, "first value must match `clusterIP`"))
    elif addresses and not one:
        errors.append(bad_value(path, addresses, "must be empty when `clusterIP` is not specified"))
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    for place, name in enumerate(families):
        if name not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{place}]", name, _FAMILIES))
        if name in families[:place]:
            errors.append(duplicate(f"spec.ipFamilies[{place}]", name))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    if _check_addresses(addresses, errors):
        _check_matching(spec, addresses, families, errors)
    _check_stacks(spec, addresses, families, errors)


def _check_addresses(addresses: list[str], errors: Errors) -> bool:
    path = "spec.clusterIPs"
    is_sound = True
    for place, one in enumerate(addresses):
        if place == 0 and one == "None":
            if len(addresses) > 1:
                errors.append(bad_value(path, addresses, "'None' must be the first and only value"))
                is_sound = False
            continue
        is_sound = check_address(one, f"{path}[{place}]", errors) and is_sound
    if len(addresses) > 2:
        errors.append(bad_value(path, addresses, "may only hold up to 2 values"))
    if is_sound and len(addresses) > 1 and {family(one) for one in addresses} != {*_FAMILIES}:
        errors.append(bad_value(path, addresses, "may specify no more than one IP for each IP family"))
    return is_sound


def _check_matching(spec: Obj, addresses: list[str], families: list[str], errors: Errors) -> None:
    if spec.get("clusterIPs") == _HEADLESS:
        return
    for place, (one, name) in enumerate(zip(addresses, families, strict=False)):
        if family(one) != name:
            words = f"expected an {name} value as indicated by `ipFamilies[{place}]`"
            errors.append(bad_value(f"spec.clusterIPs[{place}]", one, words))


def _check_stacks(spec: Obj, addresses: list[str], families: list[str], errors: Errors) -> None:
    """What one family of addresses, which is all this cluster has, cannot serve."""
    policy = spec.get("ipFamilyPolicy")
    path = "spec.ipFamilyPolicy"
    if policy == "SingleStack":
        for held, what in ((addresses, "cluster IPs"), (families, "IP families")):
            if len(held) == 2:
                words = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                errors.append(bad_value(path, policy, words))
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        return
    if policy == "RequireDualStack":
        errors.append(bad_value(path, policy, "this cluster is not configured for dual-stack services"))
    for place, name in enumerate(families):
        if name == "IPv6":
            errors.append(bad_value(f"spec.ipFamilies[{place}]", name, "not configured on this cluster"))


def check_family_update(spec: Obj, before: Obj, errors: Errors) -> None:
    """An address is kept as long as there is one, and its family with it."""
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    new, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    is_headless, was_headless = new == _HEADLESS, old == _HEADLESS
    if not (is_headless and was_headless):
        _check_kept(new, old, spec, errors)
    if is_headless or was_headless:
        return
    families, former = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if families and former and families[0] != former[0]:
        errors.append(bad_value("spec.ipFamilies[0]", families, "may not change once set"))


def _check_kept(new: list[str], old: list[str], spec: Obj, errors: Errors) -> None:
    if old and not new:
        errors.append(bad_value("spec.clusterIPs[0]", new, "primary clusterIP can not be unset"))
        return
    if len(new) == len(old):
        for place, one in enumerate(old):
            if one != new[place]:
                errors.append(bad_value(f"spec.clusterIPs[{place}]", new, "may not change once set"))
        return
    if old and new[0] != old[0]:
        errors.append(bad_value("spec.clusterIPs[0]", new, "may not change once set"))
    policy = spec.get("ipFamilyPolicy")
    if len(old) > len(new) == 1 and policy != "SingleStack":
        words = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(bad_value("spec.ipFamilyPolicy", policy, words))

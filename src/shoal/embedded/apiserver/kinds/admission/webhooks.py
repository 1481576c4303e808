"""ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from urllib.parse import urlsplit

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_supported, required
from shoal.embedded.apiserver.kinds.admission.expressions import check_match_conditions
from shoal.embedded.apiserver.kinds.admission.rules import FAILURE_POLICIES, MATCH_POLICIES, check_rule, default_rules
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import dns_1035_label_faults, dns_label_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_REVIEWS = ("v1", "v1beta1")
_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATIONS = ("IfNeeded", "Never")
_USUAL_PORT, _USUAL_TIMEOUT_S, _LONGEST_TIMEOUT_S = 443, 10, 30
_FORM = "; desired format: https://host[/path]"


class WebhookStrategy(Strategy):
    counts_generation = True
    needs_version = True

    def __init__(self, *, mutates: bool = False) -> None:
        self._mutates = mutates

    def default(self, obj: Obj) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", _USUAL_TIMEOUT_S)
            if self._mutates:
                hook.setdefault("reinvocationPolicy", "Never")
            default_rules(hook.get("rules") or [])
            if (service := hook.setdefault("clientConfig", {}).get("service")) is not None:
                service.setdefault("port", _USUAL_PORT)

    def validate(self, obj: Obj) -> list[FieldError]:
        return self._checked(obj, None)

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        return self._checked(new, old)

    def _checked(self, obj: Obj, old: Obj | None) -> Errors:
        errors: Errors = []
        names: set[str] = set()
        hooks = obj.get("webhooks") or []
        former = [one.get("matchConditions") for one in (old or {}).get("webhooks") or ()]
        is_known = old is not None and former == [one.get("matchConditions") for one in hooks]
        for place, hook in enumerate(hooks):
            path, name = f"webhooks[{place}]", hook.get("name", "")
            self._check_hook(hook, path, errors)
            if not is_known:
                check_match_conditions(hook.get("matchConditions") or [], f"{path}.matchConditions", errors)
            _check_reviews(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions", errors)
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            if name:
                names.add(name)
        return errors

    def _check_hook(self, hook: Obj, path: str, errors: Errors) -> None:
        check_full_name(hook.get("name", ""), f"{path}.name", errors)
        for place, rule in enumerate(hook.get("rules") or ()):
            check_rule(rule, f"{path}.rules[{place}]", errors)
        for key, allowed in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)):
            if hook.get(key) is not None and hook[key] not in allowed:
                errors.append(not_supported(f"{path}.{key}", hook[key], allowed))
        effects = hook.get("sideEffects")
        if effects is None:
            errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}"))
        elif effects not in _EFFECTS:
            errors.append(not_supported(f"{path}.sideEffects", effects, _EFFECTS))
        timeout_s = hook.get("timeoutSeconds")
        if timeout_s is not None and not 1 <= timeout_s <= _LONGEST_TIMEOUT_S:
            words = "the timeout value must be between 1 and 30 seconds"
            errors.append(bad_value(f"{path}.timeoutSeconds", timeout_s, words))
        for key in ("namespaceSelector", "objectSelector"):
            check_selector(hook.get(key), f"{path}.{key}", errors)
        again = hook.get("reinvocationPolicy")
        if self._mutates and again is not None and again not in _REINVOCATIONS:
            errors.append(not_supported(f"{path}.reinvocationPolicy", again, _REINVOCATIONS))
        _check_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", errors)


def check_full_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
        return
    if faults := subdomain_faults(name):
        errors.append(bad_value(path, name, ", ".join(faults)))
        return
    if name.count(".") < 2:
        words = "should be a domain with at least three segments separated by dots"
        errors.append(bad_value(path, name, words))
        return
    for piece in name.split("."):
        if faults := dns_label_faults(piece):
            errors.append(bad_value(path, piece, ", ".join(faults)))


def _check_reviews(versions: list[str], path: str, errors: Errors) -> None:
    if not versions:
        errors.append(required(path, f"must specify one of {', '.join(_REVIEWS)}"))
        return
    for place, one in enumerate(versions):
        if one in versions[:place]:
            errors.append(bad_value(f"{path}[{place}]", one, "duplicate version"))
            continue
        add_faults(errors, f"{path}[{place}]", one, dns_1035_label_faults(one))
    if not {*versions} & {*_REVIEWS}:
        errors.append(bad_value(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))


def _check_client(client: Obj, path: str, errors: Errors) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _check_url(url, f"{path}.url", errors)
    elif service is not None:
        _check_service(service, f"{path}.service", errors)


def _check_url(url: str, path: str, errors: Errors) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        errors.append(required(path, f"url must be a valid URL: {fault}{_FORM}"))
        return
    if parts.scheme != "https":
        words = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(bad_value(path, parts.scheme, words))
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(bad_value(path, host, f"host must be specified{_FORM}"))
    for value, what in (
        (user, "user information is"), (parts.fragment, "fragments are"), (parts.query, "query parameters are"),
    ):  # fmt: skip
        if value:
            errors.append(bad_value(path, value, f"{what} not permitted in the URL"))


def _check_service(service: Obj, path: str, errors: Errors) -> None:
    errors.extend(required(f"{path}.{key}") for key in ("name", "namespace") if not service.get(key))
    port = service.get("port", _USUAL_PORT)
    if not 1 <= port <= 65535:
        words = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(bad_value(f"{path}.port", port, words))
    where = service.get("path")
    if not where or where == "/":
        return
    if where == "//":
        errors.append(bad_value(f"{path}.path", where, "segment[0] may not be empty"))
        return
    if not where.startswith("/"):
        errors.append(bad_value(f"{path}.path", where, "must start with a '/'"))
    for place, piece in enumerate(where[1:].removesuffix("/").split("/")):
        if not piece:
            errors.append(bad_value(f"{path}.path", where, f"segment[{place}] may not be empty"))
            continue
        faults = [f"segment[{place}]: {fault}" for fault in subdomain_faults(piece)]
        add_faults(errors, f"{path}.path", where, faults)

"""Implements CustomResourceDefinitions themselves.

What checks a definition (schemas, expressions) is imported when the first one is written: it takes a tenth of a second
that a server without definitions does not pay at its start.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

import msgspec

from shoal.embedded.apiserver.crds.establish import CLEANUP, add_stored_version, is_established, terminate
from shoal.embedded.apiserver.field_errors import IMMUTABLE, FieldError, bad_value, required
from shoal.embedded.apiserver.foreign.provided import is_untouched
from shoal.embedded.apiserver.names import subdomain_fault
from shoal.embedded.apiserver.schema.formats import is_known_format
from shoal.embedded.apiserver.strategy import Strategy

Obj = dict[str, Any]
_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_PAGE = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")


class DefinitionStrategy(Strategy):
    """The strategy of ("apiextensions.k8s.io", "customresourcedefinitions")."""

    needs_version = True
    has_status = True
    ends_when_empty = True
    deletion_finalizer = CLEANUP

    def with_deletion_begun(self, obj: Obj, now: str) -> Obj:
        return terminate(obj, now)

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            if not names.get("singular"):
                names["singular"] = names["kind"].lower()
            if not names.get("listKind"):
                names["listKind"] = f"{names['kind']}List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        if spec.get("preserveUnknownFields") is False:
            del spec["preserveUnknownFields"]
        if "versions" not in spec:
            spec["versions"] = []

    def prepare_create(self, obj: Obj) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        add_stored_version(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        from copy import deepcopy

        new["status"] = deepcopy(old.get("status") or {})
        if is_untouched(old):
            # Taken over: what is stored in other versions is stored anew.
            there = {one.get("name") for one in new["spec"].get("versions") or ()}
            stored = new["status"].get("storedVersions") or ()
            new["status"]["storedVersions"] = [one for one in stored if one in there]
        add_stored_version(new)

    def validate(self, obj: Obj) -> list[FieldError]:
        spec = obj["spec"]
        name = obj.get("metadata", {}).get("name", "")
        faults = []
        wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
        if name != wanted:
            faults.append(bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        return [*faults, *_spec_errors(spec), *_stored_errors(obj), *_approval_errors(obj, None)]

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        faults = _spec_errors(spec)
        checked = [("spec.group", spec.get("group"), before.get("group"))]
        checked.append(("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural")))
        if is_established(old):
            checked.insert(0, ("spec.scope", spec.get("scope"), before.get("scope")))
            checked.insert(1, ("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind")))
        faults += [bad_value(path, value, IMMUTABLE) for path, value, was in checked if value != was]
        return [*faults, *_stored_errors(new), *_approval_errors(new, old)]

    def validate_status(self, new: Obj, _: Obj) -> list[FieldError]:
        from shoal.embedded.apiserver.crds.definition_validation import names_errors

        return names_errors((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return subdomain_fault(name, is_prefix)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        before = set(_formats(old["spec"].get("versions"))) if old is not None else set()
        found = dict.fromkeys(_formats(new["spec"].get("versions")))
        return [f'unrecognized format "{one}"' for one in found if one not in before]


_VALID: dict[bytes, None] = {}
"""Digests of the last specs that had no errors, the oldest first."""
_MOST_VALID = 1024


def _spec_errors(spec: Obj) -> list[FieldError]:
    """The errors of a spec. One that has been found valid is not checked again: definitions are large, and clients
    apply them again without a change."""
    digest = blake2b(msgspec.json.encode(spec), digest_size=16).digest()
    if digest in _VALID:
        return []
    from shoal.embedded.apiserver.crds.definition_validation import spec_errors

    faults = spec_errors(spec)
    if not faults:
        if len(_VALID) >= _MOST_VALID:
            del _VALID[next(iter(_VALID))]
        _VALID[digest] = None
    return faults


def _formats(value: Any) -> list[str]:
    """The formats of a schema that are not checked."""
    found: list[str] = []
    _add_formats(value, found)
    return found


def _add_formats(value: Any, found: list[str]) -> None:
    if isinstance(value, dict):
        for key, held in value.items():
            if isinstance(held, dict | list):
                if key != "additionalPrinterColumns":
                    _add_formats(held, found)
            elif key == "format" and isinstance(held, str) and held and not is_known_format(held):
                found.append(held)
    elif isinstance(value, list):
        for one in value:
            _add_formats(one, found)


def _stored_errors(crd: Obj) -> list[FieldError]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    if not stored:
        return [bad_value(path, stored, "must have at least one stored version")]
    faults = []
    names = set()
    for version in crd["spec"].get("versions") or ():
        names.add(version.get("name"))
        if version.get("storage") and version.get("name") not in stored:
            faults.append(bad_value(path, stored, f"must have the storage version {version.get('name')}"))
    for index, name in enumerate(stored):
        if name not in names:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            faults.append(bad_value(f"{path}[{index}]", name, words))
    return faults


def _approval_errors(crd: Obj, old: Obj | None) -> list[FieldError]:
    """Groups of the Kubernetes project itself ask for a link to the approval."""
    if not _PROTECTED.fullmatch(crd["spec"].get("group", "")):
        return []
    written = (crd["metadata"].get("annotations") or {}).get(_APPROVAL, "")
    if old is not None and written == (old["metadata"].get("annotations") or {}).get(_APPROVAL, ""):
        return []
    path = f"metadata.annotations[{_APPROVAL}]"
    if not written:
        return [required(path, f'protected groups must have approval annotation "{_APPROVAL}", see {_APPROVAL_PAGE}')]
    if written.startswith("unapproved") or re.match(r"https?://[^/]+", written):
        return []
    words = (
        f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason starting with '
        f'"unapproved", see {_APPROVAL_PAGE}'
    )
    return [bad_value(path, written, words)]


DEFINITIONS = DefinitionStrategy()

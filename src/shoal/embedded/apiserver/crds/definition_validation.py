"""Checks the spec of a CustomResourceDefinition, with Kubernetes' messages.

What all versions say alike is, in errors, said of the whole definition (`spec.validation`, `spec.subresources`): the
server's own form of a definition has it there, and its messages show that form.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.crds.definition_conversion import conversion_errors
from shoal.embedded.apiserver.crds.schema_rules import SchemaRules
from shoal.embedded.apiserver.crds.structure import default_errors, structure_errors
from shoal.embedded.apiserver.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
    too_many,
)
from shoal.embedded.apiserver.names import label_1035_fault, subdomain_fault

Obj = dict[str, Any]
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MIXED = "may have mixed case, but should otherwise match: "
_MOST_SELECTABLE = 8
_AT_ROOT = frozenset(
    [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ]
)
_AT_ROOT_WORDS = (
    "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations] fields are allowed at the root of the schema if the status subresource is enabled"
)


def spec_errors(spec: Obj) -> list[FieldError]:
    """Everything that is wrong with a specification."""
    faults = _group_errors(spec)
    versions: list[Obj] = spec.get("versions") or []
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            faults.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", ""))
    for index, version in enumerate(versions):
        faults += _version_errors(version, f"spec.versions[{index}]", _shared(versions))
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        faults.append(bad_value("spec.versions", versions, "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        words = "must have exactly one version marked as storage version"
        faults.append(bad_value("spec.versions", versions, words))
    asked = spec.get("names") or {}
    faults += [
        required(f"spec.names.{key}") for key in ("plural", "singular", "kind", "listKind") if not asked.get(key)
    ]
    faults += names_errors(asked, "spec.names")
    if versions:
        faults += _shared_errors(versions)
    return faults + conversion_errors(spec.get("conversion"))


def _group_errors(spec: Obj) -> list[FieldError]:
    group, scope = spec.get("group", ""), spec.get("scope", "")
    faults = []
    if not group:
        faults.append(required("spec.group"))
    elif fault := subdomain_fault(group):
        faults.append(bad_value("spec.group", group, fault))
    elif "." not in group:
        faults.append(bad_value("spec.group", group, "should be a domain with at least one dot"))
    if not scope:
        faults.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        faults.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    if spec.get("preserveUnknownFields"):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        faults.append(bad_value("spec.preserveUnknownFields", True, words))
    return faults


_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _shared(versions: list[Obj]) -> frozenset[str]:
    """What every version says, and says the same."""
    return frozenset(
        key for key in _SHARED if all(one.get(key) and one.get(key) == versions[0].get(key) for one in versions)
    )


def _shared_errors(versions: list[Obj]) -> list[FieldError]:
    first, shared = versions[0], _shared(versions)
    faults = []
    has_status = any((one.get("subresources") or {}).get("status") is not None for one in versions)
    if "schema" in shared:
        faults += schema_errors(first["schema"].get("openAPIV3Schema"), "spec.validation", has_status=has_status)
    if "subresources" in shared:
        faults += _subresource_errors(first["subresources"], "spec.subresources")
    if "additionalPrinterColumns" in shared:
        faults += _column_errors(first["additionalPrinterColumns"], "spec.additionalPrinterColumns")
    if "selectableFields" in shared:
        faults += _selectable_errors(first, "spec.selectableFields")
    return faults


def _version_errors(version: Obj, path: str, shared: frozenset[str]) -> list[FieldError]:
    name = version.get("name", "")
    faults = []
    if fault := label_1035_fault(name):
        faults.append(bad_value(f"{path}.name", name, fault))
    faults += _deprecation_errors(version, path)
    subresources = version.get("subresources") or {}
    if "schema" not in shared:
        published = (version.get("schema") or {}).get("openAPIV3Schema")
        faults += schema_errors(published, f"{path}.schema", has_status=subresources.get("status") is not None)
    if "subresources" not in shared:
        faults += _subresource_errors(subresources, f"{path}.subresources")
    if "additionalPrinterColumns" not in shared:
        faults += _column_errors(version.get("additionalPrinterColumns") or [], f"{path}.additionalPrinterColumns")
    if "selectableFields" not in shared:
        faults += _selectable_errors(version, f"{path}.selectableFields")
    return faults


def _deprecation_errors(version: Obj, path: str) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    words = []
    if not version.get("deprecated"):
        words.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > 256:
            words.append("must be <= 256 characters long")
        if not warning:
            words.append("must not be an empty string")
        bad = next((place for place, one in enumerate(warning) if not one.isprintable()), None)
        if bad is not None:
            words.append(f"must only contain printable UTF-8 characters; non-printable character found at index {bad}")
    return [bad_value(f"{path}.deprecationWarning", warning, one) for one in words]


def schema_errors(published: Obj | None, path: str, *, has_status: bool) -> list[FieldError]:
    """What is wrong with one schema; `path` is what holds `openAPIV3Schema`."""
    if not published:
        return []
    where = f"{path}.openAPIV3Schema"
    faults = []
    if has_status:
        if published.get("type", "object") != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            faults.append(bad_value(f"{where}.type", published["type"], words))
        elif any(key not in _AT_ROOT for key, value in published.items() if value not in (None, "", [], {}, False)):
            faults.append(bad_value(where, published, _AT_ROOT_WORDS))
    if published.get("nullable"):
        faults.append(not_allowed(f"{where}.nullable", "nullable cannot be true at the root"))
    structural = structure_errors(published, where) or default_errors(published, where)
    return [*faults, *structural, *SchemaRules(compiles=not structural).errors(published, where)]


def names_errors(names: Obj, path: str) -> list[FieldError]:
    """What is wrong with names, asked or accepted."""
    faults = []
    for key in ("plural", "singular", "kind", "listKind"):
        name = names.get(key) or ""
        is_kind = key in ("kind", "listKind")
        fault = label_1035_fault(name.lower() if is_kind else name) if name else ""
        if fault:
            faults.append(bad_value(f"{path}.{key}", name, f"{_MIXED}{fault}" if is_kind else fault))
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            if fault := label_1035_fault(name):
                faults.append(bad_value(f"{path}.{key}[{index}]", name, fault))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        faults.append(bad_value(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return faults


def _subresource_errors(subresources: Obj, path: str) -> list[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return []
    faults = []
    for key, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        where, value = f"{path}.scale.{key}", scale.get(key) or ""
        if not value:
            if key != "labelSelectorPath":
                faults.append(required(where))
        elif not value.startswith("."):
            faults.append(bad_value(where, value, "must be a simple json path starting with ."))
        elif not value.startswith(roots):
            faults.append(bad_value(where, value, words))
    return faults


def _column_errors(columns: list[Obj], path: str) -> list[FieldError]:
    faults = []
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        kind, form, json_path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
        if not column.get("name"):
            faults.append(required(f"{where}.name"))
        words = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            faults.append(required(f"{where}.type", words))
        elif kind not in _COLUMN_TYPES:
            faults.append(bad_value(f"{where}.type", kind, words))
        if form and form not in _COLUMN_FORMATS:
            faults.append(bad_value(f"{where}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
        if not json_path:
            faults.append(required(f"{where}.JSONPath"))
        elif not json_path.startswith("."):
            faults.append(bad_value(f"{where}.JSONPath", json_path, "must be a simple json path starting with ."))
    return faults


def _selectable_errors(version: Obj, path: str) -> list[FieldError]:
    published = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    faults = []
    seen: set[str] = set()
    for index, one in enumerate(version.get("selectableFields") or ()):
        where, written = f"{path}[{index}].jsonPath", one.get("jsonPath", "")
        if not written:
            faults.append(required(where))
            continue
        found, fault = _selected(published, written)
        if fault:
            faults.append(bad_value(where, written, f"is an invalid path: {fault}"))
            continue
        if written.startswith(".metadata"):
            faults.append(bad_value(where, written, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
            )
            faults.append(bad_value(where, written, f"{words}are allowed."))
        if written in seen:
            faults.append(duplicate(where, written))
        seen.add(written)
    if len(seen) > _MOST_SELECTABLE:
        faults.append(too_many(path, len(seen), _MOST_SELECTABLE))
    return faults


def _selected(published: Obj, path: str) -> tuple[Obj, str]:
    """The schema that a path leads to, or why it leads nowhere."""
    if "[" in path:
        return {}, "array notation is not allowed"
    if not path.startswith("."):
        return {}, f"expected [ or . but got: {path.partition('.')[0]}"
    at = published
    for step in path[1:].split("."):
        properties = at.get("properties") or {}
        if step not in properties:
            return {}, "does not refer to a valid field"
        at = properties[step]
    return at, ""

"""The objects that a policy binding gives to its policy as `params`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.builtin_conversion import convert_builtin
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.dynamic.versions import Convert
from shoal.embedded.apiserver.label_selectors import selects
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]


class ParametersError(Exception):
    """A binding does not lead to parameters; the failure policy decides what that means."""


class Parameters:
    def __init__(self, catalog: ResourceCatalog, reader: Reader, convert: Convert) -> None:
        self._catalog = catalog
        self._reader = reader
        self._convert = convert

    def resource(self, kind: Mapping[str, Any] | None) -> Resource | None:
        """What a policy's paramKind is; None without one. ParametersError where nothing like it is served."""
        if not kind:
            return None
        version = str(kind.get("apiVersion", ""))
        group, _, short = version.rpartition("/")
        found = self._catalog.by_kind(group, short, str(kind.get("kind", "")))
        if found is None:
            shown = f"{version if group else '/' + version}, Kind={kind.get('kind', '')}"
            raise ParametersError(f"failed to find resource referenced by paramKind: '{shown}'")
        return found

    async def of(self, resource: Resource | None, ref: Mapping[str, Any] | None, namespace: str) -> list[Obj | None]:
        """Each is evaluated with by itself; without parameters the policy is evaluated once, with null."""
        if resource is None or ref is None:
            return [None]
        found = self._found(resource, ref, self._namespace(resource, ref, namespace))
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise ParametersError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [await self._shown(one, resource) for one in found]

    def _namespace(self, resource: Resource, ref: Mapping[str, Any], namespace: str) -> str:
        named = str(ref.get("namespace") or "")
        if resource.namespaced:
            if not named and not namespace:
                raise ParametersError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
            return named or namespace
        if named:
            raise ParametersError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""

    def _found(self, resource: Resource, ref: Mapping[str, Any], namespace: str) -> list[Obj]:
        home, name, selector = resource.home, ref.get("name"), ref.get("selector")
        if name and selector is not None:
            raise ParametersError("paramRef.name and paramRef.selector are mutually exclusive")
        if name:
            one = self._reader.get(home.group, home.plural, namespace, name)
            return [] if one is None else [one]
        if selector is None:
            raise ParametersError("one of name or selector must be provided")
        every = self._reader.all(home.group, home.plural, namespace if resource.namespaced else None)
        return [one for one in every if selects(selector, one["metadata"].get("labels") or {})]

    async def _shown(self, obj: Obj, resource: Resource) -> Obj:
        if obj.get("apiVersion") == resource.api_version:
            return obj
        if resource.is_custom:
            return (await self._convert([obj], resource.api_version, resource))[0]
        return convert_builtin(obj, resource.api_version)

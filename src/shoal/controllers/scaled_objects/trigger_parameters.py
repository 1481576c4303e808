"""Reads the parameters that a trigger gets from its authentication and from the environment of the target."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import FROM_ENVIRONMENT, TriggerError
from shoal.client.ecosystem_kinds import CLUSTER_TRIGGER_AUTHENTICATIONS, TRIGGER_AUTHENTICATIONS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, SECRETS, Kind
from shoal.client.port import Api
from shoal.client.refusals import NotFoundError

_CLUSTER_NAMESPACE = "keda"
"""Of the Secrets that a ClusterTriggerAuthentication names."""
_VAULTS = ("hashiCorpVault", "azureKeyVault", "gcpSecretManager", "awsSecretManager")
PodSpec = Mapping[str, Any]
FindPodSpec = Callable[[], Awaitable[PodSpec]]
"""The spec of the pods that are scaled; empty if the target has no template of pods."""


class TriggerParameters:
    def __init__(self, api: Api, namespace: str, pod_spec: FindPodSpec, container: str) -> None:
        """`container`: whose environment counts; empty: the first one."""
        self._api = api
        self._namespace = namespace
        self._pod_spec = pod_spec
        self._container = container
        self._environments: dict[str, dict[str, str]] = {}

    async def environment(self, trigger: Trigger) -> dict[str, str]:
        """Empty if no parameter names a variable. Raises TriggerError."""
        if not any(name.endswith(FROM_ENVIRONMENT) for name in trigger.metadata):
            return {}
        return await self._environment(self._container)

    async def authentication(self, trigger: Trigger) -> dict[str, str]:
        """Raises TriggerError."""
        reference = trigger.authentication_ref
        if reference is None:
            return {}
        is_cluster = reference.kind == "ClusterTriggerAuthentication"
        kind = CLUSTER_TRIGGER_AUTHENTICATIONS if is_cluster else TRIGGER_AUTHENTICATIONS
        name = f"{kind.name} {reference.name}"
        try:
            found = (await self._api.get(kind, "" if is_cluster else self._namespace, reference.name)).obj()
        except NotFoundError:
            raise TriggerError(f"error getting {name}: it does not exist") from None
        spec = found.get("spec") or {}
        _check(name, spec)
        where = _CLUSTER_NAMESPACE if is_cluster else self._namespace
        values: dict[str, str] = {}
        for one in spec.get("env") or ():
            variables = await self._environment(one.get("containerName") or self._container)
            values[one["parameter"]] = variables.get(one["name"], "")
        for source, key in ((SECRETS, "secretTargetRef"), (CONFIG_MAPS, "configMapTargetRef")):
            for one in spec.get(key) or ():
                values[one["parameter"]] = await self._value(source, where, one["name"], one["key"])
        return values

    # -- the environment --------------------------------------------------------------------------------------------

    async def _environment(self, container: str) -> dict[str, str]:
        if container not in self._environments:
            self._environments[container] = await self._read_environment(container)
        return self._environments[container]

    async def _read_environment(self, container: str) -> dict[str, str]:
        containers = (await self._pod_spec()).get("containers") or ()
        found = next((one for one in containers if container in ("", one["name"])), None)
        if found is None:
            what = f"has no container {container}" if container else "has no template of pods"
            raise TriggerError(f"the target {what}, whose environment the trigger names")
        values: dict[str, str] = {}
        for one in found.get("envFrom") or ():
            for kind, key in ((CONFIG_MAPS, "configMapRef"), (SECRETS, "secretRef")):
                if reference := one.get(key):
                    data = await self._data(kind, self._namespace, reference["name"], bool(reference.get("optional")))
                    prefix = one.get("prefix") or ""
                    texts = ((name, _text_or_none(kind, written)) for name, written in data.items())
                    values |= {prefix + name: text for name, text in texts if text is not None}
        for one in found.get("env") or ():
            text = await self._variable(one)
            if text is not None:
                values[one["name"]] = text
        return values

    async def _variable(self, one: Obj) -> str | None:
        """`None`: it has no value that can be known outside of a pod."""
        if "valueFrom" not in one:
            return str(one.get("value") or "")
        for kind, key in ((CONFIG_MAPS, "configMapKeyRef"), (SECRETS, "secretKeyRef")):
            if reference := one["valueFrom"].get(key):
                is_optional = bool(reference.get("optional"))
                data = await self._data(kind, self._namespace, reference["name"], is_optional)
                if reference["key"] not in data and is_optional:
                    return None
                return await self._value(kind, self._namespace, reference["name"], reference["key"])
        return None

    # -- Secrets and ConfigMaps -------------------------------------------------------------------------------------

    async def _data(self, kind: Kind, namespace: str, name: str, is_optional: bool) -> dict[str, str]:
        try:
            return (await self._api.get(kind, namespace, name)).obj().get("data") or {}
        except NotFoundError:
            if is_optional:
                return {}
            raise TriggerError(f"{kind.name} {namespace}/{name} does not exist") from None

    async def _value(self, kind: Kind, namespace: str, name: str, key: str) -> str:
        data = await self._data(kind, namespace, name, False)
        if key not in data:
            raise TriggerError(f"{kind.name} {namespace}/{name} has no key {key}")
        try:
            return _text(kind, data[key])
        except (binascii.Error, UnicodeDecodeError):
            raise TriggerError(f"key {key} of {kind.name} {namespace}/{name} is no text") from None


def _check(name: str, spec: Obj) -> None:
    """Raises TriggerError for what is not supported, and says what to use instead."""
    instead = "write the credentials in a Secret and name it with secretTargetRef"
    provider = (spec.get("podIdentity") or {}).get("provider")
    if provider not in ("", "none", None):
        raise TriggerError(f"{name}: podIdentity provider {provider} is not supported; {instead}")
    for one in _VAULTS:
        if spec.get(one):
            raise TriggerError(f"{name}: {one} is not supported; {instead}")


def _text(kind: Kind, written: str) -> str:
    """Raises binascii.Error or UnicodeDecodeError."""
    return base64.b64decode(written).decode() if kind == SECRETS else str(written)


def _text_or_none(kind: Kind, written: str) -> str | None:
    """`None`: it is no text, which no variable can have as its value."""
    try:
        return _text(kind, written)
    except (binascii.Error, UnicodeDecodeError):
        return None

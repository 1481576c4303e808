"""Builds pod templates: mounts with their volumes, containers, and what the policy sets in each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from shoal.operator.policy.operands import EnvVar, Obj

FieldRef = Literal["spec.nodeName", "metadata.namespace", "metadata.name", "status.hostIP", "metadata.uid"]


class FromField(msgspec.Struct, frozen=True):
    """The value of a variable."""

    path: FieldRef


Env = Mapping[str, "str | FromField"]
NODE_NAME: Env = {"NODE_NAME": FromField("spec.nodeName")}
OWN_NAMESPACE = FromField("metadata.namespace")


class Mount(msgspec.Struct, frozen=True):
    """A mount of a container, with its volume: of the host, of a ConfigMap or Secret, or an empty folder."""

    name: str
    path: str
    host: str = ""
    kind: str = ""
    """Of the host path, such as `Directory`."""
    config_map: str = ""
    secret: str = ""
    is_read_only: bool = False
    propagation: Literal["", "HostToContainer", "Bidirectional"] = ""
    sub_path: str = ""

    def volume(self) -> Obj:
        if self.config_map:
            return {"name": self.name, "configMap": {"name": self.config_map}}
        if self.secret:
            return {"name": self.name, "secret": {"secretName": self.secret}}
        if not self.host:
            return {"name": self.name, "emptyDir": {}}
        kind = {"type": self.kind} if self.kind else {}
        return {"name": self.name, "hostPath": {"path": self.host, **kind}}

    def mount(self) -> Obj:
        found: Obj = {"name": self.name, "mountPath": self.path}
        if self.is_read_only:
            found["readOnly"] = True
        if self.propagation:
            found["mountPropagation"] = self.propagation
        if self.sub_path:
            found["subPath"] = self.sub_path
        return found


class ContainerParts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    image: str
    pull_policy: str = "IfNotPresent"
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Env = {}
    mounts: tuple[Mount, ...] = ()
    is_privileged: bool = True
    resources: Obj = {}
    more: Obj = {}
    """Further fields as the API has them: probes, ports, lifecycle."""

    def with_mounts(self, *mounts: Mount) -> ContainerParts:
        return msgspec.structs.replace(self, mounts=(*self.mounts, *mounts))

    def with_more(self, more: Obj) -> ContainerParts:
        return msgspec.structs.replace(self, more={**self.more, **more})

    def without_privileges(self) -> ContainerParts:
        return msgspec.structs.replace(self, is_privileged=False)

    def to_api(self) -> Obj:
        found: Obj = {"name": self.name, "image": self.image, "imagePullPolicy": self.pull_policy}
        if self.command:
            found["command"] = list(self.command)
        if self.args:
            found["args"] = list(self.args)
        if self.env:
            found["env"] = [_variable(name, value) for name, value in self.env.items()]
        if self.is_privileged:
            found["securityContext"] = {"privileged": True}
        else:
            found["securityContext"] = {"allowPrivilegeEscalation": False}
        if self.resources:
            found["resources"] = self.resources
        if self.mounts:
            found["volumeMounts"] = [one.mount() for one in self.mounts]
        return found | self.more


class PodParts(msgspec.Struct, frozen=True, kw_only=True):
    containers: tuple[ContainerParts, ...]
    init: tuple[ContainerParts, ...] = ()
    runtime_class: str = ""
    is_on_host_network: bool = False
    sees_host_processes: bool = False
    shares_processes: bool = False
    pull_secrets: tuple[str, ...] = ()
    more: Obj = {}

    def with_containers(
        self,
        init: tuple[ContainerParts, ...],
        containers: tuple[ContainerParts, ...],
        *,
        shares_processes: bool = False,
    ) -> PodParts:
        return msgspec.structs.replace(self, init=init, containers=containers, shares_processes=shares_processes)

    def to_api(self) -> Obj:
        found: Obj = {}
        if self.init:
            found["initContainers"] = [one.to_api() for one in self.init]
        found["containers"] = [one.to_api() for one in self.containers]
        volumes = volumes_of(mount for one in (*self.init, *self.containers) for mount in one.mounts)
        if volumes:
            found["volumes"] = volumes
        if self.runtime_class:
            found["runtimeClassName"] = self.runtime_class
        if self.is_on_host_network:
            found |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if self.sees_host_processes:
            found["hostPID"] = True
        if self.shares_processes:
            found["shareProcessNamespace"] = True
        if self.pull_secrets:
            found["imagePullSecrets"] = [{"name": one} for one in dict.fromkeys(self.pull_secrets)]
        return found | self.more


def volumes_of(mounts: Iterable[Mount]) -> list[Obj]:
    """Each volume once."""
    return list({one.name: one.volume() for one in mounts}.values())


def with_env(env: Env, given: Sequence[EnvVar]) -> dict[str, str | FromField]:
    """The variables of the policy take precedence."""
    return {**env, **{one.name: one.value for one in given}}


def _variable(name: str, value: str | FromField) -> dict[str, Any]:
    if isinstance(value, FromField):
        return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": value.path}}}
    return {"name": name, "value": value}

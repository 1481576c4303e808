"""Declares the fields that the components of a ClusterPolicy have in common."""

from __future__ import annotations

from typing import Any

import msgspec

Obj = dict[str, Any]


class PolicyStruct(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A part of the spec. Unknown fields are reported by `reading.py`, so they do not fail here."""


class EnvVar(PolicyStruct, frozen=True):
    name: str
    value: str = ""


class ImageFields(PolicyStruct, frozen=True):
    repository: str = ""
    image: str = ""
    version: str = ""
    """A tag, or a digest such as `sha256:...`."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the policy names an image, so that Shoal's own is not used."""
        return bool(self.repository or self.image)


class Operand(ImageFields, frozen=True):
    """A component. The default of `enabled` is that of NVIDIA's chart."""

    enabled: bool = True
    resources: Obj = {}
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    host_network: bool = False

    def env_value(self, name: str) -> str:
        """The value of a variable; empty if the policy does not set it. The last of several applies."""
        return next((one.value for one in reversed(self.env) if one.name == name), "")


class OffOperand(Operand, frozen=True):
    """A component that NVIDIA's chart does not enable."""

    enabled: bool = False


class ConfigReference(msgspec.Struct, frozen=True):
    name: str = ""
    """Of the ConfigMap."""
    default: str = ""
    """The key for nodes without a label."""


class ConfigName(PolicyStruct, frozen=True):
    name: str = ""


class ComponentEnv(PolicyStruct, frozen=True):
    env: tuple[EnvVar, ...] = ()


class Switch(PolicyStruct, frozen=True):
    enabled: bool = False

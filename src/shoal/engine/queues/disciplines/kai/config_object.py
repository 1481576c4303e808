"""Defines the Config of KAI's operator as the rules read it: which label names the node pool."""

from __future__ import annotations

import msgspec
from msgspec import field

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.api.meta import ObjectMeta
from shoal.api.names import label_key_fault

CONFIG_NAME = "kai-config"
"""KAI's operator reads the Config of this name only."""


class GlobalConfig(msgspec.Struct, rename="camel", frozen=True):
    node_pool_label_key: str | None = None


class KaiConfigSpec(msgspec.Struct, frozen=True):
    global_: GlobalConfig | None = field(default=None, name="global")


class KaiConfig(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: KaiConfigSpec = field(default_factory=KaiConfigSpec)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def pool_label(self) -> str:
        """The label that names the node pool; the usual one if none is set, or if it is no label."""
        key = self.spec.global_.node_pool_label_key if self.spec.global_ is not None else None
        return NODE_POOL_LABEL if not key or label_key_fault(key) else key

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with it."""
        key = self.spec.global_.node_pool_label_key if self.spec.global_ is not None else None
        fault = label_key_fault(key) if key else ""
        if not fault:
            return ()
        words = f"Config {self.name}: spec.global.nodePoolLabelKey: {fault}: node pools are named by {NODE_POOL_LABEL}"
        return (words,)

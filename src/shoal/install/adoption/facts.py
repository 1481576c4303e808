"""What the plan of an adoption is made from: objects of the other project as the cluster has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.install.adoption.projects import AdoptedKind
from shoal.install.preflight.facts import Right

Obj = dict[str, Any]


class AdoptionFacts(msgspec.Struct, frozen=True):
    deployments: tuple[Obj, ...] = ()
    """Of all namespaces."""
    hooks: tuple[Obj, ...] = ()
    """All configurations of admission webhooks."""
    definitions: tuple[Obj, ...] = ()
    api_services: tuple[Obj, ...] = ()
    objects: Mapping[AdoptedKind, tuple[Obj, ...]] = {}
    settings: Mapping[str, str] = {}
    """The data of the ConfigMap of the project."""
    pods: int = 0
    """Pods with a node that one of its schedulers placed."""
    reservation_pods: int = 0
    """Of KAI: they hold GPUs whose parts other pods use."""
    denied: tuple[Right, ...] = ()

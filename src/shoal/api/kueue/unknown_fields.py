"""Reports unknown fields of Kueue's configuration: a typing error must not pass in silence.

Kueue reads its file strictly. We model only what decides, so that the rest has to be known by name: what the file says
of the process that Kueue is, is accepted unchanged, at any depth.

Rejected: refusing what the types do not have. Then no file that a cluster runs Kueue with could be read.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.yaml_text import read_yaml
from shoal.units.errors import UserError, Where

_PROCESS = (
    *("apiVersion", "kind", "metadata", "health", "metrics", "webhook", "leaderElection", "controller", "tls"),
    *("pprofBindAddress", "internalCertManagement", "clientConnection", "multiKueue", "objectRetentionPolicies"),
    *("queueVisibility", "syncPeriod", "cacheNamespace", "gracefulShutDown", "visibility"),
)
"""Those of older versions too; nothing below them is looked at."""

Fields = Mapping[str, Any]
_ANY: Fields = {}
"""Any value."""
_SELECTOR = {"matchLabels": _ANY, "matchExpressions": [dict.fromkeys(("key", "operator", "values"), _ANY)]}

_KNOWN: Fields = {
    **dict.fromkeys(_PROCESS, _ANY),
    **dict.fromkeys(("namespace", "manageJobsWithoutQueueName", "featureGates"), _ANY),
    "managedJobsNamespaceSelector": _SELECTOR,
    "waitForPodsReady": {
        **dict.fromkeys(("enable", "timeout", "recoveryTimeout", "blockAdmission"), _ANY),
        "requeuingStrategy": dict.fromkeys(
            ("timestamp", "backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds"), _ANY
        ),
    },
    "integrations": {
        **dict.fromkeys(("frameworks", "externalFrameworks", "labelKeysToCopy"), _ANY),
        "podOptions": {"namespaceSelector": _SELECTOR, "podSelector": _SELECTOR},
    },
    "fairSharing": dict.fromkeys(("enable", "preemptionStrategies"), _ANY),
    "admissionFairSharing": dict.fromkeys(("usageHalfLifeTime", "usageSamplingInterval", "resourceWeights"), _ANY),
    "resources": {
        **dict.fromkeys(("quotaCheckStrategy", "excludeResourcePrefixes", "deviceClassMappings"), _ANY),
        "transformations": [dict.fromkeys(("input", "strategy", "multiplyBy", "outputs"), _ANY)],
    },
    "shoal": dict.fromkeys(
        ("placement", "reservations", "lostWork", "minRuntime", "respectBudgets", "gpuEquivalents"), _ANY
    ),
}


def strays(text: str, file: str = "") -> Iterator[UserError]:
    """One for each such field of the configurations in a text that has been read without fault."""
    for number, value in read_yaml(text, file):
        is_kueues = isinstance(value, dict) and str(value.get("apiVersion")).startswith("config.kueue.x-k8s.io/")
        if is_kueues and value.get("kind") == "Configuration":
            yield from _below(value, _KNOWN, Where(file=file, document=number, obj="Configuration"))


def _below(value: Any, known: Any, where: Where) -> Iterator[UserError]:
    if isinstance(known, list) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from _below(each, known[0], where.below(f"[{index}]"))
    elif isinstance(known, dict) and known and isinstance(value, dict):
        for name, inner in value.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                yield UserError(
                    "unknown field", where=where.key(str(name)), fix=f"did you mean {near[0]}?" if near else ""
                )
            else:
                yield from _below(inner, known[name], where.below(name))

"""Reads the annotations by which a Deployment, StatefulSet or LeaderWorkerSet of model servers asks to be scaled.

`serving.shoal.dev/max-replicas` turns it on; all others have usual values. An annotation that cannot be read is an
error that names it, and nothing is scaled: a policy that is read only in part would scale by the wrong rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from shoal.autoscale.serving.replicas import ServingPolicy, ServingPrices
from shoal.units.durations import DurationError, nanoseconds

PREFIX = "serving.shoal.dev/"
MAX_REPLICAS = f"{PREFIX}max-replicas"
STATUS = f"{PREFIX}status"
"""Written by the controller: what was decided last, and why."""
_USUAL_PORT, _USUAL_PATH = 8000, "/metrics"
_USUAL_QUEUE = "inference_extension_flow_control_queue_size"
_KNOWN = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "max-replicas",
        "min-replicas",
        "target-concurrency",
        "ttft-objective",
        "cache-limit",
        "window",
        "warm-up",
        "metrics-port",
        "metrics-path",
        "queue-url",
        "queue-metric",
        "replica-price-per-hour",
        "cold-start-cost",
        "status",
    )
)


class AnnotationError(ValueError):
    """An annotation cannot be read."""


class QueueEndpoint(Struct, frozen=True):
    """Where the requests that wait outside of the replicas are counted, by a metric in Prometheus' text."""

    url: str
    metric: str


class ServingSettings(Struct, frozen=True):
    policy: ServingPolicy
    prices: ServingPrices = ServingPrices()
    port: int = _USUAL_PORT
    path: str = _USUAL_PATH
    warm_up_s: float = 0.0
    queue: QueueEndpoint | None = None


def is_asked_for(annotations: Mapping[str, str]) -> bool:
    return MAX_REPLICAS in annotations


def serving_settings(annotations: Mapping[str, str]) -> ServingSettings:
    """Raises AnnotationError."""
    unknown = sorted(name for name in annotations if name.startswith(PREFIX) and name not in _KNOWN)
    if unknown:
        raise AnnotationError(f"annotation {unknown[0]} is not known")
    read = _Annotations(annotations)
    usual = ServingPolicy()
    url = read.text("queue-url")
    if url and not url.startswith(("http://", "https://")):
        raise AnnotationError(f"annotation {PREFIX}queue-url: write http://HOST:PORT/PATH or https://HOST:PORT/PATH")
    path = read.text("metrics-path") or _USUAL_PATH
    if not path.startswith("/"):
        raise AnnotationError(f"annotation {PREFIX}metrics-path: the path begins with /")
    most = read.count("max-replicas", 1)
    least = read.count("min-replicas", 0, usual.least)
    if least > most:
        raise AnnotationError(f"annotation {PREFIX}min-replicas: {least} is above max-replicas {most}")
    limit = read.number("cache-limit", usual.cache_limit)
    if limit > 1:
        raise AnnotationError(f"annotation {PREFIX}cache-limit: {limit:g} is above 1")
    return ServingSettings(
        ServingPolicy(
            read.number("target-concurrency", usual.target_concurrency),
            read.seconds("ttft-objective") or None,
            limit,
            min(usual.cache_after_limit, limit),
            least,
            most,
            read.seconds("window", usual.window_s),
            is_buffered=bool(url),
        ),
        ServingPrices(read.number("replica-price-per-hour", 0.0), read.number("cold-start-cost", 0.0)),
        read.count("metrics-port", 1, _USUAL_PORT),
        path,
        read.seconds("warm-up"),
        QueueEndpoint(url, read.text("queue-metric") or _USUAL_QUEUE) if url else None,
    )


class _Annotations:
    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations

    def text(self, name: str) -> str:
        return self._annotations.get(PREFIX + name, "").strip()

    def count(self, name: str, least: int, usual: int = 0) -> int:
        text = self.text(name)
        if not text and PREFIX + name not in self._annotations:
            return usual
        if not text.isdecimal() or len(text) > 6 or int(text) < least:
            raise AnnotationError(f'annotation {PREFIX}{name}: "{text}" is not a whole number of at least {least}')
        return int(text)

    def number(self, name: str, usual: float) -> float:
        """Positive, or the usual value."""
        text = self.text(name)
        if not text:
            return usual
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or found <= 0:
            raise AnnotationError(f'annotation {PREFIX}{name}: "{text}" is not a number above 0')
        return found

    def seconds(self, name: str, usual: float = 0.0) -> float:
        text = self.text(name)
        if not text:
            return usual
        try:
            found = nanoseconds(text) / 1e9
        except DurationError:
            found = -1.0
        if found < 0:
            raise AnnotationError(f'annotation {PREFIX}{name}: "{text}" is not a duration such as 500ms or 2m')
        return found

"""Reads the state of a pod from the server, the only way to know it after a write whose answer was lost."""

from __future__ import annotations

import logging
from enum import Enum

import msgspec

from shoal.api.partial import DeletionMeta, PartialPodSpec
from shoal.client.context import Context
from shoal.client.kind import PODS
from shoal.client.refusals import NotFoundError
from shoal.store.watched.pod_views import PodView
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.scheduler")
_PAUSE_S = 0.5


class ServerPodState(Enum):
    PENDING = "waits"
    """On no node, and may be bound."""
    BOUND = "bound"
    """Bound to a node, by any scheduler."""
    GONE = "over"
    """Gone, going, or another pod has its name."""


class _PlacedPod(msgspec.Struct):
    metadata: DeletionMeta
    spec: PartialPodSpec


async def state_of(context: Context, view: PodView) -> ServerPodState:
    """Asked until there is an answer; the caches know it too when this returns."""
    while True:
        try:
            item = await context.api.get(PODS, view.namespace, view.name)
        except NotFoundError:
            return ServerPodState.GONE
        except TemporaryError as busy:
            await context.clock.sleep(max(busy.delay_s, _PAUSE_S))
            continue
        except ShoalError as error:
            _log.warning("pod %s cannot be read: %s", view.key, error)
            found = context.informers.of(PODS).get(view.namespace, view.name)
            if found is None:
                return ServerPodState.GONE
            item = found
        break
    pod = item.read(_PlacedPod)
    if item.uid != view.uid or pod.metadata.deletion_timestamp is not None:
        return ServerPodState.GONE
    return ServerPodState.BOUND if pod.spec.node_name else ServerPodState.PENDING

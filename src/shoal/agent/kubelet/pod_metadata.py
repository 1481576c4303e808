"""Reads the UIDs and labels of a node's pods from the API server.

The kubelet names pods without them. The pods of the node are listed again after a while, and sooner if a pod is
unknown. While the API server does not answer, known pods keep what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from urllib.parse import quote

import msgspec

from shoal.agent.kubelet.api_reader import ApiReader
from shoal.units.errors import TemporaryError

_USUAL_S, _SOONEST_S = 60.0, 5.0


class PodMetadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}


class _ListedPod(msgspec.Struct, frozen=True):
    metadata: PodMetadata


class _PodList(msgspec.Struct, frozen=True):
    items: list[_ListedPod] = []


class PodsOfNode:
    def __init__(self, api: ApiReader, node: str, seconds: Callable[[], float] = monotonic) -> None:
        self._api, self._seconds = api, seconds
        self._path = f"/api/v1/pods?resourceVersion=0&fieldSelector={quote(f'spec.nodeName={node}', safe='')}"
        self._pods: Mapping[tuple[str, str], PodMetadata] = {}
        self._listed_s: float | None = None

    def find(self, namespace: str, name: str) -> PodMetadata | None:
        """None for a pod that the API server does not list. Raises `TemporaryError` if it does not answer."""
        age_s = None if self._listed_s is None else self._seconds() - self._listed_s
        is_known = (namespace, name) in self._pods
        if age_s is None or age_s >= (_USUAL_S if is_known else _SOONEST_S):
            self._listed_s = self._seconds()
            try:
                self._list()
            except TemporaryError:
                if not is_known:
                    raise
        return self._pods.get((namespace, name))

    def _list(self) -> None:
        try:
            found = msgspec.json.decode(self._api.get(self._path), type=_PodList)
        except msgspec.DecodeError as error:
            raise TemporaryError(f"the list of pods cannot be read: {error}", _SOONEST_S) from error
        self._pods = {(pod.metadata.namespace, pod.metadata.name): pod.metadata for pod in found.items}

"""Determines the node and pod of a request, although all nodes listen on one port.

The API server of this project sends the node in a header. Other clients name a pod, which is on one node, or put the
node in front of the path; a fleet of one node needs neither.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from shoal.embedded.apiserver.streams.kubelets import NODE_HEADER
from shoal.embedded.kubelets.node_view import NodeView, NodeViews

Obj = dict[str, Any]
_SPECS = ("containers", "initContainers", "ephemeralContainers")


class KubeletRefusal(Exception):  # noqa: N818 - it is an answer and not an error
    """The refusal of a request: a status code and one line of text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class NodeUnreachable(Exception):  # noqa: N818 - not an error of the request
    """The node does not run or cannot be reached: the connection ends without a response."""


class RequestTargets:
    def __init__(self, nodes: NodeViews) -> None:
        self._nodes = nodes

    def is_named(self, request: web.Request) -> bool:
        return bool(request.match_info.get("node") or request.headers.get(NODE_HEADER))

    def node(self, request: web.Request) -> NodeView:
        """The node that a request names, in any of these ways."""
        name = request.match_info.get("node") or request.headers.get(NODE_HEADER, "")
        if not name:
            names = self._nodes.names()
            if len(names) != 1:
                raise KubeletRefusal(400, f"{len(names)} nodes listen here: name one in the header {NODE_HEADER}")
            name = names[0]
        found = self._nodes.node(name)
        if found is None:
            raise KubeletRefusal(404, f'node "{name}" is not simulated here')
        if not found.is_reachable():
            raise NodeUnreachable
        return found

    def pod(self, request: web.Request, missing: str) -> tuple[NodeView, Obj]:
        """The pod of the path and its node; `missing`: the message if the pod does not exist."""
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        nodes = (
            [self.node(request)] if self.is_named(request) else filter(None, map(self._nodes.node, self._nodes.names()))
        )
        for node in nodes:
            pod = node.pod(namespace, name)
            if pod is not None:
                if not node.is_reachable():
                    raise NodeUnreachable
                return node, pod
        raise KubeletRefusal(404, missing)


def has_container(pod: Obj, name: str) -> bool:
    spec = pod.get("spec") or {}
    return any(one.get("name") == name for key in _SPECS for one in spec.get(key) or ())

"""`exec` as the API server sees it: whether the request makes sense, and the canned answer where no kubelet gives one.

Errors of the request are reported before the connection is upgraded, as an ordinary answer.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web
from multidict import MultiMapping

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.embedded.apiserver.status import ApiError, bad_request
from shoal.embedded.apiserver.streams.channels import RequestedChannels, say
from shoal.embedded.apiserver.streams.containers import chosen_container
from shoal.embedded.apiserver.streams.terminal import CommandPlace, Terminal

Obj = dict[str, Any]
_TRUE = ("1", "t", "true")


class ExecRequest(msgspec.Struct, frozen=True):
    """A command to run, in a container that is there."""

    container: Obj
    command: tuple[str, ...]
    wanted: RequestedChannels


def asked_of(pod: Obj, query: MultiMapping[str]) -> ExecRequest:
    """ApiError where the request makes no sense."""
    container = _container(pod, query.get("container", ""))
    command = tuple(query.getall("command", []))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    wants = {one: query.get(one, "").lower() in _TRUE for one in ("stdin", "stdout", "stderr", "tty")}
    if not any(wants[one] for one in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    return ExecRequest(container, command, RequestedChannels(**wants))


async def exec_pod(request: web.BaseRequest, pod: Obj, node: Obj | None, terminal: Terminal) -> web.StreamResponse:
    """Answer one exec request on a pod; `node` is the one it is bound to."""
    asked = asked_of(pod, request.query)
    answer = terminal.run(CommandPlace(pod, asked.container, node), asked.command)
    return await say(request, answer, asked.wanted)


def _container(pod: Obj, name: str) -> Obj:
    spec, pod_name = pod.get("spec") or {}, pod["metadata"]["name"]
    if not spec.get("nodeName"):
        raise bad_request(f"pod {pod_name} does not have a host assigned")
    phase = (pod.get("status") or {}).get("phase")
    if phase in TERMINAL_PHASES:
        raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    return chosen_container(pod, name)


def refused_stream(subresource: str) -> ApiError:
    """Attach, port-forward and proxy need a process to talk to, and simulated pods have none."""
    return bad_request(f"{subresource} is not possible here: pods of this cluster are simulated and run no process")

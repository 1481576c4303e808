"""`exec` and `attach` as the API server sees them: whether the request makes sense, and the answer to `exec` where no
kubelet gives one.

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
    container = _container(pod, query.get("container", ""), "exec into")
    command = tuple(query.getall("command", []))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    return ExecRequest(container, command, _channels(query))


def attach_of(pod: Obj, query: MultiMapping[str]) -> ExecRequest:
    """A request without a command. ApiError where it makes no sense."""
    return ExecRequest(_container(pod, query.get("container", ""), "attach"), (), _channels(query))


def _channels(query: MultiMapping[str]) -> RequestedChannels:
    wants = {one: query.get(one, "").lower() in _TRUE for one in ("stdin", "stdout", "stderr", "tty")}
    if not any(wants[one] for one in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    return RequestedChannels(**wants)


async def exec_pod(request: web.BaseRequest, pod: Obj, node: Obj | None, terminal: Terminal) -> web.StreamResponse:
    """Answer one exec request on a pod; `node` is the one it is bound to."""
    asked = asked_of(pod, request.query)
    answer = terminal.run(CommandPlace(pod, asked.container, node), asked.command)
    return await say(request, answer, asked.wanted)


def _container(pod: Obj, name: str, what: str) -> Obj:
    check_host(pod)
    phase = (pod.get("status") or {}).get("phase")
    if phase in TERMINAL_PHASES:
        raise bad_request(f"cannot {what} a container in a completed pod; current phase is {phase}")
    return chosen_container(pod, name)


def check_host(pod: Obj) -> None:
    if not (pod.get("spec") or {}).get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")


def refused_stream(subresource: str) -> ApiError:
    """Attach, port-forward and proxy need a process to talk to, and simulated pods have none."""
    return bad_request(f"{subresource} is not possible here: pods of this cluster are simulated and run no process")

"""Policies are asked before a conversation with a pod is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from build.planes import ADMIN, Operations, operations
from shoal.embedded.apiserver.request_info import RequestInfo, parse_path
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.server.upgrades import Upgrades
from shoal.embedded.apiserver.status import ApiError

GROUP = "admissionregistration.k8s.io"
POLICY: Obj = {
    "metadata": {"name": "no-shells"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
            ]
        },
        "validations": [{"expression": "!object.command.exists(word, word == 'sh')", "message": "no shells here"}],
    },
}
BINDING: Obj = {"metadata": {"name": "no-shells"}, "spec": {"policyName": "no-shells", "validationActions": ["Deny"]}}


async def opened(api: Operations, *command: str) -> web.StreamResponse | None:
    async def talk(_: web.BaseRequest, __: RequestInfo, ___: Resource, ____: object) -> web.StreamResponse:
        return web.Response(text="talking")

    path = "/api/v1/namespaces/default/pods/p/exec"
    query = "&".join(f"command={word}" for word in command)
    request = make_mocked_request("GET", f"{path}?{query}&stdout=true")
    upgrades = Upgrades(api.context, {("", "pods", "exec"): talk})
    return await upgrades.serve(request, parse_path(path), api.resource("pods"), ADMIN)


async def test_a_policy_on_connect_decides_which_commands_may_be_run(tmp_path: Path) -> None:
    async with operations(tmp_path) as api:
        await api.create("validatingadmissionpolicies", POLICY, group=GROUP)
        await api.create("validatingadmissionpolicybindings", BINDING, group=GROUP)
        assert await opened(api, "nvidia-smi") is not None
        with pytest.raises(ApiError) as refused:
            await opened(api, "sh")
        assert "no shells here" in refused.value.message

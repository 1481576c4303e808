"""Changes of objects that others write all the time: each is made in a bounded number of tries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.planes import Operations, config_map, operations
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.patching import patch
from shoal.embedded.apiserver.state.record import Record, Write
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
LARGE = {f"k{number}": "v" * 20 for number in range(2_000)}
CONFIGURATION = "admissionregistration.k8s.io"
RULES = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["configmaps"]}]


class Rival:
    """Writes the object each time that it may, while a change of it is worked out."""

    def __init__(self, ops: Operations) -> None:
        self.ops = ops
        self.ref = ops.resource("configmaps").ref("default", "a")
        self.was_locked: list[bool] = []

    async def make(self, present: Obj) -> Obj:
        state = self.ops.state
        self.was_locked.append(state.is_locked(self.ref))
        if not self.was_locked[-1]:
            record = state.get(self.ref)
            assert record is not None
            obj = record.obj()
            obj["metadata"]["annotations"] = {"writes": str(len(self.was_locked))}
            async with state.lock(self.ref):
                await state.commit([Write(self.ref, obj, record, record.uid, {}, {})])
        return {**present, "data": {**present["data"], "mine": "1"}}


async def changed(ops: Operations, rival: Rival) -> Obj:
    found = await change(ops.context, ops.call("patch", "configmaps", "a"), rival.make)
    assert isinstance(found, Record)
    return found.obj()


async def configure(ops: Operations, kind: str, plural: str, more: Obj) -> None:
    obj = {"kind": kind, "apiVersion": f"{CONFIGURATION}/v1", "metadata": {"name": "n.example.com"}, **more}
    await ops.create(plural, obj, CONFIGURATION)


async def test_a_large_object_that_is_written_at_each_try_is_changed_under_its_lock(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        await ops.create("configmaps", config_map("a", **LARGE))
        rival = Rival(ops)
        obj = await changed(ops, rival)
        assert obj["data"]["mine"] == "1"
        assert obj["metadata"]["annotations"] == {"writes": "5"}
        assert rival.was_locked == [False] * 5 + [True]


async def test_policies_are_asked_under_the_lock(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        validations = [{"expression": "object.data.mine == '1'"}]
        policy = {"matchConstraints": {"resourceRules": RULES}, "validations": validations}
        await configure(ops, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", {"spec": policy})
        binding = {"policyName": "n.example.com", "validationActions": ["Deny"]}
        kind = "ValidatingAdmissionPolicyBinding"
        await configure(ops, kind, "validatingadmissionpolicybindings", {"spec": binding})
        await ops.create("configmaps", config_map("a", k="v"))
        rival = Rival(ops)
        assert (await changed(ops, rival))["data"] == {"k": "v", "mine": "1"}
        assert rival.was_locked == [True]
        with pytest.raises(ApiError, match="denied request"):
            await patch(ops.context, ops.call("patch", "configmaps", "a"), "merge", {"data": {"mine": "2"}}, [])


async def test_webhooks_are_asked_without_the_lock_and_a_change_that_starves_is_a_conflict(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        hook = {
            "name": "n.example.com",
            "rules": RULES,
            "objectSelector": {"matchLabels": {"never": "there"}},
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        kind = "ValidatingWebhookConfiguration"
        await configure(ops, kind, "validatingwebhookconfigurations", {"webhooks": [hook]})
        await ops.create("configmaps", config_map("a", k="v"))
        rival = Rival(ops)
        with pytest.raises(ApiError, match="the object has been modified") as refused:
            await changed(ops, rival)
        assert refused.value.code == 409
        assert rival.was_locked == [False] * 5

"""A definition that is deleted takes all its objects along, whatever is under way or in the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.in_process import APPLY, MERGE, InProcess, in_process
from shoal.embedded.apiserver.crds.establish import terminate
from shoal.embedded.apiserver.resource import Home
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

Obj = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/x.io/v1/namespaces/default/things"
DEFINITIONS = Home("apiextensions.k8s.io", "customresourcedefinitions")


def definition(group: str = "x.io", plural: str = "things", kind: str = "Thing") -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def thing(name: str, *finalizers: str) -> Obj:
    return {"kind": "Thing", "apiVersion": "x.io/v1", "metadata": {"name": name, "finalizers": list(finalizers)}}


async def until_served(api: InProcess, is_served: bool = True) -> None:
    """Or until it is not."""
    context = api.plane.context
    watch = context.state.watch(DEFINITIONS, None, context.state.revision)
    async with asyncio.timeout(60):
        while (context.catalog.find("x.io", "v1", "things") is not None) is not is_served:
            await watch.next_batch()


async def define(api: InProcess) -> None:
    assert (await api.ask("POST", CRDS, definition())).code == 201
    await until_served(api)
    # What follows a new definition is written too, so that what is written next is what a test writes.
    for _ in range(50):
        await asyncio.sleep(0)


async def test_nothing_is_applied_into_a_definition_that_goes(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api, asyncio.timeout(60):
        await define(api)
        await api.ask("POST", THINGS, thing("held", "x.io/hold"))
        assert (await api.ask("DELETE", f"{CRDS}/things.x.io")).code == 200
        for method, path, media in (
            ("POST", THINGS, "application/json"),
            ("PATCH", f"{THINGS}/n?fieldManager=m", APPLY),
        ):
            refused = await api.ask(method, path, thing("n"), media)
            assert refused.code == 403
            why = "create not allowed while custom resource definition is terminating"
            assert refused.body["message"] == f'things.x.io "n" is forbidden: {why}'
        freed = await api.ask("PATCH", f"{THINGS}/held", {"metadata": {"finalizers": None}}, MERGE)
        assert freed.code == 200
        await until_served(api, False)
        assert (await api.ask("GET", f"{CRDS}/things.x.io")).code == 404


async def test_what_is_created_while_its_definition_goes_is_refused_or_goes_too(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with in_process(tmp_path, storage) as api, asyncio.timeout(60):
        await define(api)
        storage.hold()
        going = asyncio.create_task(api.ask("DELETE", f"{CRDS}/things.x.io"))
        await storage.held()
        creating = asyncio.create_task(api.ask("POST", THINGS, thing("late")))
        for _ in range(20):
            await asyncio.sleep(0)
        storage.release()
        storage.hold()
        assert (await going).code == 200
        await storage.held()
        storage.release()
        assert (await creating).code == 201
        await until_served(api, False)
        await define(api)
        assert (await api.ask("GET", THINGS)).body["items"] == []


async def test_no_policy_keeps_objects_whose_definition_goes(tmp_path: Path) -> None:
    admission = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["x.io"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["things"]}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    binding = {"policyName": "keep", "validationActions": ["Deny"]}
    async with in_process(tmp_path) as api, asyncio.timeout(60):
        await define(api)
        await api.ask("POST", THINGS, thing("kept"))
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)):
            obj = {"kind": kind, "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "keep"}}
            plural = "policies" if kind.endswith("Policy") else "policybindings"
            made = await api.ask("POST", f"{admission}/validatingadmission{plural}", obj | {"spec": spec})
            assert made.code == 201
        assert (await api.ask("DELETE", f"{THINGS}/kept")).code == 422
        assert (await api.ask("DELETE", f"{CRDS}/things.x.io")).code == 200
        await until_served(api, False)


async def test_a_disk_that_was_full_for_a_while_does_not_keep_a_definition_from_going(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with in_process(tmp_path, storage) as api, asyncio.timeout(60):
        await define(api)
        await api.ask("POST", THINGS, thing("a"))
        storage.hold()
        going = asyncio.create_task(api.ask("DELETE", f"{CRDS}/things.x.io"))
        await storage.held()
        watch = api.plane.context.state.watch(DEFINITIONS, None, api.plane.context.state.revision)
        storage.release()
        assert (await going).code == 200
        storage.fill()
        assert await watch.next_batch()
        for _ in range(50):
            await asyncio.sleep(0)
        assert any("things.x.io has to be tried again" in line for line in api.told.lines)
        storage.heal()
        await until_served(api, False)


async def test_a_definition_that_never_got_its_names_goes(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api, asyncio.timeout(60):
        await define(api)
        state = api.plane.context.state
        watch = state.watch(DEFINITIONS, None, state.revision)
        assert (await api.ask("POST", CRDS, definition(plural="others"))).code == 201
        assert (await api.ask("DELETE", f"{CRDS}/others.x.io")).code == 200
        async with asyncio.timeout(60):
            while (await watch.next_batch())[-1].kind != "DELETED":
                pass
        assert (await api.ask("GET", f"{CRDS}/others.x.io")).code == 404
        assert (await api.ask("GET", f"{CRDS}/things.x.io")).code == 200


async def test_a_definition_that_is_deleted_before_it_was_looked_at_goes(tmp_path: Path) -> None:
    made = {**definition(), "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}}
    going = terminate(made, "2026-01-01T00:00:00Z")
    assert [one["type"] for one in going["status"]["conditions"]] == ["Terminating"]
    async with in_process(tmp_path) as api, asyncio.timeout(60):
        state = api.plane.context.state
        watch = state.watch(DEFINITIONS, None, state.revision)
        assert (await api.ask("POST", CRDS, definition())).code == 201
        assert (await api.ask("DELETE", f"{CRDS}/things.x.io")).code == 200
        while (await watch.next_batch())[-1].kind != "DELETED":
            pass

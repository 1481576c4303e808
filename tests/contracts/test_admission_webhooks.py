"""Admission webhooks: whom they are asked about, what they may change, and how a refusal or a failure shows."""

from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_hooks import CONFIG_MAPS, CONFIGURATIONS, configuration, hooked, in_force
from build.contract_objects import config_map, gated_pod, made, managers
from build.hook_server import allowed, denied, hook_server, patched

pytestmark = pytest.mark.needs("reachable", "controllers")

Obj = dict[str, Any]


async def test_a_webhook_is_asked_with_the_whole_request(api: Api) -> None:
    async with hooked(api) as hook:
        created = await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
        (request,) = hook.requests("/hook")
        assert request["operation"] == "CREATE"
        assert (request["name"], request["namespace"]) == ("c", api.namespace)
        assert request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert request["object"]["data"] == {"a": "1"}
        assert request["object"]["kind"] == "ConfigMap"
        assert request["oldObject"] is None
        assert request["dryRun"] is False
        assert request["options"]["kind"] == "CreateOptions"
        assert request["options"]["fieldManager"] == "alice"
        assert request["userInfo"]["username"]
        created["data"] = {"a": "2"}
        (await api.put(api.core("configmaps", "c"), created)).ok()
        request = hook.requests("/hook")[-1]
        assert request["operation"] == "UPDATE"
        assert (request["oldObject"]["data"], request["object"]["data"]) == ({"a": "1"}, {"a": "2"})
        assert request["options"]["kind"] == "UpdateOptions"
        (await api.patch(api.core("configmaps", "c"), {"data": {"a": "3"}}, dryRun="All")).ok()
        request = hook.requests("/hook")[-1]
        assert request["operation"] == "UPDATE"
        assert request["dryRun"] is True
        assert request["options"]["kind"] == "UpdateOptions"
        (await api.delete(api.core("configmaps", "c"))).ok()
        request = hook.requests("/hook")[-1]
        assert request["operation"] == "DELETE"
        assert request["object"] is None
        assert request["oldObject"]["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("result", "code", "reason", "message"),
    [
        ({"message": "no"}, 400, "", 'admission webhook "hook.example.com" denied the request: no'),
        ({}, 400, "", 'admission webhook "hook.example.com" denied the request without explanation'),
        (
            {"message": "no", "code": 403, "reason": "Forbidden"},
            403,
            "Forbidden",
            'admission webhook "hook.example.com" denied the request: no',
        ),
        (
            {"code": 422, "reason": "Invalid"},
            422,
            "Invalid",
            'admission webhook "hook.example.com" denied the request: Invalid',
        ),
    ],
)
async def test_a_refusal_is_the_answer(api: Api, result: Obj, code: int, reason: str, message: str) -> None:
    async with hooked(api) as hook:
        hook.answers["/hook"] = denied(**result)
        answer = await api.post(api.core("configmaps"), config_map("c"))
        assert answer.refused(code, reason) == message
        assert answer.body.get("reason", "") == reason
        (await api.get(api.core("configmaps", "c"))).refused(404)


async def test_updates_and_deletions_can_be_refused(api: Api) -> None:
    async with hooked(api) as hook:
        before = await made(api, "configmaps", config_map("c", {"a": "1"}))
        hook.answers["/hook"] = denied("frozen", code=403)
        (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}})).refused(403)
        (await api.apply(api.core("configmaps", "c"), config_map("c", {"b": "1"}), "bob")).refused(403)
        (await api.delete(api.core("configmaps", "c"))).refused(403)
        assert (await api.get(api.core("configmaps", "c"))).ok() == before
        hook.answers["/hook"] = allowed


async def test_warnings_are_passed_on(api: Api) -> None:
    async with hooked(api) as hook:
        hook.answers["/hook"] = lambda _: {"allowed": True, "warnings": ["mind the gap"]}
        answer = await api.post(api.core("configmaps"), config_map("c"))
        assert answer.ok(201)
        assert answer.warnings == ['299 - "mind the gap"']


async def test_a_patch_of_a_webhook_changes_the_object(api: Api) -> None:
    async with hooked(api, "MutatingWebhookConfiguration") as hook:
        hook.answers["/hook"] = patched(
            {"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}},
            {"op": "add", "path": "/data/added", "value": "1"},
        )
        created = await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
        assert created["data"] == {"a": "1", "added": "1"}
        assert created["metadata"]["labels"] == {"by": "webhook"}
        assert managers(created) == {("alice", "Update"): {"f:data": {".": {}, "f:a": {}}}}
        hook.answers["/hook"] = allowed


async def test_a_patch_that_does_not_apply_fails_the_request(api: Api) -> None:
    async with hooked(api, "MutatingWebhookConfiguration") as hook:
        hook.answers["/hook"] = patched({"op": "remove", "path": "/data/none"})
        (await api.post(api.core("configmaps"), config_map("c", {"a": "1"}))).refused(500)
        (await api.get(api.core("configmaps", "c"))).refused(404)


async def test_what_a_webhook_makes_is_validated(api: Api) -> None:
    async with hooked(api, "MutatingWebhookConfiguration") as hook:
        hook.answers["/hook"] = patched({"op": "add", "path": "/data", "value": {"bad key": "1"}})
        message = (await api.post(api.core("configmaps"), config_map("c"))).refused(422, "Invalid")
        assert 'data[bad key]: Invalid value: "bad key"' in message


async def test_a_webhook_that_cannot_be_reached_fails_the_request(api: Api) -> None:
    async with hooked(api) as hook:
        hook.answers["/hook"] = lambda _: (_ for _ in ()).throw(RuntimeError("broken"))
        message = (await api.post(api.core("configmaps"), config_map("c"))).refused(500, "InternalError")
        assert message.startswith(
            'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
        )
        del hook.answers["/hook"]
        message = (await api.post(api.core("configmaps"), config_map("c"))).refused(500, "InternalError")
        assert message.endswith("the server could not find the requested resource")


async def test_a_failure_may_be_ignored(api: Api) -> None:
    async with hooked(api, failurePolicy="Ignore") as hook:
        del hook.answers["/hook"]
        (await api.post(api.core("configmaps"), config_map("c"))).ok(201)
        assert hook.asked


async def test_only_the_operations_and_resources_of_the_rules_are_asked_about(api: Api) -> None:
    rules = [{**CONFIG_MAPS, "operations": ["CREATE"]}]
    async with hooked(api, rules=rules) as hook:
        await made(api, "configmaps", config_map("c"))
        (await api.patch(api.core("configmaps", "c"), {"data": {"a": "1"}})).ok()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        await made(api, "secrets", secret)
        assert [(one["operation"], one["resource"]["resource"]) for one in hook.requests("/hook")] == [
            ("CREATE", "configmaps")
        ]


async def test_subresources_are_asked_about_only_when_named(api: Api) -> None:
    rules = [{**CONFIG_MAPS, "resources": ["pods/status"]}, CONFIG_MAPS]
    async with hooked(api, rules=rules) as hook:
        await made(api, "pods", gated_pod("p"))
        assert hook.asked == []
        (await api.patch(api.core("pods", "p", "status"), {"status": {"message": "m"}})).ok()
        (request,) = hook.requests("/hook")
        assert request["subResource"] == "status"
        assert request["resource"]["resource"] == "pods"


async def test_objects_can_be_chosen_by_their_labels(api: Api) -> None:
    selector = {"matchLabels": {"probe": "yes"}}
    async with hooked(api, objectSelector=selector) as hook:
        await made(api, "configmaps", config_map("c", labels={"probe": "no"}))
        assert hook.asked == []
        (await api.patch(api.core("configmaps", "c"), {"metadata": {"labels": {"probe": "yes"}}})).ok()
        (await api.patch(api.core("configmaps", "c"), {"metadata": {"labels": {"probe": "no"}}})).ok()
        assert len(hook.asked) == 2


async def test_requests_can_be_chosen_by_expressions(api: Api) -> None:
    conditions = [{"name": "not-excluded", "expression": "!request.name.startsWith('excluded')"}]
    async with hooked(api, matchConditions=conditions) as hook:
        await made(api, "configmaps", config_map("excluded-1"))
        assert hook.asked == []
        await made(api, "configmaps", config_map("other"))
        assert len(hook.asked) == 1


async def test_a_rule_for_one_version_sees_requests_in_others(api: Api) -> None:
    rules = [CONFIG_MAPS, {**CONFIG_MAPS, "apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}]
    async with hooked(api, rules=rules) as hook:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": 3}
        await made(
            api,
            "horizontalpodautoscalers",
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "h"},
                "spec": spec,
            },
        )
        (request,) = hook.requests("/hook")
        assert request["kind"]["version"] == request["resource"]["version"] == "v1"
        assert request["requestKind"]["version"] == request["requestResource"]["version"] == "v2"
        assert request["object"]["apiVersion"] == "autoscaling/v1"


async def test_a_webhook_sees_what_others_have_made_when_it_asks_for_it(api: Api) -> None:
    async with (
        hooked(api, "MutatingWebhookConfiguration", reinvocationPolicy="IfNeeded") as hook,
        hook_server() as second,
    ):
        second.answers["/second"] = patched({"op": "add", "path": "/data", "value": {"second": "1"}})
        other = configuration(api, second, "MutatingWebhookConfiguration", "/second")
        # Webhooks are called in the order of their configurations' names.
        other["metadata"]["name"] = f"z-{other['metadata']['name']}"
        path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations"
        (await api.post(path, other)).ok(201)
        try:
            await in_force(api, second)
            hook.asked.clear()
            created = await made(api, "configmaps", config_map("c"))
            assert created["data"] == {"second": "1"}
            assert [one["object"].get("data") for one in hook.requests("/hook")] == [None, {"second": "1"}]
        finally:
            await api.delete(f"{path}/{other['metadata']['name']}")

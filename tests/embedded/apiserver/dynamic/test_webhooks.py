"""Webhooks really called: which are asked about a write, in which order, what they are told and may change."""

from __future__ import annotations

from typing import Any

import pytest

from build.admission_objects import GROUP, configure, mutating, refusal, validating, webhook
from build.hook_server import HookServer, allowed, denied, patched
from build.planes import Operations, config_map
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.incoming import accepted
from shoal.embedded.apiserver.rest.scaling import change_scale
from shoal.embedded.apiserver.schema.node import ANY
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}


async def test_nothing_configured_concerns_nobody(cluster: Operations) -> None:
    assert not cluster.context.dynamic.concerns(cluster.call("create", "configmaps"), "CREATE")


async def test_a_review_says_everything_about_the_write(cluster: Operations, server: HookServer) -> None:
    server.answers["/ok"] = allowed
    await configure(cluster, validating("v", webhook(server, "/ok")))
    await cluster.create("configmaps", config_map("a", k="1"))
    after = config_map("a", k="2")
    after["metadata"]["namespace"] = "default"
    await cluster.update("configmaps", after)
    await cluster.delete("configmaps", "a")
    born, changed, gone = server.requests("/ok")
    assert born["operation"] == "CREATE"
    assert born["oldObject"] is None
    assert born["object"]["data"] == {"k": "1"}
    assert born["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"} == born["requestKind"]
    assert born["resource"] == {"group": "", "version": "v1", "resource": "configmaps"} == born["requestResource"]
    assert (born["name"], born["namespace"], born["dryRun"]) == ("a", "default", False)
    assert born["userInfo"]["username"] == "admin"
    assert born["uid"]
    assert born["options"]["kind"] == "CreateOptions"
    assert "subResource" not in born
    assert changed["object"]["data"] == {"k": "2"}
    assert changed["oldObject"]["data"] == {"k": "1"}
    assert changed["options"]["kind"] == "UpdateOptions"
    assert gone["operation"] == "DELETE"
    assert gone["object"] is None
    assert gone["oldObject"]["data"] == {"k": "2"}


@pytest.mark.parametrize(
    ("answer", "code", "reason", "words"),
    [
        (denied("not today"), 400, "", "not today"),
        (denied("not today", code=403, reason="Forbidden"), 403, "Forbidden", "not today"),
        (denied(reason="Conflict", code=409), 409, "Conflict", "Conflict"),
        (denied("odd", code=200), 400, "", "odd"),
    ],
)
async def test_a_refusal_has_the_code_and_the_words_of_the_webhook(
    cluster: Operations, server: HookServer, answer: Any, code: int, reason: str, words: str
) -> None:
    server.answers["/no"] = answer
    await configure(cluster, validating("v", webhook(server, "/no")))
    error = await refusal(cluster)
    assert (error.code, error.reason) == (code, reason)
    assert error.message == f'admission webhook "no.example.com" denied the request: {words}'
    assert cluster.find("configmaps", "a") is None


async def test_a_refusal_without_a_word_says_so(cluster: Operations, server: HookServer) -> None:
    server.answers["/no"] = denied()
    await configure(cluster, validating("v", webhook(server, "/no")))
    assert (
        await refusal(cluster)
    ).message == 'admission webhook "no.example.com" denied the request without explanation'


async def test_a_patch_changes_what_is_stored(cluster: Operations, server: HookServer) -> None:
    server.answers["/label"] = patched(LABEL)
    await configure(cluster, mutating("m", webhook(server, "/label")))
    assert (await cluster.create("configmaps", config_map("a")))["metadata"]["labels"] == {"seen": "yes"}


async def test_warnings_go_to_the_writer(cluster: Operations, server: HookServer) -> None:
    server.answers["/warn"] = lambda _: {"allowed": True, "warnings": ["mind the gap"]}
    await configure(cluster, validating("v", webhook(server, "/warn")))
    warnings: list[str] = []
    await cluster.create("configmaps", config_map("a"), warnings=warnings)
    assert warnings == ["mind the gap"]


async def test_mutating_webhooks_are_asked_in_the_order_of_their_names(cluster: Operations, server: HookServer) -> None:
    for name in ("b", "a", "c"):
        server.answers[f"/{name}"] = patched({"op": "add", "path": f"/data/{name}", "value": "x"})
        await configure(cluster, mutating(name, webhook(server, f"/{name}")))
    await cluster.create("configmaps", config_map("m", k="v"))
    assert [path for path, _ in server.asked] == ["/a", "/b", "/c"]
    assert sorted(server.requests("/c")[0]["object"]["data"]) == ["a", "b", "k"]


async def test_whoever_asks_for_it_is_asked_again_after_a_later_change(cluster: Operations, server: HookServer) -> None:
    server.answers["/first"] = allowed
    server.answers["/never"] = allowed
    server.answers["/second"] = patched(LABEL)
    await configure(
        cluster,
        mutating(
            "m",
            webhook(server, "/first", reinvocationPolicy="IfNeeded"),
            webhook(server, "/never"),
            webhook(server, "/second", reinvocationPolicy="IfNeeded"),
        ),
    )
    await cluster.create("configmaps", config_map("a"))
    assert [path for path, _ in server.asked] == ["/first", "/never", "/second", "/first"]


async def test_a_dry_run_is_told_and_changes_nothing(cluster: Operations, server: HookServer) -> None:
    server.answers["/ok"] = allowed
    await configure(cluster, validating("v", webhook(server, "/ok")))
    await cluster.create("configmaps", config_map("a"), dry_run=True)
    assert server.requests("/ok")[0]["dryRun"] is True
    assert cluster.find("configmaps", "a") is None


async def test_selectors_and_conditions_leave_writes_alone(cluster: Operations, server: HookServer) -> None:
    server.answers["/no"] = denied("no")
    chosen = {"matchLabels": {"checked": "yes"}}
    conditions = [{"name": "not-free", "expression": "!object.metadata.name.startsWith('free')"}]
    await configure(cluster, validating("v", webhook(server, "/no", objectSelector=chosen, matchConditions=conditions)))
    await cluster.create("configmaps", config_map("plain"))
    free, checked = config_map("free"), config_map("checked")
    free["metadata"]["labels"] = checked["metadata"]["labels"] = {"checked": "yes"}
    await cluster.create("configmaps", free)
    with pytest.raises(ApiError, match="denied the request: no"):
        await cluster.create("configmaps", checked)


async def test_a_condition_that_fails_fails_the_write(cluster: Operations, server: HookServer) -> None:
    conditions = [{"name": "typed", "expression": "object.spec.nothing == 'x'"}]
    await configure(cluster, validating("v", webhook(server, "/ok", matchConditions=conditions)))
    error = await refusal(cluster)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        "configmaps \"a\" is forbidden: expression 'object.spec.nothing == 'x'' resulted in error: no such key: spec"
    )


async def test_a_rule_for_another_version_sees_the_object_in_it(cluster: Operations, server: HookServer) -> None:
    server.answers["/old"] = allowed
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    rules = [{**rule, "resources": ["horizontalpodautoscalers"]}]
    exact = webhook(server, "/exact", rules=rules, matchPolicy="Exact")
    await configure(cluster, validating("v", webhook(server, "/old", rules=rules), exact))
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}},
    }
    call = cluster.call("create", "horizontalpodautoscalers", group="autoscaling")
    call.resource = cluster.resource("horizontalpodautoscalers", "autoscaling", "v2")
    await create(cluster.context, call, accepted(call, scaler))
    (asked,) = server.requests("/old")
    assert asked["object"]["apiVersion"] == "autoscaling/v1"
    assert asked["kind"]["version"] == "v1"
    assert asked["requestKind"]["version"] == "v2"


async def test_configurations_of_admission_are_never_asked_about(cluster: Operations, server: HookServer) -> None:
    server.answers["/no"] = denied("no")
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    await configure(cluster, validating("v", webhook(server, "/no", rules=everything)))
    assert await cluster.delete("validatingwebhookconfigurations", "v", group=GROUP)
    await cluster.create("configmaps", config_map("a"))


async def test_a_scale_is_asked_about_as_a_scale(cluster: Operations, server: HookServer) -> None:
    server.answers["/object"] = denied("never asked")
    server.answers["/scale"] = allowed
    server.answers["/fewer"] = patched({"op": "replace", "path": "/spec/replicas", "value": 2})
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    scaled = [{**rule, "resources": ["deployments/scale"]}]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    web_ = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    await cluster.create("deployments", web_, "apps")
    await configure(
        cluster,
        validating(
            "v",
            webhook(server, "/object", rules=[{**rule, "resources": ["deployments"]}]),
            webhook(server, "/scale", rules=scaled),
        ),
        mutating("m", webhook(server, "/fewer", rules=scaled)),
    )
    call = cluster.call("update", "deployments", "web", "apps", subresource="scale")
    nine = {"metadata": {"name": "web"}, "spec": {"replicas": 9}}
    scale = await change_scale(cluster.context, call, ANY, lambda _: nine)
    assert scale["spec"]["replicas"] == 2
    asked = server.requests("/scale")[0]
    assert asked["object"]["kind"] == "Scale"
    assert asked["subResource"] == "scale"
    assert asked["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert asked["oldObject"]["spec"]["replicas"] == 1
    assert not server.requests("/object")

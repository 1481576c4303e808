"""Custom objects from version to version."""

from __future__ import annotations

from typing import Any

import pytest

from build.custom_definitions import NOW, created, crontab, definition, version
from shoal.embedded.apiserver.crds.conversion import Conversion, convert
from shoal.embedded.apiserver.crds.establish import establish
from shoal.embedded.apiserver.crds.serving import served
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]


def conversion(*, by_webhook: bool = True) -> Conversion:
    crd = definition(version(), version("v2"))
    if by_webhook:
        client = {"url": "https://localhost:1/convert"}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return Conversion(served(establish(created(crd), [], NOW))[0], "v2", "u1")


class Webhook:
    """Answers with what it was sent, changed."""

    def __init__(self, **result: Any) -> None:
        self.result = result or {"status": "Success"}
        self.asked: list[Obj] = []

    async def __call__(self, client: Obj, review: Obj) -> Obj:
        self.asked.append(review["request"])
        wanted = review["request"]["desiredAPIVersion"]
        objs = [self.changed({**obj, "apiVersion": wanted}) for obj in review["request"]["objects"]]
        response = {"uid": review["request"]["uid"], "result": self.result, "convertedObjects": objs}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    def changed(self, obj: Obj) -> Obj:
        return {**obj, "spec": {"b": obj["spec"].get("a")}, "metadata": {**obj["metadata"], "labels": {"n": "1"}}}


async def test_without_a_webhook_only_the_version_is_renamed() -> None:
    (found,) = await convert([crontab({"a": 1})], conversion(by_webhook=False), Webhook())
    assert found == {**crontab({"a": 1}), "apiVersion": "stable.example.com/v2"}


async def test_a_webhook_changes_content_and_labels_but_no_other_metadata() -> None:
    obj = crontab({"a": 1})
    obj["metadata"] |= {"resourceVersion": "5", "annotations": {"x": "y"}}
    there = {**crontab({}), "apiVersion": "stable.example.com/v2"}
    webhook = Webhook()
    first, second = await convert([there, obj], conversion(), webhook)
    assert first is there
    assert len(webhook.asked[0]["objects"]) == 1
    assert second["spec"] == {"b": 1}
    assert second["metadata"] == {"name": "x", "resourceVersion": "5", "annotations": {"x": "y"}, "labels": {"n": "1"}}


class Renaming(Webhook):
    def changed(self, obj: Obj) -> Obj:
        return {**obj, "metadata": {"name": "other"}}


class Unwilling(Webhook):
    async def __call__(self, client: Obj, review: Obj) -> Obj:
        raise OSError("connection refused")


@pytest.mark.parametrize(
    ("webhook", "words"),
    [
        (Webhook(status="Failure", message="no"), "failed: no"),
        (Unwilling(), "failed: connection refused"),
        (Renaming(), "returned invalid converted object at index 0: must have the same name: x != other"),
    ],
)
async def test_what_a_webhook_gets_wrong_is_an_internal_error(webhook: Webhook, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        await convert([crontab({})], conversion(), webhook)
    assert caught.value.code == 500
    lead = "conversion webhook for stable.example.com/v1, Kind=CronTab"
    assert caught.value.message == f"Internal error occurred: {lead} {words}"

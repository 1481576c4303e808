"""Selecting by labels and fields: what is meant, and what is not understood."""

from __future__ import annotations

import pytest

from build.api_objects import ABSENT, NO_SCHEDULER, make_configmap, make_pod, make_secret, names
from build.cluster_api import Api


@pytest.fixture
async def shop(api: Api) -> Api:
    """Four config maps with labels of their own; others in the namespace have none of these."""
    for name, labels in {
        "a": {"set": "1", "tier": "front", "size": "1"},
        "b": {"set": "1", "tier": "back", "size": "5"},
        "c": {"set": "1", "tier": ""},
        "d": {"set": "1"},
    }.items():
        await make_configmap(api, name, labels=labels)
    return api


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("tier=front", "a"),
        ("tier==front", "a"),
        ("tier = front", "a"),
        ("tier!=front", "bcd"),
        ("tier in (front, back)", "ab"),
        ("tier in (front),size in (1,2)", "a"),
        ("tier notin (front,back)", "cd"),
        ("tier", "abc"),
        ("!tier", "d"),
        ("tier,tier!=back", "ac"),
        ("tier=", "c"),
        ("tier in (,front)", "ac"),
        ("size>1", "b"),
        ("size<5", "a"),
        ("tier=front,tier=back", ""),
    ],
)
async def test_labels_select(shop: Api, selector: str, wanted: str) -> None:
    found = (await shop.get(shop.core("configmaps"), labelSelector=f"set=1,{selector}")).ok()
    assert "".join(names(found)) == wanted


async def test_an_empty_selector_selects_everything(shop: Api) -> None:
    found = (await shop.get(shop.core("configmaps"), labelSelector="", fieldSelector="")).ok()
    assert set("abcd") <= set(names(found))


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("tier in front", "unable to parse requirement: found 'front' expected: '('"),
        ("=front", "found '=', expected: !, identifier, or 'end of string'"),
        ("!=front", "found '!=', expected: !, identifier, or 'end of string'"),
        ("tier front", "unable to parse requirement: found 'front', expected: in, notin, =, ==, !=, gt, lt"),
        ("tier=front back", "found 'back', expected: ',' or 'end of string'"),
        ("tier,", "found '', expected: identifier after ','"),
        (
            "size>big",
            (
                'unable to parse requirement: values[0]: Invalid value: "big": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
    ],
)
async def test_labels_that_cannot_be_read_are_refused(api: Api, selector: str, words: str) -> None:
    answer = await api.get(api.core("configmaps"), labelSelector=selector)
    assert answer.refused(400, "BadRequest") == words


async def test_a_label_key_or_value_that_cannot_be_is_refused(api: Api) -> None:
    for selector in ("-tier=a", "tier=-a", "a/b/c=d"):
        answer = await api.get(api.core("configmaps"), labelSelector=selector)
        assert answer.refused(400, "BadRequest").startswith("unable to parse requirement: ")
        assert "Invalid value" in answer.body["message"]


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name=a,metadata.name=b", ""),
        ("metadata.name!=a", "bcd"),
        ("metadata.namespace!=elsewhere", "abcd"),
        ("metadata.name=none", ""),
    ],
)
async def test_names_select(shop: Api, selector: str, wanted: str) -> None:
    found = (await shop.get(shop.core("configmaps"), labelSelector="set=1", fieldSelector=selector)).ok()
    assert "".join(names(found)) == wanted


async def test_a_name_selects_in_all_namespaces(shop: Api) -> None:
    query = f"metadata.name=a,metadata.namespace={shop.namespace}"
    assert names((await shop.get("/api/v1/configmaps", fieldSelector=query)).ok()) == ["a"]


@pytest.mark.needs("serviceaccounts")
async def test_pods_are_selected_by_node_phase_and_scheduler(api: Api) -> None:
    await make_pod(api, "loose")
    await make_pod(api, "bound", nodeName=ABSENT)
    for selector, wanted in {
        "spec.nodeName=": ["loose"],
        f"spec.nodeName={ABSENT}": ["bound"],
        f"spec.nodeName!={ABSENT}": ["loose"],
        "status.phase=Pending": ["bound", "loose"],
        "status.phase!=Pending": [],
        f"spec.schedulerName={NO_SCHEDULER}": ["bound", "loose"],
        "spec.restartPolicy=Always": ["bound", "loose"],
        "spec.serviceAccountName=default,spec.nodeName!=": ["bound"],
        "status.podIP=": ["bound", "loose"],
        "spec.hostNetwork=false": ["bound", "loose"],
    }.items():
        found = (await api.get(api.core("pods"), fieldSelector=selector)).ok()
        assert names(found) == wanted, selector


async def test_secrets_are_selected_by_type(api: Api) -> None:
    await make_secret(api, "a", type="example.com/one")
    await make_secret(api, "b")
    for selector, wanted in {"type=Opaque": ["b"], "type!=Opaque": ["a"], "type=example.com/one": ["a"]}.items():
        assert names((await api.get(api.core("secrets"), fieldSelector=selector)).ok()) == wanted


async def test_a_field_that_cannot_be_selected_is_refused_in_the_words_of_its_kind(api: Api) -> None:
    answer = await api.get(api.core("configmaps"), fieldSelector="data.k=v")
    words = '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert answer.refused(400, "BadRequest") == words
    answer = await api.get(api.core("pods"), fieldSelector="spec.priority=1")
    assert answer.refused(400, "BadRequest") == "field label not supported: spec.priority"


@pytest.mark.parametrize("selector", ["metadata.name", "metadata.name>a"])
async def test_a_field_selector_that_cannot_be_read_is_refused(api: Api, selector: str) -> None:
    answer = await api.get(api.core("configmaps"), fieldSelector=selector)
    assert answer.refused(400, "BadRequest") == f"invalid selector: '{selector}'; can't understand '{selector}'"


async def test_values_of_fields_may_be_escaped(api: Api) -> None:
    answer = await api.get(api.core("configmaps"), fieldSelector=r"metadata.name=a\,b")
    assert answer.ok()["items"] == []


async def test_a_deletion_of_many_takes_what_is_selected(shop: Api) -> None:
    answer = await shop.delete(shop.core("configmaps"), labelSelector="set=1,tier", fieldSelector="metadata.name!=b")
    assert names(answer.ok(200)) == ["a", "c"]
    left = (await shop.get(shop.core("configmaps"), labelSelector="set=1")).ok()
    assert names(left) == ["b", "d"]

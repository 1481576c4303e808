"""Lists: what they hold, as of which version, and page by page."""

from __future__ import annotations

import base64

import pytest

from build.api_objects import make_secret, names, secret
from build.cluster_api import Api, Obj

RULES = 'ListOptions.meta.k8s.io "" is invalid: '


async def _some(api: Api, *wanted: str) -> list[Obj]:
    return [await make_secret(api, name) for name in wanted]


async def _pages(api: Api, limit: int, **query: object) -> list[Obj]:
    pages, token = list[Obj](), ""
    while True:
        more = {"continue": token} if token else {}
        page = (await api.get(api.core("secrets"), limit=limit, **more, **query)).ok()
        pages.append(page)
        token = page["metadata"].get("continue", "")
        if not token:
            return pages


async def test_a_list_is_a_list_of_its_kind_in_the_order_of_names(api: Api) -> None:
    await _some(api, "c", "a", "b")
    found = (await api.get(api.core("secrets"))).ok(200)
    assert (found["kind"], found["apiVersion"]) == ("SecretList", "v1")
    assert names(found) == ["a", "b", "c"]
    assert set(found["metadata"]) == {"resourceVersion"}
    assert all("kind" not in item and "apiVersion" not in item for item in found["items"])


async def test_an_empty_list_has_empty_items(api: Api) -> None:
    assert (await api.get(api.core("secrets"))).ok()["items"] == []


async def test_a_list_is_as_new_as_the_last_write(api: Api) -> None:
    made = await make_secret(api, "a")
    found = (await api.get(api.core("secrets"))).ok()
    assert int(found["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
    assert names(found) == ["a"]


async def test_a_list_over_all_namespaces_holds_those_of_one(api: Api) -> None:
    await _some(api, "a")
    everywhere = (await api.get("/api/v1/secrets")).ok()
    assert (api.namespace, "a") in {
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in everywhere["items"]
    }


async def test_pages_hold_everything_once_and_count_what_is_left(api: Api) -> None:
    await _some(api, "a", "b", "c", "d", "e")
    pages = await _pages(api, 2)
    assert [names(page) for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page["metadata"].get("remainingItemCount") for page in pages] == [3, 1, None]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1


async def test_a_page_that_holds_the_rest_ends_the_list(api: Api) -> None:
    await _some(api, "a", "b")
    pages = await _pages(api, 2)
    assert [names(page) for page in pages] == [["a", "b"]]
    assert "continue" not in pages[0]["metadata"]
    assert "remainingItemCount" not in pages[0]["metadata"]


async def test_pages_show_one_moment_although_objects_come_change_and_go(api: Api) -> None:
    await _some(api, "a", "b", "d", "e")
    first = (await api.get(api.core("secrets"), limit=1)).ok()
    (await api.delete(api.core("secrets", "b"))).ok()
    (await api.post(api.core("secrets"), secret("c"))).ok(201)
    (await api.patch(api.core("secrets", "d"), {"metadata": {"labels": {"new": "1"}}})).ok()
    rest = (await api.get(api.core("secrets"), limit=10, **{"continue": first["metadata"]["continue"]})).ok()
    assert names(rest) == ["b", "d", "e"]
    assert "labels" not in rest["items"][1]["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_page_without_a_limit_is_the_whole_rest(api: Api) -> None:
    await _some(api, "a", "b", "c")
    first = (await api.get(api.core("secrets"), limit=1)).ok()
    rest = (await api.get(api.core("secrets"), **{"continue": first["metadata"]["continue"]})).ok()
    assert names(rest) == ["b", "c"]


async def test_a_selection_is_paged_without_a_count_of_what_is_left(api: Api) -> None:
    for name in "abcd":
        await make_secret(api, name)
        label = {"metadata": {"labels": {"odd": str(name in "ac").lower()}}}
        (await api.patch(api.core("secrets", name), label)).ok()
    pages = await _pages(api, 1, labelSelector="odd=true")
    assert [one for page in pages for one in names(page)] == ["a", "c"]
    assert all("remainingItemCount" not in page["metadata"] for page in pages)


async def test_a_limit_of_zero_is_none(api: Api) -> None:
    await _some(api, "a", "b")
    assert names((await api.get(api.core("secrets"), limit=0)).ok()) == ["a", "b"]


async def test_a_limit_that_is_no_number_is_refused(api: Api) -> None:
    answer = await api.get(api.core("secrets"), limit="many")
    assert answer.refused(400, "BadRequest") == 'strconv.ParseInt: parsing "many": invalid syntax'


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("garbage", "invalid character '\\u0081' looking for beginning of value"),
        ("!!!", "illegal base64 data at input byte 0"),
        ("ab=", "illegal base64 data at input byte 2"),
        ("a", "illegal base64 data at input byte 0"),
        (_encoded("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (_encoded("{}"), "server does not recognize this encoded version "),
        (_encoded('{"v":"meta.k8s.io/v9"}'), "server does not recognize this encoded version meta.k8s.io/v9"),
        (
            _encoded('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}'),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (_encoded('{"v":"meta.k8s.io/v1","rv":-1,"start":"../../pods"}'), "../../pods"),
        (_encoded('{"v":"meta.k8s.io/v1","rv":-1}'), "encoded start key empty (version meta.k8s.io/v1)"),
    ],
)
async def test_a_token_that_no_server_made_is_refused(api: Api, token: str, said: str) -> None:
    answer = await api.get(api.core("secrets"), limit=1, **{"continue": token})
    assert answer.refused(400, "BadRequest") == f"invalid continue token: continue key is not valid: {said}"


async def test_a_token_allows_no_version_beside_it(api: Api) -> None:
    await _some(api, "a", "b")
    first = (await api.get(api.core("secrets"), limit=1)).ok()
    token = {"continue": first["metadata"]["continue"]}
    answer = await api.get(api.core("secrets"), limit=1, resourceVersion=first["metadata"]["resourceVersion"], **token)
    assert answer.refused(400, "BadRequest") == "specifying resource version is not allowed when using continue"


async def test_an_exact_list_shows_what_was(api: Api) -> None:
    made = await _some(api, "a", "b")
    (await api.delete(api.core("secrets", "a"))).ok()
    then = made[0]["metadata"]["resourceVersion"]
    found = (await api.get(api.core("secrets"), resourceVersion=then, resourceVersionMatch="Exact")).ok()
    assert names(found) == ["a"]
    assert found["metadata"]["resourceVersion"] == then


async def test_a_list_not_older_than_a_version_is_at_least_that_new(api: Api) -> None:
    made = await _some(api, "a", "b")
    wanted = made[1]["metadata"]["resourceVersion"]
    found = (await api.get(api.core("secrets"), resourceVersion=wanted, resourceVersionMatch="NotOlderThan")).ok()
    assert names(found) == ["a", "b"]
    assert int(found["metadata"]["resourceVersion"]) >= int(wanted)


async def test_a_list_of_any_version_is_served(api: Api) -> None:
    await _some(api, "a")
    found = (await api.get(api.core("secrets"), resourceVersion="0")).ok()
    assert found["metadata"]["resourceVersion"].isdecimal()


@pytest.mark.parametrize("match", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_a_list_of_a_version_that_has_not_been_times_out(api: Api, match: dict[str, str]) -> None:
    answer = await api.get(api.core("secrets"), resourceVersion=10**15, **match)
    assert answer.refused(504, "Timeout").startswith(f"Timeout: Too large resource version: {10**15}, current: ")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
            'resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (
            {"watch": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            (
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                "unless sendInitialEvents is provided"
            ),
        ),
        (
            {"watch": "true", "sendInitialEvents": "true"},
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
    ],
)
async def test_options_that_do_not_go_together_are_invalid(api: Api, query: dict[str, str], words: str) -> None:
    answer = await api.get(api.core("secrets"), **query)
    assert answer.refused(422, "Invalid") == RULES + words
    details = answer.body["details"]
    assert (details["group"], details["kind"]) == ("meta.k8s.io", "ListOptions")
    assert details["causes"][0]["field"] == words.partition(":")[0]

"""What a path means, and which form of an answer a client accepts."""

from __future__ import annotations

import pytest

from shoal.embedded.apiserver.request_info import parse_path
from shoal.embedded.apiserver.rest.continues import Position, position_of, token
from shoal.embedded.apiserver.server.accept import form_of
from shoal.embedded.apiserver.status import ApiError


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/api/v1/pods", ("", "v1", "pods", "", "", "")),
        ("/api/v1/namespaces/a/pods/p/log", ("", "v1", "pods", "a", "p", "log")),
        ("/api/v1/namespaces/a", ("", "v1", "namespaces", "a", "a", "")),
        ("/api/v1/namespaces/a/status", ("", "v1", "namespaces", "a", "a", "status")),
        ("/api/v1/namespaces/a/finalize", ("", "v1", "namespaces", "a", "a", "finalize")),
        ("/apis/apps/v1/namespaces/a/deployments/d/scale", ("apps", "v1", "deployments", "a", "d", "scale")),
        ("/apis/apps/v1/deployments", ("apps", "v1", "deployments", "", "", "")),
        ("/apis/x.io/v1/namespaces", ("x.io", "v1", "namespaces", "", "", "")),
        ("/apis/x.io/v1/namespaces/a/namespaces", ("x.io", "v1", "namespaces", "a", "", "")),
        ("/apis/x.io/v1/namespaces/a/namespaces/b", ("x.io", "v1", "namespaces", "a", "b", "")),
        ("/apis/x.io/v1/namespaces/a/namespaces/b/status", ("x.io", "v1", "namespaces", "a", "b", "status")),
    ],
)
def test_a_path_names_a_resource_an_object_or_a_door_below_it(path: str, wanted: tuple[str, ...]) -> None:
    found = parse_path(path)
    assert found.is_resource
    parts = (found.group, found.version, found.resource, found.namespace, found.name, found.subresource)
    assert parts == wanted


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz"])
def test_other_paths_are_documents(path: str) -> None:
    assert not parse_path(path).is_resource


def test_the_old_form_of_a_watch_is_known_by_its_path() -> None:
    found = parse_path("/api/v1/watch/namespaces/a/pods")
    assert found.is_old_watch
    assert (found.resource, found.namespace) == ("pods", "a")


def test_the_first_form_that_can_be_made_is_taken() -> None:
    kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    assert form_of(kubectl).shape == "table"
    assert form_of("application/vnd.kubernetes.protobuf,application/json").shape == "object"
    assert form_of("application/yaml").is_yaml


def test_a_client_who_accepts_nothing_that_can_be_made_is_told_what_can() -> None:
    with pytest.raises(ApiError) as refused:
        form_of("application/vnd.kubernetes.protobuf")
    assert refused.value.code == 406


def test_a_continue_token_says_where_a_page_ended() -> None:
    place = Position(7, "ns", "näme")
    assert position_of(token(place)) == place


@pytest.mark.parametrize("text", ["!", "bm90IGpzb24", "W10", "a" * 3000])
def test_a_token_that_was_not_made_here_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        position_of(text)
    assert refused.value.code == 400


def test_only_a_path_of_a_usual_length_is_remembered() -> None:
    usual, long = "/api/v1/namespaces/a/pods/p", f"/api/v1/namespaces/a/pods/{'p' * 500}"
    assert parse_path(usual) is parse_path(usual)
    assert parse_path(long) == parse_path(long)
    assert parse_path(long) is not parse_path(long)

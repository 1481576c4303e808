"""Tokens that are kept in Secrets: good while the Secret holds them and their account is the one they were made for."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest

from build.identities import NOW_S, account, authority
from build.readers import FixedReader
from shoal.client.certificates import parse_key
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.legacy_tokens import INVALID_SINCE, LAST_USED, with_last_used
from shoal.embedded.apiserver.security.service_accounts import ISSUER, TokenSigner, TokenSubject

BUILDER = TokenSubject("ci", "builder", "account-uid")
CENTURY_S = 100 * 365 * 24 * 3600


class Scene:
    """An account, the Secret with its token, and who was told that the token was shown."""

    def __init__(self, **secret: Any) -> None:
        self.used: list[tuple[str, str]] = []
        signer = TokenSigner(authority().signing_key, lambda namespace, name: self.used.append((namespace, name)))
        self.token = signer.issue_legacy(BUILDER, "builder-token")
        self.account = account("ci", "builder")
        self.secret = token_secret(secret.pop("holds", self.token), **secret)
        self.reader = FixedReader(self.account, self.secret)
        self.authenticator = Authenticator(authority(), signer, self.reader)

    def fault(self, *audiences: str, token: str = "") -> str:
        return self.authenticator.review(token or self.token, audiences, NOW_S).fault


def token_secret(token: str, **metadata: Any) -> dict[str, Any]:
    data = {"token": base64.b64encode(token.encode()).decode()}
    meta = {"name": "builder-token", "namespace": "ci", "uid": "secret-uid", **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def test_it_is_its_account_for_ever() -> None:
    scene = Scene()
    actor = scene.authenticator.authenticate(None, f"Bearer {scene.token}", NOW_S + CENTURY_S)
    assert actor.name == "system:serviceaccount:ci:builder"
    assert actor.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")
    assert (actor.uid, actor.extra) == ("account-uid", ())
    assert scene.used == [("ci", "builder-token")]


def test_it_says_what_kubernetes_token_controller_says() -> None:
    assert jwt.decode(Scene().token, options={"verify_signature": False}) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:ci:builder",
        "kubernetes.io/serviceaccount/namespace": "ci",
        "kubernetes.io/serviceaccount/secret.name": "builder-token",
        "kubernetes.io/serviceaccount/service-account.name": "builder",
        "kubernetes.io/serviceaccount/service-account.uid": "account-uid",
    }


def test_it_ends_with_its_secret_and_its_account() -> None:
    scene = Scene()
    scene.reader.drop(scene.secret)
    assert "Token has been invalidated" in scene.fault()
    assert "Token has been invalidated" in Scene(deletionTimestamp="2026-01-01T00:00:00Z").fault()
    assert "Token does not match server's copy" in Scene(holds="another").fault()
    scene = Scene()
    scene.reader.drop(scene.account)
    assert 'serviceaccounts "builder" not found' in scene.fault()
    scene.reader.put(account("ci", "builder", "another-uid"))
    assert "ServiceAccount UID (another-uid) does not match claim (account-uid)" in scene.fault()


def test_it_is_for_this_server_and_for_no_other_audience() -> None:
    scene = Scene()
    assert scene.fault(ISSUER) == ""
    assert 'is invalid for the target audiences ["vault"]' in scene.fault("vault")


def test_a_label_takes_it_back_and_its_use_is_noted_all_the_same() -> None:
    scene = Scene(labels={INVALID_SINCE: "2026-01-01"})
    assert (
        "the token in secret ci/builder-token for service account ci/builder has been marked invalid" in scene.fault()
    )
    assert scene.used == [("ci", "builder-token")]


@pytest.mark.parametrize(
    "change",
    [
        {"sub": "system:serviceaccount:ci:admin"},
        {"iss": ISSUER},
        {"iss": "elsewhere"},
        {"kubernetes.io/serviceaccount/namespace": ""},
        {"kubernetes.io/serviceaccount/secret.name": ""},
        {"kubernetes.io/serviceaccount/service-account.name": "admin"},
        {"kubernetes.io/serviceaccount/service-account.uid": 5},
    ],
)
def test_a_well_signed_token_of_another_form_is_refused(change: dict[str, object]) -> None:
    scene = Scene()
    good = jwt.decode(scene.token, options={"verify_signature": False})
    token = jwt.encode({**good, **change}, parse_key(authority().signing_key), "ES256")
    scene.reader.put(token_secret(token))
    assert scene.fault(token=token).startswith(("invalid bearer token", "[invalid bearer token"))


def test_the_day_of_its_last_use_is_written_once_a_day() -> None:
    day_s = 1_790_000_000
    labelled = with_last_used(token_secret("x", labels={"a": "b"}), day_s)
    assert labelled is not None
    assert labelled["metadata"]["labels"] == {"a": "b", LAST_USED: "2026-09-21"}
    assert with_last_used(labelled, day_s) is None
    # The server that wrote it may be a day ahead.
    assert with_last_used(labelled, day_s - 24 * 3600) is None
    assert with_last_used(labelled, day_s + 24 * 3600) is not None

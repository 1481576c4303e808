"""Join tokens: stored as hashes, valid for a time, bounded in number, and refused after wrong attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.client.kubelet.node_joining import TOKEN
from shoal.embedded.apiserver.security.failed_attempts import FailedAttempts
from shoal.embedded.apiserver.security.join_access import JoinAuthenticator
from shoal.embedded.apiserver.security.join_tokens import FILE, MOST, JoinTokens
from shoal.embedded.apiserver.status import ApiError
from shoal.units.errors import UserError

HOUR = 3600.0


@pytest.fixture
def tokens(tmp_path: Path) -> JoinTokens:
    return JoinTokens(tmp_path)


def test_a_token_is_valid_until_it_expires(tokens: JoinTokens) -> None:
    token = tokens.create(0.0, HOUR)

    assert TOKEN.fullmatch(token)
    assert tokens.name_of(token, HOUR - 1) == token.partition(".")[0]
    assert tokens.name_of(token, HOUR) == ""


@pytest.mark.parametrize("change", [lambda one: one[:-1] + ("a" if one[-1] != "a" else "b"), lambda _: "", str.upper])
def test_any_other_text_is_no_token(tokens: JoinTokens, change: object) -> None:
    token = tokens.create(0.0, HOUR)
    assert callable(change)

    assert tokens.name_of(change(token), 1.0) == ""


def test_a_revoked_token_is_refused_and_others_stay(tokens: JoinTokens) -> None:
    first, second = tokens.create(0.0, HOUR), tokens.create(0.0, HOUR)

    assert tokens.revoke(first.partition(".")[0], 1.0)

    assert (tokens.name_of(first, 1.0), tokens.name_of(second, 1.0)) == ("", second.partition(".")[0])
    assert not tokens.revoke(first.partition(".")[0], 1.0)


def test_the_file_has_no_secret_and_is_private(tokens: JoinTokens, tmp_path: Path) -> None:
    token = tokens.create(0.0, HOUR)
    file = tmp_path / FILE

    assert token.partition(".")[2] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_number_of_valid_tokens_is_bounded(tokens: JoinTokens) -> None:
    for _ in range(MOST):
        tokens.create(0.0, HOUR)

    with pytest.raises(UserError, match="the most allowed"):
        tokens.create(1.0, HOUR)

    assert tokens.create(HOUR, HOUR)
    assert len(tokens.valid(HOUR)) == 1


def test_a_damaged_file_is_reported_with_its_path(tokens: JoinTokens, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")

    with pytest.raises(UserError, match=FILE):
        tokens.valid(0.0)


def test_a_user_of_a_token_has_its_name(tokens: JoinTokens) -> None:
    token = tokens.create(0.0, HOUR)

    actor = JoinAuthenticator(tokens).authenticate(token, "192.0.2.1", 1.0)

    assert actor.name == f"system:bootstrap:{token.partition('.')[0]}"


def test_after_several_wrong_tokens_an_address_has_to_wait_and_others_have_not(tokens: JoinTokens) -> None:
    token, joining = tokens.create(0.0, HOUR), JoinAuthenticator(tokens)
    codes = []
    for _ in range(6):
        with pytest.raises(ApiError) as refused:
            joining.authenticate(f"{'a' * 6}.{'b' * 32}", "192.0.2.1", 1.0)
        codes.append(refused.value.code)

    assert codes == [401, 401, 401, 401, 401, 429]
    with pytest.raises(ApiError) as waits:
        joining.authenticate(token, "192.0.2.1", 2.0)
    assert (waits.value.code, waits.value.headers["Retry-After"]) == (429, "60")
    assert "system:bootstrappers" in joining.authenticate(token, "192.0.2.2", 2.0).groups
    assert "system:bootstrappers" in joining.authenticate(token, "192.0.2.1", 62.0).groups


def test_a_good_token_ends_the_count_of_failures() -> None:
    attempts = FailedAttempts(most=2)
    attempts.failed("a", 0.0)
    attempts.succeeded("a")
    attempts.failed("a", 1.0)

    assert attempts.wait_s("a", 1.0) == 0.0


def test_failures_of_many_addresses_take_bounded_memory() -> None:
    attempts = FailedAttempts(most=1, addresses=2)
    for address in ("a", "b", "c"):
        attempts.failed(address, 0.0)

    assert [attempts.wait_s(address, 0.0) > 0 for address in ("a", "b", "c")] == [False, True, True]

"""Acting as somebody else: the Impersonate-* headers, allowed part by part.

Whoever asks needs the verb `impersonate` on the user or service account, on every group, on the uid, and on every
extra value. The first that is missing refuses the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import unquote

from shoal.cluster.calls import Actor, Attributes
from shoal.cluster.security.verdict import Verdict, refusal
from shoal.cluster.status import internal

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"
Allows = Callable[[Actor, Attributes], Verdict]


def impersonated(actor: Actor, headers: Iterable[tuple[str, str]], allows: Allows) -> Actor:
    """Who the request is from once its headers are heeded; the actor itself when there are none."""
    found = [(name.lower(), _text(value)) for name, value in headers if name[:11].lower() == "impersonate"]
    if not found:
        return actor
    user = next((value for name, value in found if name == _USER), "")
    groups = [value for name, value in found if name == _GROUP]
    uid = next((value for name, value in found if name == _UID), "")
    extra: dict[str, list[str]] = {}
    for name, value in found:
        if name.startswith(_EXTRA):
            extra.setdefault(unquote(name[len(_EXTRA) :]).lower(), []).append(value)
    if not user:
        if groups or uid or extra:
            raise internal(f"requested {_requested(groups, uid, extra)} without impersonating a user")
        return actor
    for asked in _asks(user, groups, uid, extra):
        verdict = allows(actor, asked)
        if not verdict.allowed:
            raise refusal(actor, asked, verdict)
    return Actor(
        user,
        tuple(_all_groups(user, groups)),
        uid,
        tuple((key, tuple(values)) for key, values in sorted(extra.items())),
    )


def _text(value: str) -> str:
    """Bytes that are no UTF-8 come as halves of pairs, which no answer could carry."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _asks(user: str, groups: list[str], uid: str, extra: dict[str, list[str]]) -> Iterable[Attributes]:
    account = service_account_of(user)
    if account is not None:
        yield Attributes("impersonate", version="v1", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes("impersonate", version="v1", resource="users", name=user)
    for group in groups:
        yield Attributes("impersonate", version="v1", resource="groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes("impersonate", _AUTHENTICATION, "v1", "userextras", key, name=value)
    if uid:
        yield Attributes("impersonate", _AUTHENTICATION, "v1", "uids", name=uid)


def service_account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name, of a user name that is a service account's."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, _, name = user[len(_ACCOUNT) :].partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def _all_groups(user: str, groups: list[str]) -> list[str]:
    named = list(groups)
    account = service_account_of(user)
    if account is not None and not named:
        named = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    if user == "system:anonymous":
        return named if "system:unauthenticated" in named else [*named, "system:unauthenticated"]
    known = {"system:authenticated", "system:unauthenticated"}
    return named if known & set(named) else [*named, "system:authenticated"]


def _requested(groups: list[str], uid: str, extra: dict[str, list[str]]) -> str:
    return f"groups {groups}" if groups else f"uid {uid}" if uid else f"extra {sorted(extra)}"

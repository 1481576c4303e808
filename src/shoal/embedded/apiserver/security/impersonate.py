"""Acting as another user: the Impersonate-* headers.

Kubernetes knows several modes, and tries those that apply to the wanted user one after the other. In a constrained
mode the actor needs the right to impersonate (`impersonate:user-info` on each part) and the right to do what is asked
while impersonating (`impersonate-on:user-info:list` on the requested resource). The mode without constraints comes
last: the verb `impersonate` suffices. If all modes refuse, the first refusal is the answer.

Kubernetes remembers for a while in which mode a user last succeeded and tries that one first. Here the order is always
the same, so only the words of a refusal may differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

import msgspec

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.field_errors import shown
from shoal.embedded.apiserver.names import subdomain_fault
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.verdict import AccessDecision, forbidden, refusal
from shoal.embedded.apiserver.status import ApiError, bad_request

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_ACCOUNT, _NODE = "system:serviceaccount:", "system:node:"
_NODE_OF_ACCOUNT = "authentication.kubernetes.io/node-name"
_AUTHENTICATION = "authentication.k8s.io"
_MASTERS = "system:masters"
_MANY = 4
"""From so many groups or extra values on, a constrained mode asks first whether all of them are allowed."""
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
Allows = Callable[[Actor, RequestInfo], AccessDecision]


class ImpersonatedUser(msgspec.Struct, frozen=True):
    """The user that the headers name, as they name it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def is_name_only(self) -> bool:
        return not (self.groups or self.uid or self.extra)


def impersonated(actor: Actor, headers: Iterable[tuple[str, str]], asked: RequestInfo, allows: Allows) -> Actor:
    """Who the request is from once its headers are heeded; the actor itself when there are none."""
    wanted = _wanted(headers)
    if wanted is None:
        return actor
    refusals = []
    for mode in _modes(actor, wanted):
        try:
            return mode.actor(actor, wanted, asked, allows)
        except ApiError as error:
            refusals.append(error)
    raise refusals[0]


def _wanted(headers: Iterable[tuple[str, str]]) -> ImpersonatedUser | None:
    found = [(name.lower(), _text(value)) for name, value in headers if name[:11].lower() == "impersonate"]
    user = next((value for name, value in found if name == _USER), "")
    groups = tuple(value for name, value in found if name == _GROUP)
    uid = next((value for name, value in found if name == _UID), "")
    extra: dict[str, list[str]] = {}
    for name, value in found:
        if name.startswith(_EXTRA):
            extra.setdefault(unquote(name[len(_EXTRA) :]).lower(), []).append(value)
    kept = tuple((key, tuple(values)) for key, values in sorted(extra.items()))
    if user:
        return ImpersonatedUser(user, groups, uid, kept)
    if groups or uid or extra:
        raise bad_request(f"requested {_go_text(groups, uid, kept)} without impersonating a user name")
    return None


def _text(value: str) -> str:
    """Bytes that are no UTF-8 come as halves of pairs, which no answer could carry."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


class _Mode(msgspec.Struct, frozen=True):
    """One way to be allowed. Without a name it is the verb `impersonate` alone."""

    name: str = ""
    is_any_node: bool = False
    """The right must be for all nodes: that of a service account to act as the node it runs on."""

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    def actor(self, actor: Actor, wanted: ImpersonatedUser, asked: RequestInfo, allows: Allows) -> Actor:
        def check(one: RequestInfo) -> None:
            verdict = allows(actor, one)
            if not verdict.allowed:
                raise refusal(actor, one, verdict)

        if self.name:
            check(msgspec.structs.replace(asked, verb=f"impersonate-on:{self.name}:{asked.verb}"))
        check(self._of_name(wanted))
        if wanted.uid:
            check(self._of("uids", wanted.uid))
        self._check_groups(actor, wanted.groups, check)
        self._check_extra(actor, wanted.extra, check)
        return Actor(wanted.name, tuple(self._groups(wanted)), wanted.uid, wanted.extra)

    def _of(self, resource: str, name: str, subresource: str = "") -> RequestInfo:
        in_group = self.name or resource in ("uids", "userextras")
        return RequestInfo(self.verb, _AUTHENTICATION if in_group else "", "v1", resource, subresource, name=name)

    def _of_name(self, wanted: ImpersonatedUser) -> RequestInfo:
        account = service_account_of(wanted.name)
        if account is not None:
            return msgspec.structs.replace(self._of("serviceaccounts", account[1]), namespace=account[0])
        node = _node_of(wanted.name) if self.name else ""
        return self._of("nodes", "*" if self.is_any_node else node) if node else self._of("users", wanted.name)

    def _check_groups(self, actor: Actor, groups: Sequence[str], check: Callable[[RequestInfo], None]) -> None:
        if self.name and "" in groups:
            raise forbidden(actor, self._of("groups", ""), "impersonating the empty string group is not allowed")
        if self.name and _MASTERS in groups:
            words = "impersonating the system:masters group is not allowed"
            raise forbidden(actor, self._of("groups", _MASTERS), words)
        if self.name and len(groups) >= _MANY and _passes(check, self._of("groups", "*")):
            return
        for group in groups:
            check(self._of("groups", group))

    def _check_extra(
        self, actor: Actor, extra: Sequence[tuple[str, Sequence[str]]], check: Callable[[RequestInfo], None]
    ) -> None:
        fault = _extra_fault(extra) if self.name else ""
        if fault:
            raise forbidden(actor, self._of("userextras", ""), fault)
        is_large = len(extra) >= _MANY or sum(len(values) for _, values in extra) >= _MANY
        if self.name and is_large and _passes(check, self._of("userextras", "*", "*")):
            return
        for key, values in extra:
            for value in values:
                check(self._of("userextras", value, key))

    def _groups(self, wanted: ImpersonatedUser) -> list[str]:
        named = list(wanted.groups)
        account = service_account_of(wanted.name)
        if account is not None and not named:
            named = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
        if self.name and _node_of(wanted.name):
            named = ["system:nodes"]
        if wanted.name == "system:anonymous":
            return named if "system:unauthenticated" in named else [*named, "system:unauthenticated"]
        known = {"system:authenticated", "system:unauthenticated"}
        return named if known & set(named) else [*named, "system:authenticated"]


def _passes(check: Callable[[RequestInfo], None], asked: RequestInfo) -> bool:
    try:
        check(asked)
    except ApiError:
        return False
    return True


def _modes(actor: Actor, wanted: ImpersonatedUser) -> Iterable[_Mode]:
    """Those that apply, in the order in which they are tried."""
    node, account = _node_of(wanted.name), service_account_of(wanted.name)
    if node and wanted.is_name_only():
        runs_on = dict(actor.extra).get(_NODE_OF_ACCOUNT, ())
        if service_account_of(actor.name) is not None and runs_on == (node,):
            yield _Mode("associated-node", is_any_node=True)
        yield _Mode("arbitrary-node")
    if account is not None and wanted.is_name_only():
        yield _Mode("serviceaccount")
    if not node and account is None:
        yield _Mode("user-info")
    yield _Mode()


def _extra_fault(extra: Sequence[tuple[str, Sequence[str]]]) -> str:
    for key, values in extra:
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        fault = _key_fault(key)
        if fault:
            return f"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {fault}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_fault(key: str) -> str:
    domain, slash, path = key.partition("/")
    if not (domain and slash and path):
        return f'{shown(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
    fault = subdomain_fault(domain)
    if fault:
        return f"{shown(domain)}: {fault}"
    if not _PATH.fullmatch(path):
        return f"{shown(path)}: Invalid path (regex used for validation is '{_PATH.pattern}')"
    return ""


def service_account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name, of a user name that is a service account's."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, _, name = user[len(_ACCOUNT) :].partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def _node_of(user: str) -> str:
    name = user.removeprefix(_NODE) if user.startswith(_NODE) else ""
    return "" if not name or subdomain_fault(name) else name


def _go_text(groups: Sequence[str], uid: str, extra: Sequence[tuple[str, Sequence[str]]]) -> str:
    def listed(values: Sequence[str]) -> str:
        return "[]string{" + ", ".join(shown(one) for one in values) + "}" if values else "[]string(nil)"

    pairs = ", ".join(f"{shown(key)}:{listed(values)}" for key, values in extra)
    extras = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{shown(uid)}, Groups:{listed(groups)}, Extra:{extras}}}'

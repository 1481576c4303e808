"""The variables that expressions of webhooks and policies see, and how their values are made.

Expressions are compiled once for each text and set of declared variables and kept: policies are evaluated on every
write. An expression that does not compile is kept as its fault, which every evaluation then reports, so that a policy
that slipped in does not let anything pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver.admission_request import attributes_of
from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes
from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.authorization import authorizer as authorizer_value
from shoal.embedded.apiserver.cel.kinds import DYN, STRING, CelType
from shoal.embedded.apiserver.cel.lazy import Lazy
from shoal.embedded.apiserver.cel.program import MUTATING, CelProgram, compile_expression
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo

Obj = dict[str, Any]
Scope = dict[str, Any]
Allows = Callable[[Actor, RequestInfo], Any]
"""Answers with something that has `allowed` and `reason`."""


def _object(**fields: CelType) -> CelType:
    made = CelType("object")
    made.fields = fields
    return made


def _list(items: CelType) -> CelType:
    return CelType("list", items)


def _map(values: CelType) -> CelType:
    return CelType("map", values)


_GVK = _object(group=STRING, version=STRING, kind=STRING)
_GVR = _object(group=STRING, version=STRING, resource=STRING)
_USER = _object(username=STRING, uid=STRING, groups=_list(STRING), extra=_map(_list(STRING)))
_REQUEST = _object(
    kind=_GVK,
    resource=_GVR,
    subResource=STRING,
    requestKind=_GVK,
    requestResource=_GVR,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=CelType("bool"),
    options=DYN,
)
_NAMESPACE_METADATA = _object(
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    labels=_map(STRING),
    annotations=_map(STRING),
    UID=STRING,
    creationTimestamp=CelType("timestamp"),
    deletionGracePeriodSeconds=CelType("int"),
    deletionTimestamp=CelType("timestamp"),
    generation=CelType("int"),
    resourceVersion=STRING,
    finalizers=_list(STRING),
)
_NAMESPACE = _object(metadata=_NAMESPACE_METADATA, spec=_object(finalizers=_list(STRING)), status=_object(phase=STRING))
BASE: Mapping[str, CelType] = {"object": DYN, "oldObject": DYN, "request": _REQUEST, "namespaceObject": _NAMESPACE}
AUTHORIZER = CelType("authorizer")
PARAMS = DYN


class Expression:
    """One expression and what it compiled to, or why it did not."""

    __slots__ = ("_fault", "_program", "text")

    def __init__(self, text: str, variables: Mapping[str, CelType], result: str, *, mutates: bool = False) -> None:
        self.text = text
        self._program: CelProgram | None = None
        self._fault = ""
        try:
            self._program = compile_expression(text, variables, result, MUTATING if mutates else frozenset())
        except CelFault as fault:
            words = str(fault)
            self._fault = words if words.startswith("cel expression") else f"compilation failed: {words}"

    @property
    def fault(self) -> str:
        """Why it does not compile; empty where it does."""
        return self._fault

    @property
    def kind(self) -> CelType:
        return DYN if self._program is None else self._program.kind

    def value(self, scope: Scope) -> Any:
        """What it comes to; a CelFault in the words of Kubernetes otherwise."""
        if self._program is None:
            raise CelFault(f"compilation error: {self._fault}")
        try:
            return self._program.evaluate(scope)
        except CelFault as fault:
            raise CelFault(f"expression '{self.text}' resulted in error: {fault}") from None


class Variables:
    """The variables of one policy: each is worked out when first read, and may read those before it."""

    def __init__(
        self, declared: Sequence[Mapping[str, Any]], visible: Mapping[str, CelType], *, mutates: bool = False
    ) -> None:
        known: dict[str, CelType] = {}
        self._expressions: list[tuple[str, Expression]] = []
        for one in declared:
            seen = {**visible, "variables": _object(**known)}
            made = Expression(one.get("expression", ""), seen, "any", mutates=mutates)
            self._expressions.append((one.get("name", ""), made))
            known[one.get("name", "")] = made.kind
        self.kind = _object(**known)

    @property
    def faults(self) -> list[tuple[int, str]]:
        return [(place, one.fault) for place, (_, one) in enumerate(self._expressions) if one.fault]

    def bound(self, scope: Scope) -> Scope:
        """The scope with `variables` in it."""
        values: dict[str, Lazy] = {}
        whole: Scope = {**scope, "variables": values}
        for name, one in self._expressions:
            values[name] = Lazy(_reading(name, one, whole))
        return whole


def _reading(name: str, expression: Expression, scope: Scope) -> Callable[[], Any]:
    def read() -> Any:
        try:
            # A scope of its own: the steps of one evaluation are counted in it.
            return expression.value(dict(scope))
        except CelFault as fault:
            words = str(fault)
            bare = words.partition(" resulted in error: ")[2] or words
            raise CelFault(f'composited variable "{name}" fails to evaluate: {bare}') from None

    return read


def namespace_object(reader: Reader, name: str) -> Obj | None:
    """What policies may know of a namespace."""
    found = reader.get("", "namespaces", "", name) if name else None
    if found is None:
        return None
    metadata = {key: value for key, value in found["metadata"].items() if key in (_NAMESPACE_METADATA.fields or ())}
    if "uid" in found["metadata"]:
        metadata["UID"] = found["metadata"]["uid"]
    return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}


def authorizer_of(allows: Allows, admission: AdmissionAttributes) -> Any:
    """The variable `authorizer`: asks on behalf of the requester, or of a service account."""

    def check(who: str, asked: RequestInfo) -> tuple[bool, str]:
        actor = admission.call.actor
        if who:
            namespace = who.partition(":")[0]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
            actor = Actor(f"system:serviceaccount:{who}", groups)
        verdict = allows(actor, asked)
        return bool(verdict.allowed), str(verdict.reason)

    return authorizer_value(check, attributes_of(admission))

"""What differs between two answers, as signatures that stay equal from run to run.

What two servers must choose differently is masked first: uids, resource versions, times and ages, addresses,
descriptions of columns. A refusal is compared cause by cause, so that one wrong sentence is one difference. A
signature has no names, numbers or indexes of the object that was sent, so that equal differences count as one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from tools.differences.sending import Answer

CODE, CAUSE, BODY, WORDS = range(4)
RANKS = ("code", "field", "body", "words")

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_RECORD = re.compile(r"in record \(\d+\)")
_AGE = re.compile(r"(\d+[smhdy])+|<invalid>")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?\b\d+(\.\d+)?\b")
_INDEX = re.compile(r"\[[^\]]*\]")
_LONGEST = 300


class Difference(msgspec.Struct, frozen=True):
    rank: int
    where: str
    """The field with indexes left out, or the part of the answer."""
    left: str
    right: str

    @property
    def signature(self) -> str:
        return f"{RANKS[self.rank]} {self.where}: {_general(self.left)} | {_general(self.right)}"


def differences(left: Answer, right: Answer) -> list[Difference]:
    """Nothing, where the answers say the same."""
    one, two = _masked(left.body), _masked(right.body)
    found: list[Difference] = []
    if left.code != right.code:
        said = f"{left.code} {_brief(one)}", f"{right.code} {_brief(two)}"
        found.append(Difference(CODE, "code", *said))
    elif _is_status(one) and _is_status(two):
        found += _of_refusals(one, two)
    else:
        found += _of_values(one, two, "")
    if not found or found[0].rank != CODE:
        found += _of_warnings(left.warnings, right.warnings)
    return found


def _of_refusals(left: dict[str, Any], right: dict[str, Any]) -> Iterator[Difference]:
    for key in ("reason", "status"):
        if left.get(key) != right.get(key):
            yield Difference(CAUSE, key, str(left.get(key)), str(right.get(key)))
    one, two = dict(left.get("details") or {}), dict(right.get("details") or {})
    causes = [_causes(one.pop("causes", None)), _causes(two.pop("causes", None))]
    if one != two:
        yield Difference(BODY, "details", json.dumps(one, sort_keys=True), json.dumps(two, sort_keys=True))
    if Counter(causes[0]) == Counter(causes[1]):
        if left.get("message") != right.get("message"):
            is_order = causes[0] != causes[1]
            said = ("", "") if is_order else (str(left.get("message")), str(right.get("message")))
            yield Difference(WORDS, "order of causes" if is_order else "message", *said)
        return
    yield from _of_causes(causes[0], causes[1])


_STRUCT = re.compile(r'(: )(?:[{\[].*[}\]]|null|"(?:\{|map\[).*")((?:: [^"]*)?)$', re.DOTALL)
_DIFF = re.compile(r"\n(?:@@|  core\.).*", re.DOTALL)


def _without_struct(message: str) -> str:
    """A message of a cause without the object or list that it shows, and without what a refused change would change."""
    return _STRUCT.sub(r"\1VALUE\2", _DIFF.sub("", message), count=1)


_Cause = tuple[str, str, str]


def _causes(causes: list[dict[str, str]] | None) -> list[_Cause]:
    return [(one.get("field", ""), one.get("reason", ""), one.get("message", "")) for one in causes or ()]


def _of_causes(left: list[_Cause], right: list[_Cause]) -> Iterator[Difference]:
    """Causes that one server alone has; those of one field and reason are shown as one difference of words."""
    only_left = list((Counter(left) - Counter(right)).elements())
    only_right = list((Counter(right) - Counter(left)).elements())
    for cause in only_left:
        same = next((one for one in only_right if one[:2] == cause[:2]), None)
        if same:
            only_right.remove(same)
        if same and _without_struct(same[2]) == _without_struct(cause[2]):
            yield Difference(WORDS, "how a cause shows an object", "", "")
            continue
        rank = WORDS if same else CAUSE
        yield Difference(rank, _INDEX.sub("[]", cause[0]), f"{cause[1]} {cause[2]}", " ".join(same[1:]) if same else "")
    for cause in only_right:
        yield Difference(CAUSE, _INDEX.sub("[]", cause[0]), "", f"{cause[1]} {cause[2]}")


def _of_warnings(left: list[str], right: list[str]) -> Iterator[Difference]:
    if Counter(left) == Counter(right):
        if left != right:
            yield Difference(WORDS, "order of warnings", "", "")
        return
    for one in (Counter(left) - Counter(right)).elements():
        yield Difference(CAUSE, "warning", one, "")
    for one in (Counter(right) - Counter(left)).elements():
        yield Difference(CAUSE, "warning", "", one)


def _of_values(left: Any, right: Any, path: str) -> Iterator[Difference]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            inside = f"{path}.{key}" if path else key
            if key in left and key in right:
                yield from _of_values(left[key], right[key], inside)
            else:
                yield Difference(BODY, inside, _text(left, key), _text(right, key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for one, two in zip(left, right, strict=True):
            yield from _of_values(one, two, f"{path}[]")
    elif left != right or type(left) is not type(right):
        yield Difference(BODY, path, json.dumps(left), json.dumps(right))


def _text(value: dict[str, Any], key: str) -> str:
    return json.dumps(value[key]) if key in value else "(absent)"


def _is_status(body: Any) -> bool:
    return isinstance(body, dict) and body.get("kind") == "Status" and "status" in body


def _brief(body: Any) -> str:
    if _is_status(body):
        return f"{body.get('reason', '')} {body.get('message', '')}"
    return body[:_LONGEST] if isinstance(body, str) else ""


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key == "columnDefinitions":
            value = {name: one for name, one in value.items() if name != "description"}
        return {name: _masked(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return ["IP" if key == "clusterIPs" and one != "None" else _masked(one, key) for one in value]
    if key in ("nodePort", "healthCheckNodePort") and value:
        return "PORT"
    if not isinstance(value, str):
        return value
    if key in ("resourceVersion", "continue"):
        return "RV" if value else value
    if key == "clusterIP" and value and value != "None":
        return "IP"
    if key == "serverAddress" or (key == "cells" and _AGE.fullmatch(value)):
        return key
    value = _RECORD.sub("in record (RV)", value)
    return _TOKEN_VOLUME.sub("kube-api-access-N", _TIME.sub("TIME", _UID.sub("UID", value)))


def _general(text: str) -> str:
    """Without what the request has chosen: quoted words, numbers, indexes."""
    return _NUMBER.sub("N", _INDEX.sub("[]", _QUOTED.sub('"…"', text)))[:_LONGEST]

"""Replaces what looks like a secret in logs, messages and configuration.

It replaces values behind names such as `password`, `token` and `apiKey`, in any notation; credentials in URLs; tokens
behind `Bearer`; tokens with a known beginning; private keys. It rather replaces too much than too little, and takes
time proportional to the length of the text.

Guarantees nothing about secrets without a name or a known form. So Secrets, values of environment variables and
annotations with former configurations are not read from objects in the first place.
"""

from __future__ import annotations

import re
from typing import Any

REDACTED = "<redacted>"
_WORD = re.compile(r"[A-Za-z0-9_.\-]+")
_NAMES = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "sessionkey",
    "encryptionkey",
    "credential",
    "authorization",
    "signature",
    "cookie",
    "jwt",
)
_HARMLESS = ("secretname", "secretref", "tokenizer", "resource", "namespace")
_SCHEMES = ("bearer", "basic")
_BEGINNINGS = (
    *("eyJ", "AKIA", "ASIA", "AIza", "hf_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "nvapi-"),
    *("sk-", "xoxb-", "xoxp-", "xoxa-", "npm_", "pypi-", "dckr_pat_"),
)
_LEAST_TOKEN = 16
_LEAST_SCHEME = 8
_ASSIGNING, _QUOTES, _BLANKS = ":=", "\"'", " \t"
_ENDS = frozenset(" \t\"'`,;&)}]<>|\n")
_BEGIN, _END, _KEY = "-----BEGIN", "-----END", "PRIVATE KEY"
_MOST_BETWEEN = 8
"""Letters between a name and its value, such as `\\": \\"`."""


def without_secrets(text: str) -> str:
    lines = []
    is_key = False
    for line in text.split("\n"):
        if is_key:
            is_key = _END not in line
            continue
        if _BEGIN in line and _KEY in line:
            lines.append(line[: line.index(_BEGIN)] + REDACTED)
            is_key = _END not in line
            continue
        lines.append(_line(_without_credentials(line)))
    return "\n".join(lines)


def _line(line: str) -> str:
    parts: list[str] = []
    done = 0
    for word in _WORD.finditer(line):
        if word.start() < done:
            continue
        start, end = _secret(line, word[0], word.start(), word.end())
        if start < end:
            parts += [line[done:start], REDACTED]
            done = end
    return "".join((*parts, line[done:]))


def _secret(line: str, word: str, at: int, after: int) -> tuple[int, int]:
    """Where the value of the word begins and ends; an empty range if it is no secret."""
    if len(word) >= _LEAST_TOKEN and word.startswith(_BEGINNINGS):
        return at, _end(line, at)
    lowered = word.lower()
    if lowered in _SCHEMES and line[after : after + 1] == " ":
        end = _end(line, after + 1)
        return (after + 1, end) if end - after > _LEAST_SCHEME else (0, 0)
    if not is_secret_name(lowered):
        return 0, 0
    start, quote, is_colon = _assigned(line, after)
    if not start and word.startswith("-") and line[after : after + 1] == " ":
        return after + 1, _end(line, after + 1)
    if not start:
        return 0, 0
    if quote:
        end = line.find(quote, start)
        end = len(line) if end < 0 else end
        return start, end - 1 if line[end - 1 : end] == "\\" else end
    if is_colon and not line[:at].strip(" \t-"):
        # A line of YAML or a header: the value goes on to its end.
        return start, len(line)
    return start, _end(line, start)


def is_secret_name(name: str) -> bool:
    plain = name.lower().replace("-", "").replace("_", "").replace(".", "")
    return any(part in plain for part in _NAMES) and not any(part in plain for part in _HARMLESS)


def _assigned(line: str, after: int) -> tuple[int, str, bool]:
    """The place of the value, its quote, and whether a colon is before it; 0 if nothing is assigned."""
    at, last, is_colon, quote = after, min(len(line), after + _MOST_BETWEEN), False, ""
    has_sign = False
    while at < last:
        letter = line[at]
        if letter in _ASSIGNING:
            has_sign, is_colon, quote = True, is_colon or letter == ":", ""
        elif letter in _QUOTES:
            quote = letter if has_sign else ""
            if has_sign:
                return at + 1, quote, is_colon
        elif letter not in _BLANKS and letter not in "\\>":
            break
        at += 1
    return (at, "", is_colon) if has_sign and at < len(line) else (0, "", False)


def _end(line: str, start: int) -> int:
    at = start
    while at < len(line) and line[at] not in _ENDS:
        at += 1
    return at


def _without_credentials(line: str) -> str:
    """URLs without user and password."""
    parts: list[str] = []
    done = 0
    while (at := line.find("://", done)) >= 0:
        start = at + 3
        end = _authority_end(line, start)
        sign = line.rfind("@", start, end)
        parts.append(line[done:start])
        if sign >= 0:
            parts.append(REDACTED)
            start = sign
        parts.append(line[start:end])
        done = end
    return "".join((*parts, line[done:]))


def _authority_end(line: str, start: int) -> int:
    at = start
    while at < len(line) and line[at] not in _ENDS and line[at] not in "/?#":
        at += 1
    return at


def value_without_secrets(value: Any) -> Any:
    """The same for a value of JSON: what is behind the name of a secret or in an environment variable is replaced, and
    other texts are searched. Annotations with a copy of environment variables are left out."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, list):
        return [_item(value, at) for at in range(len(value))]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    is_variable = "name" in value and "value" in value
    for key, inner in value.items():
        if key == "managedFields" or str(key).endswith("last-applied-configuration"):
            continue
        if key == "annotations" and isinstance(inner, dict):
            kept[key] = value_without_secrets({name: one for name, one in inner.items() if not _has_variables(one)})
            continue
        is_secret = isinstance(inner, str) and (is_secret_name(str(key)) or (is_variable and key == "value"))
        kept[key] = (REDACTED if inner else inner) if is_secret else value_without_secrets(inner)
    return kept


def _item(items: list[Any], at: int) -> Any:
    """`--token` and its value may be two arguments of a program."""
    item, option = items[at], items[at - 1] if at else ""
    is_value = isinstance(item, str) and not item.startswith("--")
    if is_value and isinstance(option, str) and _names_secret(option):
        return REDACTED if item else item
    return value_without_secrets(item)


def _names_secret(option: str) -> bool:
    """Whether it is an option whose value is the next argument."""
    has_value = any(sign in option for sign in _ASSIGNING)
    return option.startswith("-") and not has_value and is_secret_name(option)


def _has_variables(text: object) -> bool:
    """Whether it is a text with the environment variables of a container, in JSON or YAML."""
    if not isinstance(text, str):
        return False
    return '"env"' in text.replace("\\", "") or any(line.lstrip(" \t-").startswith("env:") for line in text.split("\n"))

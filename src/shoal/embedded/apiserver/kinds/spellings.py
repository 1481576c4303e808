"""Checks the format of names, keys and values, with Kubernetes' messages.

Every check answers all complaints at once, because a name may be both too long and badly spelt and clients see both
sentences. Clusters repeat a few thousand spellings for ever, so each check keeps its answers: validating the labels of
the ten-thousandth pod is a look into a dictionary.

Rejected: the checks of `shoal.embedded.apiserver.names`, which know object names only and answer one complaint.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from shoal.api.names import LABEL, SUBDOMAIN
from shoal.embedded.apiserver.names import LABEL_1035, LABEL_1035_WORDS, LABEL_WORDS, SUBDOMAIN_WORDS
from shoal.units.bounded_cache import kept

Faults = tuple[str, ...]

_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_PERCENT = re.compile(r"[0-9]+%")

_QUALIFIED_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIX_WORDS = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_LABEL_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_ENVIRONMENT_WORDS = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_CONFIG_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_IDENTIFIER_WORDS = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_HEADER_WORDS = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)
_PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_ADDRESS_WORDS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def longest(limit: int) -> str:
    """Of labels and their keys."""
    return f"must be no more than {limit} bytes"


def longest_text(limit: int) -> str:
    """Of names. Kubernetes counts bytes there as well, and calls them so only in the checks that it wrote anew."""
    return f"must be no more than {limit} characters"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


@kept(most=16384)
def label_key_faults(key: str) -> Faults:
    """Of label and annotation keys, finalizers, resource names, topology keys: `prefix/name` or `name`."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (f"a valid label key {_QUALIFIED_WORDS} {_PREFIX_WORDS}",)
    found: list[str] = []
    if slash:
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        found.append(f"name part {longest(63)}")
    if not _QUALIFIED.fullmatch(name):
        found.append(f"name part {_QUALIFIED_WORDS}")
    return tuple(found)


@kept(most=65536)
def label_value_faults(value: str) -> Faults:
    found: list[str] = []
    if len(value.encode()) > 63:
        found.append(longest(63))
    if not _LABEL_VALUE.fullmatch(value):
        found.append(_LABEL_VALUE_WORDS)
    return tuple(found)


@kept(most=16384)
def dns_label_faults(name: str) -> Faults:
    found: list[str] = []
    if len(name.encode()) > 63:
        found.append(longest_text(63))
    if not LABEL.fullmatch(name):
        found.append("must not contain dots" if SUBDOMAIN.fullmatch(name) else LABEL_WORDS)
    return tuple(found)


@kept(most=4096)
def dns_1035_label_faults(name: str) -> Faults:
    found: list[str] = []
    if len(name.encode()) > 63:
        found.append(longest_text(63))
    if not LABEL_1035.fullmatch(name):
        found.append(LABEL_1035_WORDS)
    return tuple(found)


@kept(most=65536)
def subdomain_faults(name: str) -> Faults:
    found: list[str] = []
    if len(name.encode()) > 253:
        found.append(longest_text(253))
    if not SUBDOMAIN.fullmatch(name):
        found.append(SUBDOMAIN_WORDS)
    return tuple(found)


@kept(most=4096)
def port_name_faults(name: str) -> Faults:
    found: list[str] = []
    if len(name.encode()) > 15:
        found.append(longest_text(15))
    if not _PORT_NAME.fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name and "-" in (name[0], name[-1]):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


@kept(most=16384)
def environment_faults(name: str) -> Faults:
    if not name:
        return ("environment variable name must be non-empty",)
    if all(" " <= letter <= "~" and letter != "=" for letter in name):
        return ()
    return (_ENVIRONMENT_WORDS,)


@kept(most=4096)
def config_key_faults(key: str) -> Faults:
    found: list[str] = []
    if len(key.encode()) > 253:
        found.append(longest_text(253))
    if not _CONFIG_KEY.fullmatch(key):
        found.append(_CONFIG_KEY_WORDS)
    if key == ".":
        found.append("must not be '.'")
    elif key == "..":
        found.append("must not be '..'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


def identifier_faults(name: str) -> Faults:
    return () if _C_IDENTIFIER.fullmatch(name) else (_IDENTIFIER_WORDS,)


def header_faults(name: str) -> Faults:
    return () if _HEADER.fullmatch(name) else (_HEADER_WORDS,)


def percent_faults(text: str) -> Faults:
    return () if _PERCENT.fullmatch(text) else (_PERCENT_WORDS,)


@kept(most=4096)
def address_faults(text: str) -> Faults:
    try:
        ip_address(text)
    except ValueError:
        return (_ADDRESS_WORDS,)
    return ()


def path_segment_faults(name: str) -> Faults:
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{piece}'" for piece in ("/", "%") if piece in name)

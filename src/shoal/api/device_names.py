"""Names inside DRA objects: requests and devices, drivers, pools, attributes and capacities.

Each check returns what is wrong, or nothing, as in `names.py`. An attribute or a capacity without a domain
belongs to the domain of the slice's driver; `full_name` says so in one spelling, so that two claims or
slices can be compared.
"""

from __future__ import annotations

import re

from shoal.api.names import LABEL, object_name_fault
from shoal.units.bounded_cache import kept

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LONGEST_LABEL = 63
_LONGEST_DRIVER = 63
_LONGEST_POOL = 253
_LONGEST_IDENTIFIER = 32


def dns_label_fault(name: str) -> str:
    if len(name) > _LONGEST_LABEL:
        return f"must be no more than {_LONGEST_LABEL} characters"
    if not LABEL.fullmatch(name):
        return "must be lowercase letters, digits or '-', and start and end with a letter or digit"
    return ""


@kept(most=1024)
def driver_fault(name: str) -> str:
    if len(name) > _LONGEST_DRIVER:
        return f"must be no more than {_LONGEST_DRIVER} characters"
    return object_name_fault(name)


@kept(most=16384)
def pool_fault(name: str) -> str:
    """One or more names with slashes between them."""
    if len(name) > _LONGEST_POOL:
        return f"must be no more than {_LONGEST_POOL} characters"
    return next((fault for part in name.split("/") if (fault := object_name_fault(part))), "")


@kept(most=4096)
def qualified_name_fault(name: str) -> str:
    """Attributes and capacities: an identifier, with or without a domain before it."""
    domain, slash, identifier = name.rpartition("/")
    if slash and (fault := driver_fault(domain)):
        return f"the part before /: {fault}"
    if len(identifier) > _LONGEST_IDENTIFIER:
        return f"the identifier must be no more than {_LONGEST_IDENTIFIER} characters"
    if not _IDENTIFIER.fullmatch(identifier):
        return "the identifier must be letters, digits or '_', and not start with a digit"
    return ""


@kept(most=4096)
def full_name_fault(name: str) -> str:
    """Claims are not bound to one driver, so what they compare has to be named with its domain."""
    return qualified_name_fault(name) if "/" in name else "it must include a domain, as in gpu.example.com/model"


def full_name(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"

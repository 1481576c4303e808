"""Class names say what is in a class: none is used in more than two packages, and none is a bare part of an object."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "shoal"
GENERIC = {
    *("_Meta", "_Metadata", "_Spec", "_Status", "_Pod", "_Node", "_Owner", "_Condition", "_Container", "_Head"),
    *("_Labels", "_Labelled", "_State", "_Lease"),
}
"""Parts of objects. `shoal.api.partial` declares those that several readers share; others have a name of their own."""


_CLASS = re.compile(r"^class (\w+)[(:]", re.MULTILINE)


def classes() -> dict[str, set[str]]:
    """The packages that define a class of each name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        package = str(path.parent.relative_to(SOURCE))
        for name in _CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].add(package)
    return found


def test_no_class_name_is_used_in_more_than_two_packages() -> None:
    assert {name: sorted(packages) for name, packages in classes().items() if len(packages) > 2} == {}


def test_no_class_has_the_name_of_a_part_of_any_object() -> None:
    assert {name: sorted(packages) for name, packages in classes().items() if name in GENERIC} == {}

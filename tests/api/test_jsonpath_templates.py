"""Templates of `-o jsonpath=`, as kubectl reads them."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.jsonpath import PathError
from shoal.api.jsonpath_template import Template

PODS: dict[str, Any] = {
    "kind": "List",
    "items": [
        {"name": "a", "gpus": 4.0, "labels": {"x/y": "1"}, "ready": True},
        {"name": "b", "gpus": 0.5, "labels": {}, "ready": False},
    ],
}


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("{.items[*].name}", "a b"),
        ("{.items[0].labels}", '{"x/y":"1"}'),
        (".items[1].name", "b"),
        ("items[1].name", "b"),
        ("{.items[*].gpus}", "4 0.5"),
        ("{.items[0].ready}", "true"),
        ("{.none}", ""),
        ("pods: {.items[0].name}!", "pods: a!"),
        ('{range .items[*]}{.name}{"\\t"}{.gpus}{"\\n"}{end}', "a\t4\nb\t0.5\n"),
        ("{range .items[*]}{$.kind}/{.name}{' '}{end}", "List/a List/b "),
        ('{.items[?(@.name=="b")].gpus}', "0.5"),
        ('{"{"}{.items[0].name}{"}"}', "{a}"),
    ],
)
def test_a_template_is_filled_in(template: str, rendered: str) -> None:
    assert Template(template).render(PODS) == rendered


@pytest.mark.parametrize("template", ["{.a", "{range .a}", "{end}", "{.a[}", "a}"])
def test_a_template_that_cannot_be_read_is_refused(template: str) -> None:
    with pytest.raises(PathError):
        Template(template)

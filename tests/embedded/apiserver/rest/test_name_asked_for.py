"""A list or watch of one name is a question about that object, as Kubernetes asks it."""

from __future__ import annotations

import pytest

from shoal.embedded.apiserver.rest.selection import name_asked_for


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("", ""),
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.namespace=x,metadata.name=a", "a"),
        ("metadata.name!=a", ""),
        ("spec.nodeName=n", ""),
        ("metadata.name", ""),
    ],
)
def test_the_name_is_that_of_an_exact_term(selector: str, name: str) -> None:
    assert name_asked_for(selector) == name

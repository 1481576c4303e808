"""YAML as Kubernetes means it."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.yaml_out import to_yaml
from shoal.api.yaml_text import LOADER, MAX_ALIASED, MAX_DEPTH, read_yaml
from shoal.embedded.apiserver.bodies.yaml_text import NotYamlError, from_yaml
from shoal.units.errors import UserError

SPECIAL = ("y", "N", "on", "off", "yes", "1_000", "1e3", "0o17", "017", "~", "null", "True", ".inf", "<<", "=", "1.0")


def one(text: str) -> Any:
    ((_, value),) = read_yaml(text)
    return value


SCALARS = {
    "true and false are truth values": ("[true, False, TRUE]", [True, False, True]),
    "yes, no, on, off, y and n are truth values": ("[yes, No, on, OFF, y, n]", [True, False, True, False, True, False]),
    "dates are text": ("[2024-01-31, 2024-01-31T12:00:00Z]", ["2024-01-31", "2024-01-31T12:00:00Z"]),
    "times of day are text, not base sixty": ("[12:30:45]", ["12:30:45"]),
    "whole numbers": ("[0, 7, -3, +4]", [0, 7, -3, 4]),
    "hexadecimal, octal, binary": ("[0x1F, 0o17, 017, 0b11]", [31, 15, 15, 3]),
    "fractions and exponents; a whole number is an integer": ("[1.5, .5, 5., 1e3, -2E-1]", [1.5, 0.5, 5, 1000, -0.2]),
    "numbers may have underscores": ("[1_000]", [1000]),
    "quoted is text": ("['true', \"1\", '~', '']", ["true", "1", "~", ""]),
    "quantities are text": ("[1.5Gi, 500m, 1e3k]", ["1.5Gi", "500m", "1e3k"]),
    "versions are text": ("[1.2.3, v1]", ["1.2.3", "v1"]),
    "nulls in a list stay": ("[~, null]", [None, None]),
    "a block of text": ("|\n  a\n  b\n", "a\nb\n"),
    "a tag can make text of a number": ("[!!str 1, !!int 1, !!float 2]", ["1", 1, 2]),
}


@pytest.mark.parametrize(("text", "want"), SCALARS.values(), ids=SCALARS)
def test_scalars(text: str, want: Any) -> None:
    got = one(text)
    assert got == want
    if isinstance(want, list):
        assert [type(value) for value in got] == [type(value) for value in want]


MAPS = {
    "keys are text of the value that they have": ("{1: a, on: c, 'on': d}", {"1": "a", "true": "c", "on": "d"}),
    "null entries are absent": ("{a: , b: ~, c: 1}", {"c": 1}),
    "an alias repeats a value": ("{a: &x [1], b: *x}", {"a": [1], "b": [1]}),
    "a merge fills in what is not said": (
        "{base: &b {x: 1, z: 2}, more: {<<: *b, z: 3}}",
        {"base": {"x": 1, "z": 2}, "more": {"x": 1, "z": 3}},
    ),
    "of several merged maps the first wins": (
        "{p: &p {x: 1}, q: &q {x: 2, z: 2}, r: {<<: [*p, *q]}}",
        {"p": {"x": 1}, "q": {"x": 2, "z": 2}, "r": {"x": 1, "z": 2}},
    ),
    "saying null wins over a merge": ("{p: &p {x: 1}, r: {x: ~, <<: *p}}", {"p": {"x": 1}, "r": {}}),
    "a quoted << is a key": ("{'<<': 1}", {"<<": 1}),
}


@pytest.mark.parametrize(("text", "want"), MAPS.values(), ids=MAPS)
def test_maps(text: str, want: Any) -> None:
    assert one(text) == want


def test_documents_are_numbered_as_they_stand_and_empty_ones_skipped() -> None:
    assert list(read_yaml("a: 1\n---\n---\n# nothing\n---\nb: 2\n")) == [(1, {"a": 1}), (4, {"b": 2})]
    assert list(read_yaml("")) == []


def test_anchors_end_with_their_document() -> None:
    with pytest.raises(UserError, match="document 2"):
        list(read_yaml("a: &x 1\n---\nb: *x\n"))


REFUSED = {
    "a key given twice": ("a: 1\nb: 2\na: 3", 'line 3, column 1: key "a" is given twice'),
    "a key given twice, once as null": ("a:\na: 3", 'key "a" is given twice'),
    "an unclosed list": ("a: [1,\n", "line 2"),
    "a tab for indentation": ("a:\n\t- b", "line 2, column 1"),
    "an unknown alias": ("a: *x", "alias *x is used before its anchor"),
    "an alias inside its own anchor": ("a: &x [*x]", "alias *x is used before its anchor"),
    "a tag of a programming language": ("a: !!python/object:os.system x", "is not supported here"),
    "a custom tag": ("a: !Ref x", "tag !Ref is not supported here"),
    "a custom tag on a map": ("a: !Ref {}", "tag !Ref is not supported here"),
    "a map as a key": ("? {a: 1}\n: b", "a key must be plain text"),
    "an alias as a key": ("a: &x y\n*x : b", "a key must be plain text"),
    "infinity": ("a: .inf", "unsupported value: +Inf"),
    "a number beyond all floats": ("a: 1e999", "unsupported value: +Inf"),
    "null as a key": ("~: a", "a key must be text, not null"),
    "two keys of one value": ("on: a\ntrue: b", 'key "true" is given twice'),
    "a merge of a word": ("<<: a", "<< needs a map"),
    "control characters": ("a: \x01", "unacceptable character"),
    "too deep a nest": ("[" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} levels"),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("loader", [LOADER, yaml.SafeLoader], ids=["libyaml", "pure python"])
def test_invalid_documents_are_refused_with_their_place(text: str, complaint: str, loader: Any) -> None:
    with pytest.raises(UserError) as refusal:
        list(read_yaml(text, "f.yaml", loader))
    assert str(refusal.value).startswith("f.yaml: document ")
    assert complaint in str(refusal.value)


def test_aliases_cannot_blow_up_the_input() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    with pytest.raises(UserError, match=f"aliases repeat more than {MAX_ALIASED} values"):
        list(read_yaml("\n".join(lines)))


def test_large_documents_without_aliases_are_fine() -> None:
    assert len(one("[" + "x, " * (MAX_ALIASED + 1) + "]")) == MAX_ALIASED + 1


words = st.one_of(st.text(st.characters(categories=("L", "N", "P", "S", "Z")), max_size=8), st.sampled_from(SPECIAL))
values = st.recursive(
    st.one_of(st.booleans(), st.integers(-(10**9), 10**9), words, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(words, values, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert one(to_yaml(value)) == value


@given(value=st.dictionaries(words, values, min_size=1, max_size=4), are_quoted=st.booleans())
def test_manifests_and_request_bodies_are_read_alike(value: dict[str, Any], *, are_quoted: bool) -> None:
    """`shoal decide` and `shoal up` take one file to mean the same, also where its writer did not quote."""
    text = to_yaml(value) if are_quoted else yaml.safe_dump(value)
    try:
        by_server = from_yaml(text.encode())[0]
    except NotYamlError:
        with pytest.raises(UserError):
            one(text)
    else:
        assert one(text) == by_server

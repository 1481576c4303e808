"""Rules in CEL on custom resources: what they say when broken, where, why, and when they are held against a change."""

from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_kinds import CRDS, defined, definition, fields, items, text, version, whole

Obj = dict[str, Any]


def ruled(schema: Obj, *rules: Obj) -> Obj:
    return {**schema, "x-kubernetes-validations": list(rules)}


LIMITS = fields({"min": whole(), "max": whole(), "name": text(maxLength=20)})


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"rule": "self.min <= self.max"}, "spec: Invalid value: {0}: failed rule: self.min <= self.max"),
        ({"rule": "self.min <= self.max", "message": "wrong way"}, "spec: Invalid value: {0}: wrong way"),
        (
            {
                "rule": "self.min <= self.max",
                "messageExpression": "'min is over max ' + self.name + '!'",
                "message": "unused",
            },
            "spec: Invalid value: {0}: min is over max !",
        ),
        (
            {"rule": "self.min <= self.max", "messageExpression": "self.name", "message": "the plain one"},
            "the plain one",
        ),
        ({"rule": "self.min <= self.max", "fieldPath": ".max", "message": "too low"}, "spec.max: Invalid value: "),
        (
            {"rule": "self.min <= self.max", "reason": "FieldValueForbidden", "message": "no"},
            "spec: Forbidden: no",
        ),
        ({"rule": "self.min <= self.max", "reason": "FieldValueRequired", "message": "no"}, "spec: Required value: no"),
        ({"rule": "self.min <= self.max", "reason": "FieldValueDuplicate", "message": "no"}, "spec: Duplicate value"),
    ],
)
async def test_a_broken_rule_says_what_why_and_where(api: Api, rule: Obj, says: str) -> None:
    async with defined(api, version(spec=ruled(LIMITS, rule))) as kind:
        await kind.made("good", {"min": 1, "max": 3, "name": ""})
        answer = await kind.create("bad", {"min": 5, "max": 3, "name": ""})
        message = answer.refused(422, "Invalid")
        for part in says.split("{0}"):
            assert part in message
        causes = answer.body["details"]["causes"]
        assert causes[0]["reason"] == rule.get("reason", "FieldValueInvalid")
        assert causes[0]["field"] == "spec" + rule.get("fieldPath", "")


async def test_a_message_of_numbers_costs_too_much(api: Api) -> None:
    """Nothing says how long the text of a number may be."""
    rule = {"rule": "self.min <= self.max", "messageExpression": "'min ' + string(self.min)"}
    crd = definition(version(spec=ruled(LIMITS, rule)))
    message = (await api.post(CRDS, crd)).refused(422, "Invalid")
    words = "messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x"
    assert words in message


async def test_every_broken_rule_is_told(api: Api) -> None:
    rules = ({"rule": "self.min > 0", "message": "first"}, {"rule": "self.max > 0", "message": "second"})
    async with defined(api, version(spec=ruled(LIMITS, *rules))) as kind:
        message = (await kind.create("w", {"min": 0, "max": 0})).refused(422, "Invalid")
        assert "first" in message
        assert "second" in message


@pytest.mark.parametrize(
    ("kind_of", "rule", "good", "bad"),
    [
        (text(maxLength=50), "quantity(self).isGreaterThan(quantity('1Gi'))", "2Gi", "1Mi"),
        (text(maxLength=50), "isQuantity(self) && quantity(self).add(quantity('1')).asInteger() == 3", "2", "3"),
        (text(maxLength=50), "self.find('[0-9]+') == '42'", "a42b", "a7b"),
        (text(maxLength=50), "self.findAll('[a-z]').size() == 2", "1a2b", "1a2"),
        (
            text(maxLength=50),
            "isURL(self) && url(self).getScheme() == 'https'",
            "https://a.example/x",
            "http://a.example",
        ),
        (
            text(),
            "url(self).getHostname() == 'a.example' && url(self).getPort() == '8'",
            "https://a.example:8/",
            "https://b:8",
        ),
        (text(maxLength=50), "isIP(self) && ip(self).family() == 4", "10.0.0.1", "::1"),
        (text(maxLength=50), "isCIDR(self) && cidr(self).containsIP('10.1.2.3')", "10.0.0.0/8", "192.168.0.0/16"),
        (text(maxLength=50), "isSemver(self) && semver(self).isGreaterThan(semver('1.2.3'))", "1.10.0", "1.2.0"),
        (text(maxLength=50), "!format.dns1123Label().validate(self).hasValue()", "abc", "Not_A_Label"),
        (text(maxLength=50), "self.matches('^a+$')", "aaa", "b"),
        (text(maxLength=50), "self.startsWith('a') && self.endsWith('z') && self.contains('m')", "amz", "az"),
        (text(maxLength=50), "self.lowerAscii() == 'abc' && self.trim() == self", "ABC", " abc"),
        (text(maxLength=50), "self.split(',').exists_one(x, x == 'b')", "a,b", "b,b"),
        (text(maxLength=50), "self.replace('a', 'b') == 'bb' && self.substring(1) != 'x'", "ab", "ax"),
        (
            text(format="date-time"),
            "self > timestamp('2020-01-01T00:00:00Z')",
            "2021-01-01T00:00:00Z",
            "2019-01-01T00:00:00Z",
        ),
        (text(format="duration"), "self > duration('1m')", "2m", "1s"),
        (whole(), "self % 2 == 0 ? self > 2 : self > 100", 4, 3),
        ({"type": "number"}, "self * 2.0 > 1.0", 0.75, 0.25),
        (items(whole(), maxItems=9), "self.isSorted() && self.sum() < 10", [1, 2, 3], [3, 2, 1]),
        (items(whole(), maxItems=9), "self.max() == 3 && self.indexOf(1) == 0", [1, 3], [3, 1]),
        (
            items(text(maxLength=9), maxItems=9),
            "self.all(x, x.size() > 1) && self.map(x, x + '!').size() == 1",
            ["ab"],
            ["a"],
        ),
        (items(whole(), maxItems=9), "self.filter(x, x > 2).size() == 1 && 3 in self", [1, 3], [1, 4]),
        (
            fields(additionalProperties=whole(), maxProperties=9),
            "self.all(k, self[k] > 0) && 'a' in self",
            {"a": 1},
            {"a": 0},
        ),
        (fields({"a": text(), "b": text()}), "has(self.a) != has(self.b)", {"a": ""}, {"a": "", "b": ""}),
        (fields({"a": text()}), "self.?a.orValue('none') != 'x'", {}, {"a": "x"}),
        ({"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 1 : self == 'auto'", "auto", 1),
        (
            fields({"a-b": whole(), "for": whole()}),
            "self.a__dash__b > 0 && self.__for__ > 0",
            {"a-b": 1, "for": 1},
            {"a-b": 1, "for": 0},
        ),
    ],
)
async def test_the_functions_of_kubernetes_decide(api: Api, kind_of: Obj, rule: str, good: Any, bad: Any) -> None:
    schema = fields({"v": ruled(kind_of, {"rule": rule, "message": "broken"})})
    async with defined(api, version(spec=schema)) as kind:
        await kind.made("good", {"v": good})
        assert "broken" in (await kind.create("bad", {"v": bad})).refused(422, "Invalid")


async def test_a_rule_at_the_root_sees_metadata_names(api: Api) -> None:
    root = ruled(
        fields({"spec": fields({"a": text()})}),
        {"rule": "self.metadata.name.startsWith('w')", "message": "names start with w"},
    )
    async with defined(api, version(root=root)) as kind:
        await kind.made("w", {"a": ""})
        assert "<nil>: Invalid value: " in (await kind.create("v", {"a": ""})).refused(422, "Invalid")


async def test_a_rule_on_change_holds_only_against_changes(api: Api) -> None:
    frozen = ruled(text(maxLength=50), {"rule": "self == oldSelf", "message": "is immutable"})
    async with defined(api, version(spec=fields({"v": frozen, "other": text()}))) as kind:
        await kind.made("w", {"other": "1"})
        (await api.patch(kind.path("w"), {"spec": {"v": "a"}})).ok()
        (await api.patch(kind.path("w"), {"spec": {"other": "2"}})).ok()
        answer = await api.patch(kind.path("w"), {"spec": {"v": "b"}})
        assert answer.refused(422, "Invalid").endswith('spec.v: Invalid value: "b": is immutable')
        (await api.patch(kind.path("w"), {"spec": {"v": None}})).ok()


async def test_a_rule_may_run_where_there_was_nothing_before(api: Api) -> None:
    rule = {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True, "message": "only up"}
    async with defined(api, version(spec=fields({"v": ruled(whole(), rule)}))) as kind:
        await kind.made("w", {"v": 3})
        (await api.patch(kind.path("w"), {"spec": {"v": 4}})).ok()
        assert "only up" in (await api.patch(kind.path("w"), {"spec": {"v": 2}})).refused(422, "Invalid")


async def test_items_of_keyed_lists_are_compared_with_what_they_were(api: Api) -> None:
    item = fields({"name": text(), "size": ruled(whole(), {"rule": "self >= oldSelf", "message": "no shrinking"})})
    keyed = items(
        {**item, "required": ["name"]}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    )
    async with defined(api, version(spec=fields({"list": keyed}))) as kind:
        await kind.made("w", {"list": [{"name": "a", "size": 3}, {"name": "b", "size": 9}]})
        turned = {"spec": {"list": [{"name": "b", "size": 9}, {"name": "a", "size": 4}, {"name": "c", "size": 1}]}}
        (await api.patch(kind.path("w"), turned)).ok()
        shrunk = {"spec": {"list": [{"name": "b", "size": 8}]}}
        message = (await api.patch(kind.path("w"), shrunk)).refused(422, "Invalid")
        assert "spec.list[0].size: Invalid value: 8: no shrinking" in message


async def test_what_did_not_change_is_not_held_against_a_rule_that_came_later(api: Api) -> None:
    async with defined(api, version(spec=fields({"v": whole(), "other": text()}))) as kind:
        await kind.made("w", {"v": 1})
        strict = ruled(whole(), {"rule": "self > 5", "message": "too small"})
        await kind.redefine(version(spec=fields({"v": strict, "other": text()})))
        while (await api.post(kind.path(), kind.obj("probe", {"v": 1}), dryRun="All")).code == 201:
            pass
        (await api.patch(kind.path("w"), {"spec": {"other": "x"}})).ok()
        assert "too small" in (await api.patch(kind.path("w"), {"spec": {"v": 2}})).refused(422, "Invalid")


async def test_rules_run_when_the_status_is_written(api: Api) -> None:
    status = fields({"n": ruled(whole(), {"rule": "self >= 0", "message": "negative"})})
    root = fields({"spec": fields(), "status": status})
    async with defined(api, version(root=root, subresources={"status": {}})) as kind:
        await kind.made("w", {})
        assert "negative" in (await api.patch(kind.path("w", "status"), {"status": {"n": -1}})).refused(422, "Invalid")
        assert (await api.patch(kind.path("w", "status"), {"status": {"n": 1}})).ok()["status"] == {"n": 1}

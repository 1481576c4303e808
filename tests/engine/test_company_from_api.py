"""Affinity and spread as manifests write them, and the rules they come to."""

from __future__ import annotations

import textwrap

import pytest

from build.company import apart, selected, spread, together, wished
from build.pods import ask
from shoal.api.decode import read
from shoal.api.pod import Pod
from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.engine.domains.reading import anti_affinity_that_misses_itself, rules_of
from shoal.engine.pod_rules import NO_RULES, PodRules, SelectedPods

LABELS = {"app": "web", "version": "2"}


def pod(spec: str) -> Pod:
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team, labels: {app: web, version: '2'}}\nspec:\n"
    body = textwrap.indent(textwrap.dedent(spec) + "\ncontainers: [{name: c}]\n", "  ")
    (document,) = read(head + body)
    assert isinstance(document.value, Pod)
    return document.value


def rules(spec: str) -> PodRules:
    return rules_of(pod(spec).spec, "team", LABELS)


def required(term: str, kind: str = "podAffinity") -> str:
    return f"affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"


def mine(*more: Requirement) -> SelectedPods:
    return SelectedPods(Selector((Requirement("app", "In", ("web",)), *more)), ("team",))


RULES: dict[str, tuple[str, PodRules]] = {
    "nothing said": ("", NO_RULES),
    "only about nodes": ("affinity: {nodeAffinity: {}}", NO_RULES),
    "a term without namespaces is about its own": (
        required("{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}"),
        ask().near(together("zone", mine())).rules,
    ),
    "named namespaces, in any order": (
        required("{topologyKey: zone, namespaces: [b, a, b], labelSelector: {matchLabels: {app: web}}}"),
        ask().near(together("zone", selected("a", "b", app="web"))).rules,
    ),
    "namespaces by label leave its own out": (
        required("{topologyKey: zone, namespaceSelector: {matchLabels: {x: 'y'}}, labelSelector: {}}"),
        ask()
        .near(together("zone", SelectedPods(Selector.EVERYTHING, (), Selector((Requirement("x", "In", ("y",)),)))))
        .rules,
    ),
    "an empty namespace selector is about all": (
        required("{topologyKey: zone, namespaceSelector: {}, labelSelector: {}}"),
        ask().near(together("zone", SelectedPods(Selector.EVERYTHING, (), Selector.EVERYTHING))).rules,
    ),
    "no selector means nobody": (
        required("{topologyKey: zone}"),
        ask().near(together("zone", SelectedPods(Selector.NOTHING, ("team",)))).rules,
    ),
    "matchLabelKeys adds its own value, and a key it lacks changes nothing": (
        required("{topologyKey: zone, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [version, lacking]}"),
        ask().near(together("zone", mine(Requirement("version", "In", ("2",))))).rules,
    ),
    "mismatchLabelKeys excludes its own value": (
        required("{topologyKey: zone, labelSelector: {matchLabels: {app: web}}, mismatchLabelKeys: [version]}"),
        ask().near(together("zone", mine(Requirement("version", "NotIn", ("2",))))).rules,
    ),
    "what the API server has written in already is not written twice": (
        required(
            "{topologyKey: zone, matchLabelKeys: [version], labelSelector: "
            "{matchLabels: {app: web}, matchExpressions: [{key: version, operator: In, values: ['2']}]}}"
        ),
        ask().near(together("zone", mine(Requirement("version", "In", ("2",))))).rules,
    ),
    "a term written twice": (
        required("{topologyKey: h, labelSelector: {}}, {topologyKey: h, labelSelector: {}}", "podAntiAffinity"),
        ask().near(apart("h", selected("team"))).rules,
    ),
    "preferences, against company with a negative weight": (
        """
        affinity:
          podAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - {weight: 7, podAffinityTerm: {topologyKey: zone, labelSelector: {}}}
          podAntiAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - {weight: 100, podAffinityTerm: {topologyKey: h, labelSelector: {}}}
        """,
        ask().near(wished(7, "zone", selected("team")), wished(-100, "h", selected("team"))).rules,
    ),
    "a spread with all it can say": (
        """
        topologySpreadConstraints:
        - maxSkew: 3
          minDomains: 4
          topologyKey: zone
          whenUnsatisfiable: DoNotSchedule
          nodeAffinityPolicy: Ignore
          nodeTaintsPolicy: Honor
          matchLabelKeys: [version]
          labelSelector: {matchLabels: {app: web}}
        """,
        ask()
        .near(
            spread(
                "zone",
                mine(Requirement("version", "In", ("2",))),
                skew=3,
                least=4,
                honors_affinity=False,
                honors_taints=True,
            )
        )
        .rules,
    ),
    "a soft spread": (
        """
        topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: h, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
        """,
        ask().near(spread("h", selected("team"), hard=False)).rules,
    ),
}


@pytest.mark.parametrize(("spec", "want"), RULES.values(), ids=RULES)
def test_rules(spec: str, want: PodRules) -> None:
    got = rules(spec)
    assert got == want
    assert hash(got) == hash(want)


def test_equal_rules_written_differently_are_equal() -> None:
    one = required("{topologyKey: z, labelSelector: {matchLabels: {b: '1', a: '2'}}}")
    other = required(
        "{topologyKey: z, labelSelector: {matchExpressions: "
        "[{key: b, operator: In, values: ['1', '1']}, {key: a, operator: In, values: ['2']}]}}"
    )
    assert rules(one) == rules(other)


MISSES: dict[str, tuple[str, list[str]]] = {
    "a term about another label": (
        required("{topologyKey: h, labelSelector: {matchLabels: {workload-type: training}}}", "podAntiAffinity"),
        ["spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"],
    ),
    "a term about its own label": (
        required("{topologyKey: h, labelSelector: {matchLabels: {app: web}}}", "podAntiAffinity"),
        [],
    ),
    "affinity to others is nothing odd": (
        required("{topologyKey: h, labelSelector: {matchLabels: {app: cache}}}"),
        [],
    ),
    "a preference": (
        """
        affinity:
          podAntiAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - {weight: 1, podAffinityTerm: {topologyKey: h, labelSelector: {matchLabels: {a: b}}}}
        """,
        ["spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"],
    ),
}


@pytest.mark.parametrize(("spec", "paths"), MISSES.values(), ids=MISSES)
def test_anti_affinity_that_does_not_mean_the_pod_itself_is_found(spec: str, paths: list[str]) -> None:
    assert [path for path, _ in anti_affinity_that_misses_itself(pod(spec).spec, LABELS)] == paths

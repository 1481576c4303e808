"""Evaluates the rules of alerts over series in memory, and keeps which alerts are pending and which fire.

An alert is pending from the first moment at which its expression is true, and fires once that lasted as long as its
rule says, as in Prometheus. `restore` continues the alerts of an earlier process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.policy.alert_rules import RECORDED, AlertRule
from shoal.policy.alert_texts import rendered
from shoal.prometheus.promql.evaluation import Evaluation, check_supported
from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.prometheus.promql.tokens import milliseconds
from shoal.prometheus.promql.trees import Expression, lookback_ms, selectors

INTERVAL_MS = 30_000
_MOST_OF_RULE = 20_000
"""Alerts of one rule; further ones are left out."""
_ALERT_NAME = "alertname"
RuleState = Literal["pending", "firing"]
LabelPairs = tuple[tuple[str, str], ...]


class RuleAlert(msgspec.Struct, frozen=True):
    """An alert of a rule about one set of labels."""

    labels: dict[str, str]
    """With `alertname` and `severity`."""
    annotations: dict[str, str]
    state: RuleState
    since_ms: int
    """Since when its expression is true."""
    value: float
    fired_ms: int | None = None
    ended_ms: int | None = None

    @property
    def key(self) -> LabelPairs:
        return tuple(sorted(self.labels.items()))


class AlertChanges(msgspec.Struct, frozen=True):
    fired: list[RuleAlert]
    ended: list[RuleAlert]
    """Those that fired before."""


class AlertRound(msgspec.Struct, frozen=True):
    """What a receiver of alerts learns at a moment."""

    at_ms: int
    firing: Sequence[RuleAlert]
    """All that fire."""
    changes: AlertChanges
    """Since the last round that the receiver has accepted."""


class _ReadRule(msgspec.Struct, frozen=True):
    rule: AlertRule
    tree: Expression
    lasting_ms: int


class AlertStates:
    def __init__(self, rules: Sequence[AlertRule]) -> None:
        """Raises PromqlError for a rule that cannot be evaluated."""
        self._rules = [_ReadRule(one, _checked(one.expression), milliseconds(one.lasting)) for one in rules]
        self._recorded = [(name, _checked(text)) for name, text in RECORDED]
        kept: dict[str, int] = {}
        for tree in (*(tree for _, tree in self._recorded), *(one.tree for one in self._rules)):
            back = lookback_ms(tree)
            for one in selectors(tree):
                kept[one.name] = max(kept.get(one.name, 0), back)
        self.store = SeriesStore(kept)
        self._evaluation = Evaluation(self.store, INTERVAL_MS)
        self._alerts: dict[str, dict[LabelPairs, RuleAlert]] = {one.name: {} for one in rules}

    def restore(self, alerts: Iterable[RuleAlert]) -> None:
        for one in alerts:
            of_rule = self._alerts.get(one.labels.get(_ALERT_NAME, ""))
            if of_rule is not None:
                of_rule[one.key] = one

    def alerts(self) -> list[RuleAlert]:
        """Those that are pending or fire."""
        return [one for of_rule in self._alerts.values() for one in of_rule.values()]

    def evaluate(self, at_ms: int) -> Iterator[AlertChanges]:
        """What has changed, rule by rule, so that the caller may do other things between."""
        for name, tree in self._recorded:
            parts = self._evaluation.vector(tree, at_ms)
            self.store.record(name, at_ms, (LabelledValue(name, one.labels, one.value) for one in parts))
            yield AlertChanges([], [])
        for rule in self._rules:
            yield self._evaluated(rule, at_ms)
        self.store.forget(at_ms)

    def _evaluated(self, rule: _ReadRule, at_ms: int) -> AlertChanges:
        known = self._alerts[rule.rule.name]
        present: dict[LabelPairs, RuleAlert] = {}
        fired = []
        for part in self._evaluation.vector(rule.tree, at_ms)[:_MOST_OF_RULE]:
            labels = part.labels.to_dict()
            named = {**labels, "severity": rule.rule.severity, _ALERT_NAME: rule.rule.name}
            key = tuple(sorted(named.items()))
            before = known.get(key)
            since = at_ms if before is None else before.since_ms
            does_fire = at_ms - since >= rule.lasting_ms
            fired_ms = None if before is None else before.fired_ms
            alert = RuleAlert(
                labels=named,
                annotations=_annotations(rule.rule, labels, part.value) if does_fire else {},
                state="firing" if does_fire else "pending",
                since_ms=since,
                value=part.value,
                fired_ms=at_ms if does_fire and fired_ms is None else fired_ms,
            )
            present[key] = alert
            if does_fire and fired_ms is None:
                fired.append(alert)
        ended = [
            msgspec.structs.replace(one, ended_ms=at_ms)
            for key, one in known.items()
            if key not in present and one.state == "firing"
        ]
        self._alerts[rule.rule.name] = present
        return AlertChanges(fired, ended)


def _checked(expression: str) -> Expression:
    tree = parsed(expression)
    check_supported(tree)
    return tree


def _annotations(rule: AlertRule, labels: Mapping[str, str], value: float) -> dict[str, str]:
    texts = {"summary": rule.summary, "description": rule.description, "runbook": rule.runbook}
    return {name: rendered(text, labels, value) for name, text in texts.items()}

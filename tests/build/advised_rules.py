"""The rules of the advisor by their modules: two tables of tests share them, so that every rule is in one of them."""

from __future__ import annotations

from shoal.policy.advice import Rule
from shoal.policy.rules import FILE_RULES, TABLE

ABOUT_CLUSTERS = frozenset(
    {
        *("autoscaling_rules", "file_rules", "instance_rules", "monitoring_rules", "network_rules", "sharing_rules"),
    }
)
"""Modules with rules about the operation of clusters. Those that are in no set are about workloads and queues."""
ABOUT_TEXTS = {"name_references", "number_rules", "process_rules", "spelling_rules"}
ABOUT_FIELDS = frozenset({"schema_rules", "pod_rules", "reference_rules"})
"""Modules with rules about fields and references, which are checked in files."""


def rules_about_clusters() -> set[Rule]:
    return {rule for rule in _all() if _module(rule) in ABOUT_CLUSTERS}


def rules_about_texts() -> set[Rule]:
    """Shown by texts with one mistake each."""
    return {rule for rule in _all() if _module(rule) in ABOUT_TEXTS}


def rules_about_fields() -> set[Rule]:
    return {rule for rule in _all() if _module(rule) in ABOUT_FIELDS}


def rules_about_workloads() -> set[Rule]:
    return _all() - rules_about_clusters() - rules_about_fields() - rules_about_texts()


def _all() -> set[Rule]:
    return {*(rule for row in TABLE for rule in row.rules), *FILE_RULES}


def _module(rule: Rule) -> str:
    return rule.check.__module__.rpartition(".")[2]

"""Names of the policies that are made of rules. `python -m tools.rules_page` writes this file."""

from __future__ import annotations

RULE_POLICIES = (
    "shoal-rule-shl-305",
    "shoal-rule-shl-320",
    "shoal-rule-shl-351",
    "shoal-rule-shl-352",
    "shoal-rule-shl-353",
    "shoal-rule-shl-354",
    "shoal-rule-shl-355",
    "shoal-rule-shl-305-data",
)

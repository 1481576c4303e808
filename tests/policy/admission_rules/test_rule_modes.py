"""The modes of the admission rules as the configuration of `shoal run` says them."""

from __future__ import annotations

import pytest

from shoal.api.admission_settings import AdmissionSettings
from shoal.policy.admission_rules.modes import RuleModes, modes_of
from shoal.units.errors import UserError, Where


def test_rules_are_named_by_name_or_id_and_the_namespace_of_shoal_is_excluded() -> None:
    settings = AdmissionSettings(mode=False, rules={"SHL-354": "enforce", "NoGpuToleration": "warn"})
    modes = modes_of(settings, "gpu-system")
    assert modes.default == "off"
    assert modes.rules == {"PrivilegedContainer": "enforce", "NoGpuToleration": "warn"}
    assert {"kube-system", "gpu-system"} <= set(modes.excluded)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"NoGpuTolerations": "warn"}, "did you mean NoGpuToleration?"),
        # A rule of lint that no object is checked for when it is created.
        ({"UnknownField": "warn"}, "is no rule at admission"),
    ],
)
def test_a_rule_that_is_not_for_admission_is_refused(rules: dict[str, bool | str], words: str) -> None:
    with pytest.raises(UserError) as refusal:
        modes_of(AdmissionSettings(rules=rules), "shoal-system")  # type: ignore[arg-type]
    assert words in str(refusal.value)


def test_true_is_no_mode() -> None:
    with pytest.raises(UserError, match="write off, warn or enforce"):
        AdmissionSettings(mode=True).check(Where())


def test_nothing_applies_in_an_excluded_namespace() -> None:
    modes = RuleModes(default="enforce", excluded=("kube-system",))
    assert modes.mode("UnequalGpus", "kube-system", {"admission.shoal.dev/mode": "enforce"}) == "off"
    assert modes.mode("UnequalGpus", "team", {}) == "enforce"

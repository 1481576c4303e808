"""`shoal policy`: the policies for an API server, and what the rules would refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.ruled_pods import container, pod
from shoal.api.yaml_text import read_yaml
from shoal.cli.main import main
from shoal.policy.admission_rules.past import CreatedPods
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges

Obj = dict[str, Any]
DAY_MS = 86_400_000


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["policy", *arguments]) == 0
    return capsys.readouterr().out


def test_policies_are_printed_for_kubectl_with_their_bindings(capsys: pytest.CaptureFixture[str]) -> None:
    text = _printed(capsys, "generate", "--rule", "PrivilegedContainer=enforce", "--exclude-namespace", "monitoring")
    objects = [obj for _, obj in read_yaml(text, "stdout") if isinstance(obj, dict)]
    by_name = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}
    policy = by_name["ValidatingAdmissionPolicy", "shoal-rule-shl-354"]
    (selector,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert {"kube-system", "shoal-system", "monitoring"} <= set(selector["values"])
    assert policy["spec"]["failurePolicy"] == "Fail"
    binding = by_name["ValidatingAdmissionPolicyBinding", "shoal-rule-shl-354-enforce"]
    assert binding["spec"]["validationActions"] == ["Deny"]
    assert by_name["ValidatingAdmissionPolicyBinding", "shoal-rule-shl-352-warn"]["spec"]["validationActions"] == [
        "Warn"
    ]
    assert ("MutatingAdmissionPolicy", "shoal-add-toleration") in by_name


def test_a_rule_that_is_off_by_default_can_still_be_chosen_by_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(_printed(capsys, "generate", "--mode", "off", "--part", "rules", "-o", "json"))
    bindings = [obj for obj in whole["items"] if obj["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert bindings
    for each in bindings:
        selected = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert any(one["operator"] == "In" for one in selected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rule", "PrivilegedContainers=warn"), "did you mean PrivilegedContainer?"),
        (("--rule", "PrivilegedContainer"), "is not NAME=MODE"),
        (("--mode", "deny"), "deny"),
        (("--part", "all"), "all"),
    ],
)
def test_unknown_rules_modes_and_parts_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["policy", "generate", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_preview_counts_what_would_be_refused_and_leaves_out_what_a_controller_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = pod(container(securityContext={"privileged": True}))
    owner = {"apiVersion": "v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "team"}, "spec": {}}
    owned = pod(tolerations=[])
    owned["metadata"] |= {
        "name": "owned",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}
        ],
    }
    items = {"apiVersion": "v1", "kind": "List", "items": [bad, {**owner, "apiVersion": "apps/v1"}, owned]}
    file = tmp_path / "all.json"
    file.write_text(json.dumps(items), encoding="utf-8")
    found = json.loads(_printed(capsys, "preview", "-f", str(file), "-o", "json"))
    assert (found["objects"], found["refused"]) == (2, 1)
    (refused,) = [one for one in found["findings"] if one["mode"] == "enforce"]
    assert (refused["name"], refused["rule"]) == ("p", "PrivilegedContainer")
    text = _printed(capsys, "preview", "-f", str(file), "--mode", "warn")
    assert "0 of 2 objects would be refused, and 1 created with warnings." in text


def test_the_preview_of_a_window_reports_the_pods_of_a_history(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    history = open_history(tmp_path)
    moment = 1_800_000_000_000
    history.ledger.write(LedgerChanges(moment))
    history.created.add(
        [
            CreatedPods("red", "Job", "train", moment - 1000, moment, 8, ("SHL-352",)),
            CreatedPods("blue", "Pod", "p", moment - 1000, moment, 1, ("SHL-354",)),
            CreatedPods("red", "Job", "old", moment - 9 * DAY_MS, moment - 9 * DAY_MS + 1, 4, ("SHL-352",)),
        ]
    )
    history.close()
    window = ("preview", "--window", "7d", "--history", str(tmp_path))
    text = _printed(capsys, *window, "--rule", "PrivilegedContainer=warn")
    assert "8 of 9 pods would have been refused, and 1 created with warnings." in text
    found = json.loads(_printed(capsys, *window, "-n", "red", "-o", "json"))
    assert [(line["rule"], line["pods"]) for line in found["lines"]] == [("NoGpuToleration", 8)]
    assert (found["pods"], found["notes"]) == (8, [])
    assert main(["policy", *window, "--window", "30d"]) == 0
    assert "the first pod of the history was created at 2027-01-06T" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--window", "soon", "--history", "."), "has no history"),
        (("--window", "7d", "-f", "-"), "--window: is given with --filename"),
        (("--history", "."), "--history: is given without --window"),
    ],
)
def test_a_window_needs_a_history_and_no_files(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["policy", "preview", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_list_of_rules_says_who_checks_them(capsys: pytest.CaptureFixture[str]) -> None:
    rules = {each["rule"]: each for each in json.loads(_printed(capsys, "rules", "-o", "json"))}
    assert rules["UnequalGpus"]["place"] == "policy"
    assert rules["OverQuota"]["place"] == "webhook"
    assert rules["PrivilegedContainer"]["failurePolicy"] == "Fail"
    # It is for admission alone.
    assert rules["OverBudget"]["place"] == "webhook"

"""`kubectl apply` of the client's kind: three documents are merged, and what nobody wants any more goes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from build.kubectl_runs import Kubectl, manifest

Obj = dict[str, Any]


def settings(name: str = "settings", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment() -> Obj:
    containers = [
        {"name": "web", "image": "nginx:1.27", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "log", "image": "fluent:3"},
    ]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_apply_creates_then_says_unchanged_then_configured(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f-", given=settings(a="1")) == "configmap/settings created\n"
    version = kubectl.get("configmap", "settings")["metadata"]["resourceVersion"]
    assert kubectl("apply", "-f-", given=settings(a="1")) == "configmap/settings unchanged\n"
    assert kubectl.get("configmap", "settings")["metadata"]["resourceVersion"] == version
    assert kubectl("apply", "-f-", given=settings(a="2")) == "configmap/settings configured\n"
    assert kubectl.get("configmap", "settings")["data"] == {"a": "2"}


def test_a_field_that_is_no_longer_applied_is_removed_and_foreign_ones_stay(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", given=settings(a="1", b="2"))
    kubectl("patch", "configmap", "settings", "-p", '{"data": {"foreign": "3"}}')
    kubectl("apply", "-f-", given=settings(a="1"))
    assert kubectl.get("configmap", "settings")["data"] == {"a": "1", "foreign": "3"}


def test_containers_and_variables_are_merged_by_name(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", given=deployment())
    kubectl("set", "env", "deployment/web", "--containers=web", "FOREIGN=yes")
    kubectl("scale", "deployment/web", "--replicas=7")
    changed = deployment()
    del changed["spec"]["replicas"]
    changed["spec"]["template"]["spec"]["containers"] = [
        {"name": "web", "image": "nginx:1.28", "env": [{"name": "A", "value": "1"}]}
    ]
    kubectl("apply", "-f-", given=changed)
    spec = kubectl.get("deployment", "web")["spec"]
    (only,) = spec["template"]["spec"]["containers"]
    assert (only["name"], only["image"]) == ("web", "nginx:1.28")
    assert {one["name"] for one in only["env"]} == {"A", "FOREIGN"}
    # What was applied and is not any more goes back to its default, whoever changed it meanwhile.
    assert spec["replicas"] == 1


def test_an_unchangeable_field_is_refused_and_named(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", given=deployment())
    changed = deployment()
    changed["spec"]["selector"]["matchLabels"] = {"app": "other"}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    refusal = kubectl.refused("apply", "-f-", given=changed)
    assert 'The Deployment "web" is invalid: spec.selector: Invalid value:' in refusal
    assert "field is immutable" in refusal


def test_dry_runs_of_both_kinds_change_nothing(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f-", "--dry-run=client", given=settings()) == "configmap/settings created (dry run)\n"
    told = kubectl("apply", "-f-", "--dry-run=server", given=settings())
    assert told == "configmap/settings created (server dry run)\n"
    assert kubectl.refused("get", "configmap", "settings").startswith("Error from server (NotFound)")
    kubectl("apply", "-f-", given=deployment())
    before = kubectl.get("deployment", "web")
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"][1]["image"] = "fluent:4"
    shown = json.loads(kubectl("apply", "-f-", "--dry-run=server", "-o", "json", given=changed))
    assert shown["spec"]["template"]["spec"]["containers"][1]["image"] == "fluent:4"
    assert kubectl.get("deployment", "web") == before


def test_prune_deletes_what_the_files_no_longer_hold(kubectl: Kubectl) -> None:
    first, second, other = settings("first", a="1"), settings("second", a="1"), settings("other", a="1")
    for one in (first, second):
        one["metadata"]["labels"] = {"part": "of"}
    kubectl("apply", "-f-", given=[first, second, other])
    only = ("--prune", "--selector=part=of", "--prune-allowlist=core/v1/ConfigMap")
    told = kubectl("apply", "-f-", *only, given=first)
    assert told.splitlines() == ["configmap/first unchanged", "configmap/second pruned"]
    assert {"configmap/first", "configmap/other"} <= set(kubectl.names("configmaps"))
    assert "configmap/second" not in kubectl.names("configmaps")


def test_unknown_fields_are_refused_by_name_or_warned_of_or_ignored(kubectl: Kubectl) -> None:
    wrong = deployment()
    wrong["spec"]["replicaz"] = 3
    refusal = kubectl.refused("apply", "-f-", given=wrong)
    assert refusal.endswith('strict decoding error: unknown field "spec.replicaz"')
    assert "(BadRequest)" in refusal
    warned = kubectl.run("apply", "-f-", "--validate=warn", given=wrong)
    assert (warned.code, warned.err) == (0, 'Warning: unknown field "spec.replicaz"\n')
    ignored = kubectl.run("apply", "-f-", "--validate=ignore", given=wrong)
    assert (ignored.code, ignored.err) == (0, "")
    assert "replicaz" not in kubectl.get("deployment", "web")["spec"]


def test_a_file_that_is_half_wrong_is_half_applied_and_says_which_half(kubectl: Kubectl) -> None:
    wrong = settings("Not_A_Name")
    done = kubectl.run("apply", "-f-", given=[settings("good"), wrong])
    assert (done.code, done.out) == (1, "configmap/good created\n")
    assert 'The ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name"' in done.err


def test_what_was_last_applied_is_viewed_edited_and_set(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f-", given=settings(a="1"))
    path = tmp_path / "settings.yaml"
    path.write_text(manifest(settings(a="1")))
    kubectl("apply", "set-last-applied", "--create-annotation", "-f", str(path))
    assert 'a: "1"' in kubectl("apply", "view-last-applied", "configmap/settings")
    edit = ("apply", "edit-last-applied", "configmap/settings")
    kubectl(*edit, EDITOR="sed -i s/\\ a:/\\ z:/")
    assert 'z: "1"' in kubectl("apply", "view-last-applied", "configmap/settings")
    assert kubectl.get("configmap", "settings")["data"] == {"a": "1"}


def test_diff_shows_what_apply_would_change_and_exits_with_one(kubectl: Kubectl) -> None:
    before = deployment()
    kubectl("apply", "-f-", given=before)
    same = kubectl.run("diff", "-f-", given=before)
    assert (same.code, same.out) == (0, "")
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.99"
    changed = kubectl.run("diff", "-f-", given=after)
    assert changed.code == 1
    marked = [line for line in changed.out.splitlines() if line[:1] in "+-" and "image" in line]
    assert [line.replace(" ", "") for line in marked] == ["-image:nginx:1.27", "+image:nginx:1.99"]


def test_a_kustomization_is_applied_with_its_prefix_and_labels(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(manifest(settings(a="1")))
    wanted = {"resources": ["settings.yaml"], "namePrefix": "our-", "labels": [{"pairs": {"team": "ml"}}]}
    (tmp_path / "kustomization.yaml").write_text(manifest(wanted))
    assert kubectl("apply", "-k", str(tmp_path)) == "configmap/our-settings created\n"
    assert kubectl.get("configmap", "our-settings")["metadata"]["labels"] == {"team": "ml"}
    assert kubectl("delete", "-k", str(tmp_path)).startswith('configmap "our-settings" deleted')

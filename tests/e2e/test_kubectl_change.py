"""Commands that change what is there: replace, patch, edit, set, scale, autoscale, label, annotate."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.kubectl_runs import Kubectl, Obj, manifest


@pytest.fixture
def web(kubectl: Kubectl) -> str:
    kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=3")
    return "deployment/web"


@pytest.fixture
def settings(kubectl: Kubectl) -> str:
    kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2")
    return "configmap/settings"


def container(kubectl: Kubectl) -> Obj:
    found: Obj = kubectl.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]
    return found


def test_replace_takes_the_whole_object_and_refuses_an_old_one(kubectl: Kubectl, settings: str) -> None:
    present = kubectl.get(settings)
    present["data"] = {"z": "9"}
    assert kubectl("replace", "-f-", given=present) == "configmap/settings replaced\n"
    assert kubectl.get(settings)["data"] == {"z": "9"}
    refusal = kubectl.refused("replace", "-f-", given=present)
    assert refusal.startswith("Error from server (Conflict)")
    assert "the object has been modified; please apply your changes to the latest version and try again" in refusal
    gone = {**present, "metadata": {"name": "gone"}}
    assert kubectl.refused("replace", "-f-", given=gone).endswith('configmaps "gone" not found')


def test_forced_replace_makes_a_new_object(kubectl: Kubectl, settings: str, tmp_path: Path) -> None:
    before = kubectl.get(settings)["metadata"]["uid"]
    path = tmp_path / "settings.yaml"
    path.write_text(manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}))
    told = kubectl("replace", "--force", "-f", str(path)).splitlines()
    assert (told[0].split(" deleted")[0], told[1]) == ('configmap "settings"', "configmap/settings replaced")
    assert kubectl.get(settings)["metadata"]["uid"] != before


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"data": {"a": "9", "b": null}}'),
        ("merge", '{"data": {"a": "9", "b": null}}'),
        ("json", '[{"op": "replace", "path": "/data/a", "value": "9"}, {"op": "remove", "path": "/data/b"}]'),
    ],
)
def test_patches_of_the_three_types(kubectl: Kubectl, settings: str, kind: str, patch: str) -> None:
    assert kubectl("patch", settings, f"--type={kind}", "-p", patch) == "configmap/settings patched\n"
    assert kubectl.get(settings)["data"] == {"a": "9"}
    again = '{"data": {"a": "9"}}' if kind != "json" else '[{"op": "test", "path": "/data/a", "value": "9"}]'
    assert kubectl("patch", settings, f"--type={kind}", "-p", again) == "configmap/settings patched (no change)\n"


def test_a_strategic_patch_knows_containers_by_name_and_a_merge_patch_does_not(kubectl: Kubectl, web: str) -> None:
    added = '{"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "fluent"}]}}}}'
    kubectl("patch", web, "-p", added)
    spec = kubectl.get(web)["spec"]["template"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["log", "nginx"]
    kubectl("patch", web, "--type=merge", "-p", added)
    assert [one["name"] for one in kubectl.get(web)["spec"]["template"]["spec"]["containers"]] == ["log"]


def test_bad_patches_are_refused_and_change_nothing(kubectl: Kubectl, settings: str) -> None:
    before = kubectl.get(settings)
    missing = '[{"op": "remove", "path": "/data/zzz"}]'
    assert "request is invalid" in kubectl.refused("patch", settings, "--type=json", "-p", missing)
    assert "cannot unmarshal" in kubectl.refused("patch", settings, "--type=merge", "-p", '{"data": {"a": {}}}')
    wrong = '{"metadata": {"labels": {"a": "not a label!"}}}'
    assert "metadata.labels: Invalid value" in kubectl.refused("patch", settings, "-p", wrong)
    assert kubectl.get(settings) == before


def test_the_status_is_changed_only_through_its_own_door(kubectl: Kubectl, web: str) -> None:
    kubectl.set_status(web, {"replicas": 3, "readyReplicas": 2, "observedGeneration": 1})
    kubectl("patch", web, "--type=merge", "-p", '{"status": {"readyReplicas": 9}}')
    found = kubectl.get(web)
    assert (found["status"]["readyReplicas"], found["metadata"]["generation"]) == (2, 1)
    assert "2/3" in kubectl("get", web)
    shown = kubectl("get", web, "--subresource=status", "-o", "jsonpath={.status.readyReplicas}")
    assert shown == "2"


def test_edit_sends_what_the_editor_left(kubectl: Kubectl, settings: str) -> None:
    assert kubectl("edit", settings, EDITOR="sed -i s/a:.*1.*/a:\\ changed/") == "configmap/settings edited\n"
    assert kubectl.get(settings)["data"]["a"] == "changed"
    unchanged = kubectl.run("edit", settings, environment={"EDITOR": "true"})
    assert (unchanged.code, unchanged.err) == (0, "Edit cancelled, no changes made.\n")


def test_an_edit_that_is_refused_keeps_a_copy_and_changes_nothing(kubectl: Kubectl, web: str) -> None:
    done = kubectl.run("edit", web, environment={"EDITOR": "sed -i s/^\\ \\ replicas:.*/\\ \\ replicas:\\ -4/"})
    assert done.code == 1
    copy = Path(done.err.split('stored to "')[1].split('"')[0])
    assert "# * spec.replicas: Invalid value: -4: must be greater than or equal to 0" in copy.read_text()
    copy.unlink()
    assert kubectl.get(web)["spec"]["replicas"] == 3


def test_set_changes_image_environment_resources_and_account(kubectl: Kubectl, web: str) -> None:
    assert kubectl("set", "image", web, "nginx=nginx:1.28") == "deployment.apps/web image updated\n"
    assert kubectl("set", "env", web, "A=1", "B=2") == "deployment.apps/web env updated\n"
    kubectl("set", "env", web, "B-")
    limits = ("--limits=cpu=2,memory=1Gi,nvidia.com/gpu=1", "--requests=cpu=500m")
    assert kubectl("set", "resources", web, *limits) == "deployment.apps/web resource requirements updated\n"
    assert kubectl("set", "serviceaccount", web, "bot") == "deployment.apps/web serviceaccount updated\n"
    found = container(kubectl)
    assert (found["image"], found["env"]) == ("nginx:1.28", [{"name": "A", "value": "1"}])
    assert found["resources"]["limits"] == {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert found["resources"]["requests"] == {"cpu": "500m"}
    assert kubectl.get(web)["spec"]["template"]["spec"]["serviceAccountName"] == "bot"
    assert kubectl("set", "env", web, "--list") == "# Deployment web, container nginx\nA=1\n"


def test_set_changes_selectors_and_subjects(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "inner", "--tcp=80")
    kubectl("create", "rolebinding", "readers", "--clusterrole=view", "--user=ann")
    assert kubectl("set", "selector", "service/inner", "app=other") == "service/inner selector updated\n"
    kubectl("set", "subject", "rolebinding/readers", "--user=bob")
    assert kubectl.get("service", "inner")["spec"]["selector"] == {"app": "other"}
    subjects = kubectl.get("rolebinding", "readers")["subjects"]
    assert [one["name"] for one in subjects] == ["ann", "bob"]


def test_scale_sets_replicas_if_they_are_what_one_thought(kubectl: Kubectl, web: str) -> None:
    assert kubectl("scale", web, "--replicas=5") == "deployment.apps/web scaled\n"
    assert (
        kubectl.refused("scale", web, "--replicas=6", "--current-replicas=3")
        == "error: Expected replicas to be 3, was 5"
    )
    found = kubectl.get(web)
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (5, 2)
    shown = kubectl("get", web, "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.selector}")
    assert shown == "5 app=web"


def test_autoscale_makes_an_autoscaler_of_the_current_version(kubectl: Kubectl, web: str) -> None:
    told = kubectl("autoscale", web, "--min=2", "--max=9", "--cpu=80%")
    assert told == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    spec = kubectl.get("hpa", "web")["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 9)
    assert spec["metrics"][0]["resource"] == {
        "name": "cpu",
        "target": {"averageUtilization": 80, "type": "Utilization"},
    }
    old = kubectl.get("horizontalpodautoscalers.v1.autoscaling", "web")
    assert (old["apiVersion"], old["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 80)
    assert "cpu: <unknown>/80%" in kubectl("get", "hpa")


def test_labels_are_set_kept_overwritten_removed_and_listed(kubectl: Kubectl, settings: str) -> None:
    assert kubectl("label", settings, "team=ml") == "configmap/settings labeled\n"
    assert kubectl.refused("label", settings, "team=web").startswith("error: 'team' already has a value (ml)")
    assert kubectl("label", settings, "team=web", "--overwrite") == "configmap/settings labeled\n"
    assert kubectl("label", settings, "--list") == "team=web\n"
    assert kubectl("label", settings, "team-") == "configmap/settings unlabeled\n"
    assert "labels" not in kubectl.get(settings)["metadata"]
    assert "must be no more than 63" in kubectl.refused("label", settings, f"team={'x' * 64}")


def test_annotations_are_set_and_removed(kubectl: Kubectl, settings: str) -> None:
    assert kubectl("annotate", settings, "note=any words at all") == "configmap/settings annotated\n"
    assert kubectl.get(settings)["metadata"]["annotations"] == {"note": "any words at all"}
    kubectl("annotate", settings, "note-")
    assert "annotations" not in kubectl.get(settings)["metadata"]


def test_a_change_that_expects_another_version_is_refused(kubectl: Kubectl, settings: str) -> None:
    refusal = kubectl.refused("label", settings, "a=b", "--resource-version=1")
    assert "the object has been modified" in refusal

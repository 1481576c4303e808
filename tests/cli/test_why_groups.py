"""`shoal why` of pods whose PodGroup does not exist or needs more pods than there are: the change that helps, and no
command where it does not help.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from build.followed_commands import followed
from build.manifests import Object, as_file, job, node, pod, thing, volcano_group
from build.why_answers import WhyAnswers
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"
PLUGINS = "scheduling.x-k8s.io/pod-group"


@pytest.fixture
def why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def living(name: str = "n", gpus_of_it: int = 8) -> Object:
    """A node of a cluster, on which commands can act."""
    made = node(name, gpus_of_it)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


@pytest.mark.parametrize("name", ["vg-typo", "vgroup"])
def test_a_misspelled_group_is_corrected(name: str, why: WhyAnswers) -> None:
    objects = [
        living(),
        volcano_group("t/vg", 1),
        volcano_group("t/group", 1),
        pod("t/p", 1, annotations={GROUP: name}),
    ]
    near = {"vg-typo": "vg", "vgroup": "group"}[name]
    assert f'names PodGroup "{name}", which does not exist; did you mean "{near}"?' in why.help("pod/p", *objects)
    (command,) = why.commands("pod/p", *objects)
    assert f'"path":"/metadata/annotations/scheduling.k8s.io~1group-name","value":"{near}"' in command


def test_a_group_of_another_project_or_namespace_is_not_meant(why: WhyAnswers) -> None:
    labelled = pod("t/p", 1, labels={PLUGINS: "grop"})
    assert "did you mean" not in why.help("pod/p", living(), volcano_group("t/group", 1), labelled)
    of_plugins = thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "u/group", spec={"minMember": 1})
    assert "did you mean" not in why.help("pod/p", living(), of_plugins, labelled)


def test_a_group_in_which_the_pod_would_wait_as_well_is_named_without_a_command(why: WhyAnswers) -> None:
    objects = [living(), volcano_group("t/group", 3), pod("t/p", 1, annotations={GROUP: "grop"})]
    assert 'did you mean "group"?' in why.help("pod/p", *objects)
    assert why.commands("pod/p", *objects) == []


def test_a_minimum_above_the_number_of_pods_is_lowered(why: WhyAnswers) -> None:
    objects = [living(), volcano_group("t/g", 3), pod("t/p", 1, annotations={GROUP: "g"})]
    (command,) = why.commands("gang/g", *objects)
    assert command.startswith("kubectl patch podgroups.scheduling.volcano.sh g -n t --type=json ")
    assert '[{"op":"replace","path":"/spec/minMember","value":1}]' in command
    assert "Lower spec.minMember of PodGroup t/g from 3 to 1" in why.help("gang/g", *objects)


def test_a_lower_minimum_that_does_not_help_has_no_command(why: WhyAnswers) -> None:
    objects = [living(), volcano_group("t/g", 3), pod("t/p", 16, annotations={GROUP: "g"})]
    assert why.commands("gang/g", *objects) == []
    assert why.help("gang/g", *objects) == "Create 2 pods more, or lower the minimum to 1."


def kubernetes_group(least: int) -> Object:
    policy = {"gang": {"minCount": least}}
    return thing("scheduling.k8s.io/v1alpha2", "PodGroup", "t/g", spec={"schedulingPolicy": policy})


def test_the_pods_of_kubernetes_own_group_get_one_with_a_lower_minimum(why: WhyAnswers) -> None:
    """The API server lets no one change the scheduling policy of a PodGroup."""
    member = pod("t/p", 1, schedulingGroup={"podGroupName": "g"})
    objects = [living(), kubernetes_group(3), member]
    said = why.help("gang/g", *objects)
    assert "spec.schedulingPolicy of PodGroup t/g cannot be changed: create PodGroup g-1 like g with minCount 1" in said
    assert "or lower the minimum" not in said
    commands = why.commands("gang/g", *objects)
    assert [command.partition(" -n ")[0] for command in commands] == [
        "kubectl get podgroups.scheduling.k8s.io g",
        "kubectl get pod p",
    ]
    for command in commands:
        objects = followed(objects, command)
    groups = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "PodGroup"}
    assert groups["g-1"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    assert why.document("pod/p", *objects)["outcome"] == "runs on n, GPU 0"


def test_a_kubernetes_group_whose_lower_minimum_does_not_help_has_no_command(why: WhyAnswers) -> None:
    member = pod("t/p", 16, schedulingGroup={"podGroupName": "g"})
    objects = [living(), kubernetes_group(3), member]
    assert why.commands("gang/g", *objects) == []
    assert why.help("gang/g", *objects) == "Create 2 pods more."


def test_pods_of_a_controller_keep_their_kubernetes_group(why: WhyAnswers) -> None:
    """Its template names the group of all its pods."""
    member = pod("t/p", 1, schedulingGroup={"podGroupName": "g"})
    member["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]
    objects = [living(), kubernetes_group(3), job("t/j", 1, 1), member]
    assert why.commands("gang/g", *objects) == []
    assert why.help("gang/g", *objects) == "Create 2 pods more."


def test_decide_does_not_propose_a_lower_minimum_where_it_cannot_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [kubernetes_group(3), pod("t/p", 1, schedulingGroup={"podGroupName": "g"})]
    early = thing("scheduling.k8s.io/v1alpha1", "Workload", "t/w")
    early["spec"] = {"podGroups": [{"name": "main", "policy": {"gang": {"minCount": 3}}}]}
    inside = pod("t/p", 1, workloadRef={"name": "w", "podGroup": "main"})
    for objects in (own, [early, inside]):
        assert main(["decide", "-f", as_file(tmp_path, node("n", 8), *objects)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "Create 2 pods more." in said
        assert "lower the minimum" not in said


def test_the_cause_of_a_refused_volcano_job_is_in_the_headline(why: WhyAnswers) -> None:
    cause = "job 'minAvailable' should not be greater than total replicas in tasks"
    state = {"phase": "Pending", "reason": "InvalidJob", "message": cause}
    refused = thing("batch.volcano.sh/v1alpha1", "Job", "t/j", spec={"minAvailable": 3}, status={"state": state})
    assert why("job/j", living(), refused).startswith(f"job t/j: has no pods: {cause}")
    ended = thing(
        "batch.volcano.sh/v1alpha1", "Job", "t/j", spec={"minAvailable": 1}, status={"state": {"phase": "Completed"}}
    )
    assert why("job/j", living(), ended).strip() == "job t/j: has no pods"

"""Collected workflows, pipelines and inference services: kept, warned of, and their pods placed.

No operator of theirs runs here; the test plays it.
"""

from __future__ import annotations

import pytest
import yaml

from build.collected_manifests import COLLECTED, applied, phases
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import events, nodes_of, pod, pods, until

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

GPU_NODES = ("dgx-a100-80-0", "dgx-a100-80-1", "p5-48xlarge-0", "p5-48xlarge-1", "v100-box-8-0")


def test_a_sweep_is_kept_with_its_loop_and_its_twelve_tasks_find_gpus(kubectl: Kubectl) -> None:
    assert applied(kubectl, "mlops/argo-workflow-hyperparameter-sweep.yaml").code == 0
    kept = kubectl.get("workflow", "hyperparameter-sweep")["spec"]
    assert "{% for lr in" in kept["templates"][0]["steps"][0][0]["withParam"]
    told = until(lambda: events(kubectl, "hyperparameter-sweep").get("ForeignTemplateLanguage", ""))
    assert "is Jinja, which Argo does not support" in told
    kubectl("create", "-f-", given=[_task(at, kept["templates"][1]) for at in range(12)])
    until(lambda: phases(kubectl) == ["Running"] * 12)


def _task(at: int, template: Obj) -> Obj:
    """As Argo makes it."""
    made = pod(f"hyperparameter-sweep-{at}")
    made["metadata"]["labels"] = {"workflows.argoproj.io/workflow": "hyperparameter-sweep"}
    made["spec"] = {"containers": [{"name": "main", **template["container"]}], "tolerations": template["tolerations"]}
    made["spec"]["containers"][0]["args"] = ["--learning-rate=1e-5", "--batch-size=16"]
    return made


def test_an_inference_service_is_kept_and_warned_of_tainted_nodes(kubectl: Kubectl) -> None:
    assert applied(kubectl, "mlops/kserve-inferenceservice-llama2.yaml").code == 0
    model = kubectl.get("inferenceservice", "llama2-inference")["spec"]["predictor"]["model"]
    made = pod("llama2-inference-predictor-0")
    made["spec"]["containers"][0]["resources"] = model["resources"]
    kubectl("create", "-f-", given=made)
    until(lambda: phases(kubectl) == ["Running"])
    kubectl("taint", "node", *GPU_NODES, "nvidia.com/gpu=present:NoSchedule")
    try:
        (again,) = yaml.safe_load_all((COLLECTED / "mlops/kserve-inferenceservice-llama2.yaml").read_text())
        again["metadata"] = {"name": "tainted"}
        kubectl("create", "-f-", given=again)
        told = until(lambda: events(kubectl, "tainted").get("UntoleratedTaint", ""))
    finally:
        kubectl("taint", "node", *GPU_NODES, "nvidia.com/gpu-")
    assert told.startswith("spec.predictor.tolerations: all nodes with GPUs have the taint nvidia.com/gpu=present")


def test_a_pipeline_is_kept_in_its_order_and_its_training_step_takes_a_whole_node(kubectl: Kubectl) -> None:
    assert applied(kubectl, "mlops/tekton-pipeline-model-cicd.yaml").code == 0
    tasks = kubectl.get("pipelines.v1beta1.tekton.dev", "model-cicd")["spec"]["tasks"]
    order = ["fetch-repo", "train-model", "evaluate-model", "deploy-model"]
    assert [task["name"] for task in tasks] == order
    assert [task.get("runAfter", []) for task in tasks] == [[], *([name] for name in order[:3])]
    until(lambda: {"MissingTask", "NotShared", "OldFieldName"} <= events(kubectl, "model-cicd").keys())
    (step,) = tasks[1]["taskSpec"]["steps"]
    made = pod("model-cicd-train-model-pod")
    made["spec"]["containers"][0]["resources"] = step["resources"]
    made["metadata"]["labels"] = {"tekton.dev/taskRun": "model-cicd-train-model"}
    kubectl("create", "-f-", given=made)
    until(lambda: phases(kubectl) == ["Running"])
    (node,) = nodes_of(pods(kubectl))
    assert node in GPU_NODES

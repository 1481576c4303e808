"""Checks workflows and pipelines, which the operators of Argo and Tekton run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import PIPELINE, TASK, WORKFLOW


@check(
    Rule(
        "SHL-901",
        "ForeignTemplateLanguage",
        "error",
        fault="withParam contains Jinja, which Argo does not run",
        effect="the workflow is invalid",
        fix="list the combinations under withItems, or have an earlier step print them",
        links=("https://argo-workflows.readthedocs.io/en/latest/walk-through/loops/",),
        bad="""\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: sweep}
spec:
  templates:
  - name: sweep
    steps: [[{name: train, template: train, withParam: "[{% for x in rates %}]"}]]
""",
        changes=(Change('withParam: "[{% for x in rates %}]"', "withItems: [0.1, 0.01]"),),
    ),
    Rule(
        "SHL-902",
        "UnusedParameters",
        "warning",
        fault="nothing reads a parameter of the workflow",
        effect="changing the parameter changes nothing",
        fix="read the parameter where it is meant, or leave it out",
        bad="""\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: train}
spec:
  arguments: {parameters: [{name: rate, value: "0.1"}]}
  templates:
  - {name: train, container: {image: "registry.example/train:1.4", args: [--rate=0.1]}}
""",
        changes=(Change("args: [--rate=0.1]", 'args: ["--rate={{workflow.parameters.rate}}"]'),),
    ),
    kinds=(WORKFLOW,),
)
def workflows(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for at, template in enumerate(maps(dig(obj, "spec", "templates"))):
        groups = template.get("steps")
        for row, group in enumerate(groups if isinstance(groups, list) else ()):
            for column, step in enumerate(maps(group)):
                given = step.get("withParam")
                if isinstance(given, str) and "{%" in given:
                    yield Advice(
                        "ForeignTemplateLanguage",
                        f"spec.templates[{at}].steps[{row}][{column}].withParam",
                        "{% for %} is Jinja, which Argo does not support: it expects a list in JSON and fails here",
                        "list the combinations under withItems, or have an earlier step print them",
                    )
    text = msgspec.json.encode(obj.get("spec")).decode()
    unused = [
        str(one.get("name"))
        for one in maps(dig(obj, "spec", "arguments", "parameters"))
        if f"workflow.parameters.{one.get('name')}" not in text
    ]
    if unused:
        what = f"nothing reads {' and '.join(unused)}"
        fix = "use {{workflow.parameters." + unused[0] + "}} where it is meant, or leave them out"
        yield Advice("UnusedParameters", "spec.arguments.parameters", what, fix)


@check(
    Rule(
        "SHL-903",
        "MissingTask",
        "error",
        fault="a task of the pipeline does not exist",
        effect="the pipeline cannot start",
        fix="install the Task, or describe it under taskSpec",
        evidence="cluster",
        bad="""\
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: train}
spec: {tasks: [{name: fetch, taskRef: {name: fetch-data}}]}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: fetch-dataset}
spec: {steps: [{name: fetch, image: "registry.example/fetch:1.4"}]}
""",
        changes=(Change("name: fetch-data}", "name: fetch-dataset}"),),
    ),
    Rule(
        "SHL-904",
        "MisplacedTolerations",
        "error",
        fault="tolerations are in a taskSpec, which has none",
        effect="the API server refuses the field or drops it",
        fix="write them under taskRunTemplate.podTemplate of the PipelineRun",
        bad="""\
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: train}
spec:
  tasks:
  - name: train
    taskSpec:
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      steps: [{name: train, image: "registry.example/train:1.4"}]
""",
        changes=(
            Change(
                """\
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
""",
                "",
            ),
        ),
    ),
    Rule(
        "SHL-905",
        "NotShared",
        "error",
        fault="an emptyDir is expected to be shared between tasks",
        effect="the next task does not find the files",
        fix="declare a workspace, and give it to both tasks",
        bad="""\
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: train}
spec:
  tasks:
  - name: train
    taskSpec:
      steps: [{name: train, image: "registry.example/train:1.4"}]
      volumes: [{name: data, emptyDir: {}}]
""",
        changes=(Change("emptyDir: {}", "persistentVolumeClaim: {claimName: data}"),),
    ),
    also={"OldFieldName": "a field has the name of an older version"},
    kinds=(PIPELINE,),
)
def pipelines(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    namespace = str(dig(obj, "metadata", "namespace") or "")
    has_workspace = bool(maps(dig(obj, "spec", "workspaces")))
    for at, task in enumerate(maps(dig(obj, "spec", "tasks"))):
        here, spec = f"spec.tasks[{at}]", string_keys(task.get("taskSpec"))
        reference = string_keys(task.get("taskRef"))
        name = reference.get("name")
        is_plain = reference.get("kind", "Task") == "Task" and not reference.get("resolver")
        if name and is_plain and context.lacks(TASK, namespace, str(name)):
            what = f'Task "{name}" not found in namespace {namespace}: runs of this pipeline fail there'
            yield Advice("MissingTask", f"{here}.taskRef.name", what, "install it, or describe it under taskSpec")
        yield from _task_spec(here, spec, has_workspace=has_workspace)


def _task_spec(here: str, spec: Obj, *, has_workspace: bool) -> Iterator[Advice]:
    for at, step in enumerate(maps(spec.get("steps"))):
        if "resources" in step:
            yield Advice(
                "OldFieldName",
                f"{here}.taskSpec.steps[{at}].resources",
                "is called computeResources in v1, where a step without it asks for no GPU",
                "write computeResources",
            )
    if "tolerations" in spec:
        yield Advice(
            "MisplacedTolerations",
            f"{here}.taskSpec.tolerations",
            "a task has no tolerations: its pod would not tolerate anything",
            "write them under taskRunTemplate.podTemplate of the PipelineRun",
        )
    for at, volume in enumerate(maps(spec.get("volumes"))):
        if "emptyDir" in volume and not has_workspace:
            yield Advice(
                "NotShared",
                f"{here}.taskSpec.volumes[{at}]",
                "each task is a pod of its own, so an emptyDir does not hold what an earlier task left",
                "declare a workspace, and give it to both tasks",
            )

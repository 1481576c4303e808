"""Checks workflows and pipelines, which the operators of Argo and Tekton run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import TASK


@rule(
    ForeignTemplateLanguage="withParam contains Jinja, which Argo does not run",
    UnusedParameters="nothing reads a parameter of the workflow",
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


@rule(
    MissingTask="a task of the pipeline does not exist",
    OldFieldName="a field has the name of an older version",
    MisplacedTolerations="tolerations are in a taskSpec, which has none",
    NotShared="an emptyDir is expected to be shared between tasks",
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

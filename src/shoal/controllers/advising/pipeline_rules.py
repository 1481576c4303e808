"""Workflows and pipelines, which are kept here and run by the operators of their projects."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named
from shoal.store.live.item import Obj
from shoal.store.live.kind import Kind

TASKS = Kind("tekton.dev", "v1", "tasks", "Task")


def workflows(obj: Obj, _: Around) -> Iterator[Advice]:
    for at, template in enumerate(maps(dig(obj, "spec", "templates"))):
        groups = template.get("steps")
        for row, group in enumerate(groups if isinstance(groups, list) else ()):
            for column, step in enumerate(maps(group)):
                given = step.get("withParam")
                if isinstance(given, str) and "{%" in given:
                    yield Advice(
                        "ForeignTemplateLanguage",
                        f"spec.templates[{at}].steps[{row}][{column}].withParam",
                        "{% for %} is Jinja, which Argo does not run: it wants a list in JSON and stops at this one",
                        "write the combinations out under withItems, or have an earlier step print them",
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


def pipelines(obj: Obj, around: Around) -> Iterator[Advice]:
    namespace = str(dig(obj, "metadata", "namespace") or "")
    has_workspace = bool(maps(dig(obj, "spec", "workspaces")))
    for at, task in enumerate(maps(dig(obj, "spec", "tasks"))):
        here, spec = f"spec.tasks[{at}]", named(task.get("taskSpec"))
        reference = named(task.get("taskRef"))
        name = reference.get("name")
        is_plain = reference.get("kind", "Task") == "Task" and not reference.get("resolver")
        if name and is_plain and around.lacks(TASKS, namespace, str(name)):
            what = f"there is no Task {name} in {namespace}: a run of this pipeline stops there"
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

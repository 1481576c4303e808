"""Commands of a diagnosis are copied into a shell, and names in files of others may be no valid names."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest

import shoal.policy.diagnosis
from build.diagnosed_clusters import diagnosed, gpu_node
from build.manifests import thing
from shoal.policy.diagnosis.verdicts import shell_command

HOSTILE = "n; touch x #"


def test_a_name_is_one_word_of_the_command_whatever_it_contains() -> None:
    lost = thing("v1", "Node", HOSTILE, status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
    found = diagnosed("node", HOSTILE, lost)
    commands = [one for cause in found.causes for one in cause.commands]
    assert shlex.split("kubectl delete node 'n; touch x #'") in [shlex.split(one) for one in commands]
    assert all(HOSTILE in shlex.split(one) for one in commands)


def test_the_value_of_a_label_is_a_part_of_one_word() -> None:
    model = {"nvidia.com/gpu.product": "unknown"}
    labels = {"nvidia.com/mig.config": "all-$(id)", "nvidia.com/mig.config.state": "failed", **model}
    holder = thing("v1", "Pod", "a/p", spec={"nodeName": "gpu-1"}, status={"phase": "Running"})
    holder["spec"]["containers"] = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    found = diagnosed("node", "gpu-1", gpu_node(labels=labels), holder)
    commands = [shlex.split(one) for cause in found.causes for one in cause.commands]
    assert ["kubectl", "label", "node", "gpu-1", "nvidia.com/mig.config=all-$(id)", "--overwrite"] in commands
    written = [one for cause in found.causes for one in cause.commands if "$(id)" in one]
    assert all("'nvidia.com/mig.config=all-$(id)'" in one for one in written)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("gpu-1", "gpu-1"), ("a b", "'a b'"), ("`id`", "'`id`'"), ("$HOME", "'$HOME'"), ("", "''"), ("--all", "NAME")],
)
def test_names_are_quoted_only_where_a_shell_would_read_them_otherwise(name: str, shown: str) -> None:
    assert shell_command("kubectl delete node {}", name) == f"kubectl delete node {shown}"


def test_each_command_with_names_is_written_by_the_one_function_that_quotes_them() -> None:
    """A command is no formatted text, and no text that is put together."""
    wrong = []
    for file in sorted(Path(shoal.policy.diagnosis.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.JoinedStr):
                continue
            parts = node.values
            first = parts[0].value if isinstance(parts[0], ast.Constant) else ""
            fixed = all(isinstance(part, ast.Constant) or _is_fixed(part) for part in parts)
            if str(first).startswith(("kubectl ", "shoal ")) and not fixed:
                wrong.append(f"{file.name}:{node.lineno}")
    assert wrong == []


def _is_fixed(part: ast.expr) -> bool:
    """A constant of the module, or the number of an Xid error."""
    value = part.value if isinstance(part, ast.FormattedValue) else None
    return isinstance(value, ast.Name) and (value.id.isupper() or value.id == "number")

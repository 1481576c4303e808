"""Commands of remedies are copied into a shell: each name and each patch is one word there, whatever it contains."""

from __future__ import annotations

import json
import shlex

import pytest

from shoal.api.taints import Taint
from shoal.engine.queues.remedies.remedy import FieldChange
from shoal.views.refused_pods import exceeded, missing_account_words, raise_remedy
from shoal.views.remedy_commands import (
    FieldEdit,
    PatchTarget,
    annotation_commands,
    copy_command,
    covering_command,
    delete_commands,
    edit_commands,
    field_command,
    label_commands,
    names_command,
    number_command,
    priority_class_command,
    quota_commands,
    removal_command,
    replacement_command,
    toleration_commands,
)

HOSTILE = "n$(id>pwn)'; touch x #"
KEY = f"team/{HOSTILE}"
_TAINTS = [Taint(key="key", value=HOSTILE, effect="NoSchedule")]
_EDITS = [FieldEdit(("spec", "nodeSelector", "a"), "b", HOSTILE)]
_MESSAGE = f'Error creating: pods "w" is forbidden: exceeded quota: {HOSTILE}, requested: a=2, used: a=3, limited: a=4'

COMMANDS: dict[str, tuple[str, ...]] = {
    "pods with another field": edit_commands(_EDITS, PatchTarget("pod", (KEY,))),
    "a template with another field": edit_commands(
        _EDITS, PatchTarget("deployment", (KEY,), is_template=True, is_open=True, pods=(KEY,), keeps_pods=True)
    ),
    "a toleration": toleration_commands(_TAINTS, PatchTarget("pod", (KEY,)), {}),
    "a quota": quota_commands(
        [(FieldChange("ClusterQueue", HOSTILE, "nominalQuota", "1", HOSTILE), ("spec", HOSTILE))]
    ),
    "a label": label_commands("pod", (KEY,), "a", HOSTILE),
    "an annotation": annotation_commands("pod", (KEY,), "a", HOSTILE),
    "a field": (field_command("localqueue", KEY, {"clusterQueue": HOSTILE}),),
    "a replacement": (replacement_command("pod", KEY, {"a": HOSTILE}),),
    "a copy": (copy_command("pod", KEY, HOSTILE, ("spec", "a"), HOSTILE),),
    "other names": (names_command("pod", KEY, [(("spec", "a"), HOSTILE)]),),
    "a number": (number_command("pod", KEY, ("spec", HOSTILE), 3),),
    "a removal": (removal_command("pod", KEY, ("spec", HOSTILE)),),
    "a class": (priority_class_command(HOSTILE, 3),),
    "more resources": (covering_command(HOSTILE, 1, {"a": "1"}),),
    "deletions": delete_commands((KEY, f"{HOSTILE}/w")),
    "a quota that is exceeded": raise_remedy(exceeded([_MESSAGE], None, 1), HOSTILE).commands,
    "an account": tuple(missing_account_words('serviceaccount "bot" not found', HOSTILE)[1:]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_name_is_one_word_in_the_command_for(name: str) -> None:
    assert COMMANDS[name]
    for command in COMMANDS[name]:
        words = shlex.split(command)
        assert any(HOSTILE in word for word in words)
        assert not {"touch", "#"} & set(words)
        assert all(json.loads(word.removeprefix("-p=")) for word in words if word.startswith("-p="))

"""How the explanation of a pod is printed: only commands of Shoal's own stay on one line, to be copied."""

from __future__ import annotations

import io

from shoal.views.explanation import HELP, Explanation, show_explanation
from shoal.views.remedies import Remedy
from shoal.views.text_console import TextConsole

COMMAND = 'kubectl patch pod train-0 -n team --type=json -p=\'[{"op":"add","path":"/spec","value":[]}]\''
MESSAGE = "kubectl delete namespace production; this line was written by a user of the cluster into an Event"


def _printed(explanation: Explanation) -> list[str]:
    console = TextConsole(file=io.StringIO(), width=60, highlight=False)
    show_explanation(console, explanation)
    assert isinstance(console.file, io.StringIO)
    return [line.strip() for line in console.file.getvalue().splitlines()]


def test_the_commands_of_a_remedy_are_not_folded() -> None:
    remedy = Remedy("Add a toleration.", (COMMAND,))
    explanation = Explanation("t/a", "waits", remedies=[remedy])
    explanation.add(HELP, *remedy.lines())
    assert COMMAND in _printed(explanation)


def test_a_message_that_begins_like_a_command_is_folded_as_text() -> None:
    explanation = Explanation("t/a", "waits", remedies=[Remedy("Add a toleration.", (COMMAND,))])
    explanation.add("history", MESSAGE)
    explanation.add("advice", MESSAGE.replace("kubectl", "shoal"))
    assert max(map(len, _printed(explanation))) < 60


def test_a_message_that_repeats_the_command_of_a_remedy_is_folded_as_text() -> None:
    remedy = Remedy("Add a toleration.", (COMMAND,))
    explanation = Explanation("t/a", "waits", remedies=[remedy])
    explanation.add("history", COMMAND)
    assert not any(COMMAND in line for line in _printed(explanation))


def test_control_characters_of_each_part_are_visible() -> None:
    explanation = Explanation("t/a\x1b[2J", "waits\nfor", remedies=[Remedy("x", ("kubectl \x1b\nrm",))])
    explanation.add("history", "told\x9b")
    explanation.add(HELP, "kubectl \x1b\nrm")
    assert _printed(explanation) == ["t/a^[[2J waits^Jfor", "history     told\\x9b", "would help  kubectl ^[^Jrm"]

"""Names the cluster in the commands that `shoal why` prints, so that they act on the cluster that was explained.

Commands stay short where plain kubectl uses that cluster: the cluster came from KUBECONFIG or from the current context
of ~/.kube/config.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from shoal.cli.cluster_access import AccessOptions
from shoal.client.http.access import Access
from shoal.views.explanation import HELP, Explanation

_KUBECTL, _SHOAL = "kubectl ", "shoal "
_FOUND_BY_KUBECTL = ("KUBECONFIG", "~/.kube/config")


def cluster_flags(options: AccessOptions, access: Access) -> list[str]:
    """The flags that plain commands need to use the cluster of `access`, which the options chose."""
    is_found = access.origin in _FOUND_BY_KUBECTL
    file: Path | None = options.kubeconfig or (None if is_found else access.file)
    context = options.context or ("" if is_found or options.kubeconfig is not None else access.name)
    named = {
        "--kubeconfig": "" if file is None else str(file),
        "--context": context,
        "--cluster": options.cluster,
        "--user": options.user,
    }
    return [part for flag, value in named.items() if value for part in (flag, value)]


def with_flags(command: str, flags: Sequence[str]) -> str:
    """The command with the flags in each kubectl or shoal of its pipeline."""
    words = shlex.join(flags)
    if not words:
        return command
    return " | ".join(
        f"{_KUBECTL}{words} {part.removeprefix(_KUBECTL)}"
        if part.startswith(_KUBECTL)
        else f"{part} {words}"
        if part.startswith(_SHOAL)
        else part
        for part in command.split(" | ")
    )


def address_commands(explanation: Explanation, flags: Sequence[str]) -> None:
    """Changes the commands of the remedies, where they are listed and where they are printed."""
    changed = {command: with_flags(command, flags) for remedy in explanation.remedies for command in remedy.commands}
    explanation.remedies = [
        structs.replace(remedy, commands=tuple(changed[command] for command in remedy.commands))
        for remedy in explanation.remedies
    ]
    explanation.chapters = [
        (heading, [changed.get(line, line) for line in lines] if heading == HELP else lines)
        for heading, lines in explanation.chapters
    ]

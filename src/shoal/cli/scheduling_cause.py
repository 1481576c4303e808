"""Adds the explanation of `shoal why` to a diagnosis of a pod that waits, where no known mistake is the cause.

The scheduler's own decision is explained in one place only: the decision trees leave it to this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.cli.cluster_access import AccessOptions
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
    from shoal.policy.diagnosis.verdicts import DiagnosisResult, FoundCause, Patient
    from shoal.views.explanation import Explanation

_MOST_S = 2.0
_SEED = 42
_TELLING = ("short", "nodes", "nearest", "quota", "preemption", "queue")
"""Headings whose lines are evidence."""


def with_scheduling(
    result: DiagnosisResult,
    facts: DiagnosedCluster,
    patient: Patient,
    files: Sequence[str] | None,
    access: AccessOptions,
) -> DiagnosisResult:
    """The same if it has a cause, or is about another subject."""
    import msgspec

    from shoal.policy.diagnosis.cluster_facts import is_waiting
    from shoal.policy.diagnosis.verdicts import NotRun
    from shoal.policy.kinds import POD

    pod = facts.find(POD, patient.namespace, patient.name) if patient.kind == "pod" else None
    if result.causes or pod is None or not is_waiting(pod):
        return result
    found = _explained(patient, files, access)
    if isinstance(found, str):
        missing = NotRun(str(patient), "the decision of the scheduler", found)
        return msgspec.structs.replace(result, not_run=(*result.not_run, missing))
    return result if found is None else msgspec.structs.replace(result, causes=(found,))


def _explained(patient: Patient, files: Sequence[str] | None, access: AccessOptions) -> FoundCause | str | None:
    """None if the pod would run at once; a text says why there is no explanation."""
    from shoal.cli.addressed_commands import address_commands, cluster_flags
    from shoal.cli.explainer import Explainer
    from shoal.cli.object_source import source_from
    from shoal.cli.search_deadline import SearchDeadline
    from shoal.store.support_bundle.diagnosed_file import ENDINGS
    from shoal.units.errors import UserError

    if any(path.endswith(ENDINGS) for path in files or ()):
        return "unpack the bundle, and give its snapshot.json to shoal why"
    try:
        source = source_from(files, access, patient.namespace, complains=False)
        explainer = Explainer(source.documents, source.taken(), _SEED, SearchDeadline(_MOST_S))
        explanation = explainer.about(f"pod/{patient.name}", patient.namespace, is_only=True)
    except UserError as error:
        return str(error)
    if not files:
        address_commands(explanation, cluster_flags(access, access.access()))
    return _cause(explanation, patient) if explanation.code else None


def _cause(explanation: Explanation, patient: Patient) -> FoundCause:
    from shoal.policy.diagnosis.verdicts import FoundCause, shell_command

    evidence = tuple(
        f"{heading}: {line}" for heading, lines in explanation.chapters if heading in _TELLING for line in lines
    )
    fixes = [each.words for each in explanation.remedies]
    commands = tuple(command for each in explanation.remedies for command in each.commands)
    why = shell_command("shoal why pod/{} -n {}", patient.name, patient.namespace)
    what = "the scheduler finds no place for the pod"
    fix = " or ".join(fixes[:2]) or "change what the evidence names"
    return FoundCause(str(explanation.code), str(patient), what, fix, evidence, (*commands[:3], why))

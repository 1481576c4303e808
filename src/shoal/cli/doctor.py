"""Implements `shoal doctor`: finds the cause of a problem in a live cluster, in files, in logs or in metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.exit_codes import DONE, FAILED
from shoal.cli.formats import FOR_PROGRAMS, TEXTS, TextOutput, checked
from shoal.cli.object_source import Files, Namespace
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.client.http.access import Access
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
    from shoal.policy.diagnosis.verdicts import DiagnosisResult, Patient, SubjectKind
    from shoal.store.diagnosed_objects import DiagnosedObjects

_NAMESPACED = ("pod", "job", "queue")
_MOST_BYTES = 256 << 20
_DEFAULT = "default"
_PATIENCE_S = 20.0


def _kinds(incomplete: str) -> list[str]:
    from shoal.policy.diagnosis.verdicts import SUBJECT_KINDS

    return [kind for kind in SUBJECT_KINDS if kind.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUBJECT]",
            help="cluster, node NAME, pod NAME, job NAME, queue NAME or gpu UUID; by default the cluster.",
            autocompletion=_kinds,
            show_default=False,
        ),
    ] = None
    filename: Files = None
    namespace: Namespace = ""
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="A log of the pod, or without a subject a log alone; - for stdin; may be given several times.",
        ),
    ] = None
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="FILE", help="Metrics of the GPUs, as their exporter writes them; - for stdin."
        ),
    ] = ""
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="The history of the cluster, for what its jobs would need."),
    ] = None
    output: TextOutput = TEXTS[0]


@with_options
def doctor(options: DoctorOptions, access: AccessOptions) -> None:
    """Find the cause of a problem: of a pod, job, queue, node or GPU, of the whole cluster, or in a log."""
    from shoal.cli.formats import console, write
    from shoal.cli.scheduling_cause import with_scheduling
    from shoal.policy.diagnosis.trees import diagnose
    from shoal.views.diagnosis_text import show_diagnosis

    checked(options.output, TEXTS)
    given = [word for word in options.subject or () if word]
    # `node/x` and `node x` are the same.
    words = given[0].split("/", 1) if len(given) == 1 else given
    logs = [read_input(name, "--log") for name in options.log or ()]
    if logs and not words and not options.filename:
        result = _of_logs(options.log or (), logs)
    else:
        patient = _patient(words, options.namespace)
        facts, patient = _facts(patient, options, access, "\n".join(logs) if logs else None)
        found = diagnose(facts, patient)
        if found is None:
            raise _missing(facts, patient)
        result = with_scheduling(found, facts, patient, options.filename, access)
    if options.output in FOR_PROGRAMS:
        write(result, options.output)
    else:
        show_diagnosis(console(is_folded=True), result)
    raise typer.Exit(FAILED if result.causes else DONE)


def _patient(words: Sequence[str], namespace: str) -> Patient:
    from shoal.cli.known_names import check_known
    from shoal.policy.diagnosis.verdicts import SUBJECT_KINDS, Patient
    from shoal.units.errors import UserError, Where

    kind = words[0] if words else "cluster"
    where = Where(path="SUBJECT")
    check_known(kind, SUBJECT_KINDS, "subject", where)
    known: SubjectKind = next(each for each in SUBJECT_KINDS if each == kind)
    most = 1 if known == "cluster" else 2
    if len(words) > most:
        raise UserError(
            f"{len(words)} words are given", where=where, fix=f"write {known}" + (" NAME" if most == 2 else "")
        )
    if len(words) < most and words:
        raise UserError("has no name", where=where, fix=f"write {known} NAME")
    name = words[1] if len(words) == 2 else ""
    if known in _NAMESPACED and "/" in name:
        namespace, _, name = name.partition("/")
    return Patient(known, name, namespace if known in _NAMESPACED else "")


def _facts(
    patient: Patient, options: DoctorOptions, access: AccessOptions, log: str | None
) -> tuple[DiagnosedCluster, Patient]:
    """With the namespace of the subject, as it is found."""
    import msgspec

    from shoal.cli.cluster_access import announce
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster

    metrics = read_input(options.metrics, "--metrics") if options.metrics else None

    def facts_of(read: DiagnosedObjects, default: str) -> tuple[DiagnosedCluster, Patient]:
        facts = DiagnosedCluster(read.objects, read.complete, unread=read.unread, metrics=metrics)
        if patient.kind in _NAMESPACED and not patient.namespace:
            return facts, msgspec.structs.replace(patient, namespace=_namespace(facts, patient, default))
        return facts, patient

    if options.filename:
        read, logs = given_objects(options.filename)
        facts, named = facts_of(read, "")
        facts.logs.update(logs)
    else:
        cluster = access.access()
        announce(cluster)
        facts, named = _read_live(cluster, lambda read: facts_of(read, cluster.namespace))
    if log is not None and named.kind == "pod":
        facts.logs[f"{named.namespace}/{named.name}"] = log
    if options.history is not None:
        from shoal.cli.measured_size import measured_sizes

        facts.sizes.update(measured_sizes(options.history))
    return facts, named


def _read_live(
    cluster: Access, facts_of: Callable[[DiagnosedObjects], tuple[DiagnosedCluster, Patient]]
) -> tuple[DiagnosedCluster, Patient]:
    """With the logs of the pods that do not run well, as far as the user may read them."""
    import random

    from shoal.cli.cluster_access import ended
    from shoal.cli.progress import long_work
    from shoal.client.http.api import KubeApi
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.policy.diagnosis.trees import pods_with_logs
    from shoal.store.diagnosed_objects import read_diagnosed_objects
    from shoal.store.pod_logs import LogBounds, logs_of

    settings = KubeSettings(timeout_s=_PATIENCE_S)

    async def work() -> tuple[DiagnosedCluster, Patient]:
        api, connection = KubeApi(cluster, random.Random(), settings), Connection(cluster, settings)
        try:
            facts, named = facts_of(await read_diagnosed_objects(api))
            facts.logs.update(await logs_of(connection, pods_with_logs(facts, named), LogBounds(1 << 20, 5_000)))
            return facts, named
        finally:
            await connection.close()
            await api.close()

    with long_work(f"reading the cluster {cluster.name or cluster.server}"):
        return ended(cluster, work)


def _namespace(facts: DiagnosedCluster, patient: Patient, default: str) -> str:
    """That of the context, or the only one with an object of the name."""
    from shoal.policy.diagnosis.trees import names

    found = [namespace for namespace, name in names(facts, patient.kind) if name == patient.name and namespace]
    if default in found or not found:
        return default or _DEFAULT
    if len(set(found)) > 1:
        from shoal.units.errors import UserError, Where

        what = f"{patient.name} is in several namespaces: {', '.join(sorted(set(found)))}"
        raise UserError(what, where=Where(path="SUBJECT"), fix="name one with -n")
    return found[0]


def given_objects(paths: Sequence[str]) -> tuple[DiagnosedObjects, dict[str, str]]:
    """Of one bundle, with its logs, or of files with objects. Raises UserError."""
    from shoal.store.diagnosed_objects import DiagnosedObjects
    from shoal.store.support_bundle.diagnosed_file import ENDINGS, read_diagnosed_file
    from shoal.units.errors import UserError, Where

    bundles = [path for path in paths if path.endswith(ENDINGS)]
    if bundles and len(paths) > 1:
        raise UserError("is a bundle beside other files", where=Where(file=bundles[0]), fix="give it alone")
    if bundles:
        return read_diagnosed_file(bundles[0])
    return DiagnosedObjects(objects=plain_objects(paths)), {}


def plain_objects(paths: Sequence[str]) -> list[dict[str, object]]:
    from shoal.api.plain_objects import read_plain_objects
    from shoal.units.errors import UserError

    read = read_plain_objects(paths)
    if read.errors:
        raise read.errors[0]
    if not read.objects:
        raise UserError("the files contain no object", fix="name manifests or a file of shoal snapshot")
    return [plain.obj for plain in read.objects]


def read_input(name: str, option: str) -> str:
    from shoal.api.files import STANDARD_INPUT
    from shoal.units.errors import UserError, Where

    if name == STANDARD_INPUT:
        import sys

        data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        what, fix = f"is larger than {_MOST_BYTES >> 20} MiB", "give its end: tail -c 100M"
        raise UserError(what, where=Where(file=name, path=option), fix=fix)
    return data.decode("utf-8", "replace")


def _of_logs(names: Sequence[str], logs: Sequence[str]) -> DiagnosisResult:
    from shoal.api.files import STANDARD_INPUT
    from shoal.policy.diagnosis.log_reading import read_log
    from shoal.policy.diagnosis.severity import result_of

    titles = ["log" if name == STANDARD_INPUT else f"log {name}" for name in names]
    found = (verdict for title, text in zip(titles, logs, strict=True) for verdict in read_log(text, title))
    return result_of(", ".join(titles), found)


def _missing(facts: DiagnosedCluster, patient: Patient) -> Exception:
    from shoal.policy.diagnosis.trees import names
    from shoal.units.errors import UserError, Where
    from shoal.units.near_texts import near_texts

    near = near_texts(patient.name, [name for _, name in names(facts, patient.kind)])
    fix = f"did you mean {' or '.join(near)}?" if near else f"there is none; see kubectl get {patient.kind}s"
    return UserError(f"there is no {patient}", where=Where(path="SUBJECT"), fix=fix)

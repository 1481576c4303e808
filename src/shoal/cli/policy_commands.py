"""Implements `shoal policy generate|preview|rules`.

Guarantees: nothing is changed; with `-o json` or `-o yaml` stdout holds the objects or one document and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.object_source import Files, Namespace
from shoal.cli.option_groups import with_options
from shoal.units.errors import Where

if TYPE_CHECKING:
    from shoal.policy.admission_rules.modes import RuleModes
    from shoal.policy.admission_rules.preview import Preview
    from shoal.policy.object_set import AdvisedObjects

_MODES = ("off", "warn", "enforce")
_PARTS = ("rules", "additions")


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="NAME=MODE", help="The mode of one rule, by name or id; repeatable."),
    ] = None
    exclude_namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            metavar="NAME",
            help="A namespace without rules, beside the system namespaces and shoal-system; repeatable.",
        ),
    ] = None

    def modes(self, default: str) -> RuleModes:
        """Raises UserError for a mode or a rule that does not exist."""
        import msgspec

        from shoal.api.admission_settings import AdmissionSettings
        from shoal.cli.known_names import check_known
        from shoal.policy.admission_rules.modes import modes_of
        from shoal.units.errors import UserError, Where, excerpt

        check_known(default, _MODES, "mode", Where(path="--mode"))
        rules = {}
        for text in self.rule or ():
            name, is_given, mode = text.partition("=")
            if not is_given:
                fix = "as in NoGpuToleration=enforce"
                raise UserError(f"{excerpt(text)} is not NAME=MODE", where=Where(path="--rule"), fix=fix)
            check_known(mode, _MODES, "mode", Where(path="--rule"))
            rules[name] = mode
        written = {"mode": default, "rules": rules, "excludedNamespaces": self.exclude_namespace or []}
        return modes_of(msgspec.convert(written, AdmissionSettings), "shoal-system", Where(path="--rule"))


_Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="off, warn or enforce, in namespaces without the label admission.shoal.dev/mode.",
        autocompletion=one_of(_MODES),
    ),
]


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    mode: _Mode = "warn"
    part: Annotated[
        str,
        typer.Option(
            "--part",
            metavar="NAMES",
            help="rules (Kubernetes 1.30 and newer), additions (1.36 and newer), or both, separated by commas.",
        ),
    ] = ",".join(_PARTS)
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")] = "yaml"


@with_options
def generate(options: GenerateOptions, settings: RuleSettings) -> None:
    """Print admission policies for an API server: shoal policy generate | kubectl apply -f -.

    The API server evaluates them itself: they work while Shoal does not run.
    """
    from shoal.cli.known_names import named
    from shoal.policy.admission_rules.mutations import mutating_policies
    from shoal.policy.admission_rules.policies import validating_policies

    checked(options.output, FOR_PROGRAMS)
    parts = named(options.part, _PARTS, "--part", "part")
    modes = settings.modes(options.mode)
    policies = validating_policies(modes) if "rules" in parts else []
    policies += mutating_policies(modes) if "additions" in parts else []
    _print([each for made in policies for each in (made.policy, *made.bindings)], options.output)


def _print(objects: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        from shoal.cli.formats import write

        write({"apiVersion": "v1", "kind": "List", "items": objects}, output)
        return
    from shoal.api.yaml_out import to_yaml

    typer.echo("---\n".join(map(to_yaml, objects)), nl=False)


@dataclass(frozen=True, kw_only=True)
class PreviewOptions:
    filename: Files = None
    namespace: Namespace = ""
    mode: _Mode = "enforce"
    output: TableOutput = TABLES[0]
    window: Annotated[
        str,
        typer.Option(
            "--window",
            metavar="WINDOW",
            help="The pods that were created in this time, from a history: 7d, lastweek, 2026-10 or FROM,TO.",
        ),
    ] = ""
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", metavar="DIR", help="Folder of the history; by default that of the cluster of shoal up."
        ),
    ] = None

    def check(self) -> None:
        """Raises UserError for options that exclude each other."""
        from shoal.units.errors import UserError, Where

        checked(self.output, TABLES)
        if self.window and self.filename:
            raise UserError("is given with --filename", where=Where(path="--window"), fix="give one of them")
        if self.history is not None and not self.window:
            raise UserError("is given without --window", where=Where(path="--history"), fix="add --window 7d")


@with_options
def preview(options: PreviewOptions, settings: RuleSettings, access: AccessOptions) -> None:
    """Tell which objects of a cluster, or of files, the rules would refuse; nothing is changed.

    The labels of namespaces count. Objects that controllers created are left out, where the controller is checked.
    With --window: the pods of that time.
    """
    options.check()
    modes = settings.modes(options.mode)
    if options.window:
        _show_past(options, modes)
        return
    read, cluster = (_of_files(options.filename), "") if options.filename else _of_cluster(access)
    found = _preview(read, modes, options.namespace)
    if options.output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write({**_document(found), "notes": read.notes}, options.output, cluster)
        return
    from shoal.cli.formats import console
    from shoal.units.errors import one_line
    from shoal.views.admission_text import show_preview

    for note in read.notes:
        typer.echo(f"shoal: warning: {one_line(note)}", err=True)
    show_preview(console(), found, is_wide=options.output == "wide")


def _show_past(options: PreviewOptions, modes: RuleModes) -> None:
    from datetime import UTC

    from shoal.cli.cluster_folder import cluster_folder, history_folder
    from shoal.policy.admission_rules.past import past_preview
    from shoal.store.history.history import read_history
    from shoal.units.calendar_windows import rfc3339, window_of

    folder = options.history
    opened = read_history(history_folder(cluster_folder(None)) if folder is None else folder.expanduser().absolute())
    try:
        recorded, since = opened.ledger.recorded_ms(), opened.created.since_ms()
        window = window_of(options.window, _now_ms() if recorded is None else recorded, UTC, Where(path="--window"))
        created = opened.created.between(window.start_ms, window.end_ms)
    finally:
        opened.close()
    notes = []
    if since is not None and since > window.start_ms:
        notes.append(f"the first pod of the history was created at {rfc3339(since)}")
    if recorded is not None and recorded < window.end_ms:
        notes.append(f"nothing was recorded after {rfc3339(recorded)}")
    found = past_preview((one for one in created if options.namespace in ("", one.namespace)), modes)
    if options.output in FOR_PROGRAMS:
        import msgspec

        from shoal.cli.formats import write

        write({**msgspec.to_builtins(found), "notes": notes}, options.output)
        return
    from shoal.cli.formats import console
    from shoal.units.errors import one_line
    from shoal.views.admission_text import show_past

    for note in notes:
        typer.echo(f"shoal: warning: {one_line(note)}", err=True)
    show_past(console(), found)


def _now_ms() -> int:
    from shoal.client.clock import WallClock

    return round(WallClock().seconds() * 1000)


def _of_files(paths: list[str]) -> AdvisedObjects:
    from shoal.api.plain_objects import read_plain_objects
    from shoal.cli.rendered_charts import with_charts
    from shoal.policy.object_set import AdvisedObjects

    read = with_charts(paths, read_plain_objects)
    if read.errors:
        raise read.errors[0]
    return AdvisedObjects([plain.obj for plain in read.objects])


def _of_cluster(access: AccessOptions) -> tuple[AdvisedObjects, str]:
    from shoal.cli.cluster_access import announce, speak
    from shoal.policy.admission_rules.preview import MORE_KINDS
    from shoal.store.advised_objects import read_advised_objects

    cluster = access.access()
    announce(cluster)
    return speak(cluster, partial(read_advised_objects, more=MORE_KINDS)), cluster.name


def _preview(read: AdvisedObjects, modes: RuleModes, namespace: str) -> Preview:
    from shoal.policy.admission_rules.preview import preview as previewed
    from shoal.policy.object_set import ObjectSet, key_of

    chosen = [obj for obj in read.objects if namespace in ("", key_of(obj)[0])]
    return previewed(chosen, ObjectSet(read.objects, read.complete), modes)


def _document(found: Preview) -> dict[str, Any]:
    import msgspec

    made: dict[str, Any] = msgspec.to_builtins(found)
    lines = [{**{k: v for k, v in line.items() if k != "finding"}, **line["finding"]} for line in made.pop("lines")]
    return {**made, "findings": lines}


@with_options
def rules(output: TableOutput = TABLES[0]) -> None:
    """List the rules, with who checks them: the API server, or Shoal's webhook."""
    checked(output, TABLES)
    from shoal.policy.admission_rules.rule_list import listed_rules

    found = listed_rules()
    if output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write(found, output)
        return
    from shoal.cli.formats import console
    from shoal.views.admission_text import show_rule_list

    show_rule_list(console(), found, is_wide=output == "wide")

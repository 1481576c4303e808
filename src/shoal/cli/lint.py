"""`shoal lint`: warns about objects that are wrong, or valid and do something else than their authors intended.

The rules are those of the advisor in a cluster. Files need no cluster: what only a cluster could show is not reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import namespaces, one_of
from shoal.cli.exit_codes import DONE, FAILED, WRONG_INPUT
from shoal.cli.formats import FOR_PROGRAMS, output_option
from shoal.cli.list_options import AllNamespaces
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.api.plain_objects import PlainObjects
    from shoal.policy.findings import LintFinding
    from shoal.policy.lint import Checked
    from shoal.policy.object_set import AdvisedObjects

_REPORTS = ("sarif", "github", "junit")
_FORMATS = ("table", "wide", "name", *FOR_PROGRAMS, *_REPORTS)
_LEVELS = ("never", "error", "warning", "info")
_MOST_BASELINE_BYTES = 16 << 20


def _rule_names(incomplete: str) -> list[str]:
    from shoal.policy.catalogue import faults

    return [name for name in faults() if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class LintSource:
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files, folders, charts, or - for stdin.", show_default=False),
    ] = None
    filename: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", metavar="PATH", help="The same as PATH; may be given several times."),
    ] = None
    live: Annotated[
        bool,
        typer.Option("--live", help="Check the objects of the cluster; with files, look up others in the cluster."),
    ] = False
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="Only objects in this namespace; by default in all.",
            autocompletion=namespaces,
        ),
    ] = ""
    all_namespaces: AllNamespaces = False

    @property
    def files(self) -> list[str]:
        return [*(self.paths or ()), *(self.filename or ())]


@dataclass(frozen=True, kw_only=True)
class RuleChoice:
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule", metavar="NAME", help="Only this rule, by name or id; repeatable.", autocompletion=_rule_names
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="NAME", help="Not this rule; repeatable.", autocompletion=_rule_names),
    ] = None

    def names(self) -> frozenset[str]:
        """Raises UserError for a name that no rule has."""
        from shoal.cli.known_names import check_known
        from shoal.policy.catalogue import faults, reason_of
        from shoal.units.errors import Where

        known = tuple(faults())
        chosen, ignored = ([reason_of(name) for name in names or ()] for names in (self.rule, self.ignore))
        for option, names in (("--rule", chosen), ("--ignore", ignored)):
            for name in names:
                check_known(name, known, "rule", Where(path=option))
        return frozenset(chosen or known) - frozenset(ignored)


@dataclass(frozen=True, kw_only=True)
class LintOutput:
    output: Annotated[
        str,
        output_option(_FORMATS, "table, wide (a row for each finding), name, json, yaml, sarif, github or junit."),
    ] = _FORMATS[0]
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="Exit with 1 if a finding is as severe: error, warning, info, or never.",
            autocompletion=one_of(_LEVELS),
        ),
    ] = "error"
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Report only findings that this file does not have."),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write the findings to this file, and report none."),
    ] = None
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write corrections of names and values into the files, and report what is left."),
    ] = False
    list_rules: Annotated[bool, typer.Option("--list", help="List the rules, and check nothing.")] = False

    def check(self) -> None:
        from shoal.cli.formats import checked
        from shoal.cli.known_names import check_known
        from shoal.units.errors import Where

        checked(self.output, _FORMATS)
        check_known(self.fail_on, _LEVELS, "level", Where(path="--fail-on"))

    def new(self, found: list[LintFinding]) -> list[LintFinding]:
        """Without those of the baseline."""
        if self.baseline is None:
            return found
        import msgspec

        from shoal.api.files import read_whole
        from shoal.policy.findings import new_findings
        from shoal.units.errors import UserError, Where

        try:
            known = msgspec.json.decode(read_whole(self.baseline, _MOST_BASELINE_BYTES), type=list[str])
        except msgspec.DecodeError as error:
            fix = "write one with --write-baseline"
            raise UserError(f"is no baseline: {error}", where=Where(file=str(self.baseline)), fix=fix) from error
        return list(new_findings(found, frozenset(known)))


@with_options
def lint(source: LintSource, choice: RuleChoice, shown: LintOutput, access: AccessOptions) -> None:
    """Warn about objects that are wrong, or are valid and do something else than intended."""
    from shoal.api.files import STANDARD_INPUT
    from shoal.policy.findings import reaches
    from shoal.units.errors import UserError

    shown.check()
    chosen = choice.names()
    if shown.list_rules:
        _list(shown.output, chosen)
        return
    if not source.files and not source.live:
        raise UserError("neither a PATH nor --live is given", fix="name files, or check the cluster with --live")
    if shown.fix and (not source.files or STANDARD_INPUT in source.files):
        raise UserError("--fix changes files, and none are named", fix="name files or folders")
    live, read = _live(source, access), _files(source.files)
    checked = _checked(source, live, read, chosen)
    if shown.fix:
        from shoal.cli.lint_fixes import fix_files

        fix_files(checked.findings, read, lambda changed: _checked(source, live, changed, chosen))
        read = _files(source.files)
        checked = _checked(source, live, read, chosen)
    _complain(live, read, checked)
    if shown.write_baseline is not None:
        _write_baseline(shown.write_baseline, checked.findings)
        return
    found = shown.new(checked.findings)
    _show(shown.output, found, checked, read)
    if read.errors:
        raise typer.Exit(WRONG_INPUT)
    raise typer.Exit(FAILED if reaches(found, shown.fail_on) else DONE)


def _live(source: LintSource, access: AccessOptions) -> AdvisedObjects:
    from shoal.policy.object_set import AdvisedObjects

    if not source.live:
        return AdvisedObjects()
    from shoal.cli.cluster_access import announce, speak
    from shoal.cli.progress import long_work
    from shoal.store.advised_objects import read_advised_objects

    cluster = access.access()
    announce(cluster)
    with long_work(f"reading the cluster {cluster.name or cluster.server}"):
        return speak(cluster, read_advised_objects)


def _files(paths: Sequence[str]) -> PlainObjects:
    from shoal.api.files import ENDINGS
    from shoal.api.plain_objects import PROGRAMS, PROMQL, PlainObjects, read_plain_objects
    from shoal.cli.rendered_charts import with_charts

    return (
        with_charts(paths, lambda files: read_plain_objects(files, (*ENDINGS, PROMQL, *PROGRAMS)))
        if paths
        else PlainObjects()
    )


def _checked(source: LintSource, live: AdvisedObjects, read: PlainObjects, chosen: frozenset[str]) -> Checked:
    from shoal.policy.lint import lint_files, lint_objects
    from shoal.policy.object_set import ObjectSet
    from shoal.wiring.server_refusals import server_refusals

    context = ObjectSet((*live.objects, *(plain.obj for plain in read.objects)), live.complete)
    namespace = "" if source.all_namespaces else source.namespace
    if not source.files:
        return lint_objects([obj for obj in live.objects if _is_in(obj, namespace)], context, chosen)
    if namespace:
        read.objects[:] = [plain for plain in read.objects if _is_in(plain.obj, namespace)]
    return lint_files(read, context, chosen, server_refusals)


def _is_in(obj: object, namespace: str) -> bool:
    from shoal.policy.object_set import key_of

    return namespace in ("", key_of(obj)[0]) if isinstance(obj, dict) else False


def _complain(live: AdvisedObjects, read: PlainObjects, checked: Checked) -> None:
    from shoal.units.errors import one_line

    for note in (*live.notes, *checked.notes):
        typer.echo(f"shoal: warning: {one_line(note)}", err=True)
    for where, what in checked.skipped:
        typer.echo(f"shoal: {where}: not checked, because it is no object but {what}", err=True)
    for error in read.errors:
        typer.echo(f"shoal: {error}", err=True)


def _write_baseline(path: Path, found: Sequence[LintFinding]) -> None:
    import msgspec

    from shoal.cli.output_file import OutFile

    keys = sorted({each.key for each in found})
    OutFile(path).write(msgspec.json.format(msgspec.json.encode(keys), indent=1) + b"\n")
    typer.echo(f"{_counted(len(keys), 'finding')} written to {path}")


def _show(output: str, found: list[LintFinding], checked: Checked, read: PlainObjects) -> None:
    from shoal.cli.formats import console, write
    from shoal.views.lint_text import show_findings, show_wide

    if output in FOR_PROGRAMS:
        write(
            {
                "objects": checked.objects,
                "findings": found,
                "accepted": checked.accepted,
                "skipped": [{"source": str(where), "content": what} for where, what in checked.skipped],
                "errors": [str(error) for error in read.errors],
            },
            output,
        )
    elif output in _REPORTS:
        from shoal import __version__
        from shoal.views.lint_formats import written

        typer.echo(written(found, output, __version__), nl=False)
    elif output == "name":
        for line in dict.fromkeys(each.reference for each in found):
            typer.echo(line)
    elif output == "wide":
        show_wide(console(), found)
    elif checked.objects or not read.errors:
        # Else the errors are the answer.
        show_findings(console(), found)
        about = len({(each.file, each.object) for each in found})
        accepted = f", {_counted(checked.accepted, 'finding')} accepted" if checked.accepted else ""
        typer.echo(f"{_counted(len(found), 'finding')} in {about} of {_counted(checked.objects, 'object')}{accepted}")


def _list(output: str, chosen: frozenset[str]) -> None:
    from shoal.cli.formats import console, write
    from shoal.policy.catalogue import faults, rules
    from shoal.policy.checks import kinds_of
    from shoal.views.lint_text import show_rules

    listed = [rule for rule in rules().values() if rule.reason in chosen]
    if output in FOR_PROGRAMS:
        fields = [(rule, kinds_of(rule.reason), faults()[rule.reason]) for rule in listed]
        write(
            [
                {
                    "id": rule.id,
                    "rule": rule.reason,
                    "severity": rule.severity,
                    "kinds": kinds,
                    "fault": fault,
                    "effect": rule.effect,
                    "fix": rule.fix,
                    "evidence": rule.evidence,
                    "admission": rule.place,
                    "links": rule.links,
                    "bad": rule.bad,
                    "good": rule.good,
                }
                for rule, kinds, fault in fields
            ],
            output,
        )
    elif output == "name":
        for rule in listed:
            typer.echo(rule.reason)
    else:
        rows = [
            (rule.id, rule.severity, rule.reason, faults()[rule.reason], rule.effect, _kinds(kinds_of(rule.reason)))
            for rule in listed
        ]
        show_rules(console(), rows, is_wide=output == "wide")


def _kinds(names: Sequence[str]) -> str:
    return ", ".join(names) or "all, in files"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

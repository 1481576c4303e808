"""`shoal advise`: warns about objects that are valid and do something else than their authors intended.

The rules are those of the advisor in a cluster. Files need no cluster: what only a cluster could show is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import namespaces, one_of
from shoal.cli.exit_codes import DONE, FAILED, WRONG_INPUT
from shoal.cli.formats import FOR_PROGRAMS
from shoal.cli.list_options import AllNamespaces
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.api.plain_objects import PlainObjects
    from shoal.policy.advice import Obj
    from shoal.policy.checks import Warned
    from shoal.store.advised_objects import AdvisedObjects
    from shoal.units.errors import Where

_FORMATS = ("table", "wide", "name", *FOR_PROGRAMS)
_NEVER, _WARNING = _LEVELS = ("never", "warning")


def _rule_names(incomplete: str) -> list[str]:
    from shoal.policy.checks import reasons

    return [name for name in reasons() if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class AdviceSource:
    filename: Files = None
    live: Annotated[
        bool, typer.Option("--live", help="Check the objects of the cluster; with -f, look up others in the cluster.")
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


@dataclass(frozen=True, kw_only=True)
class RuleChoice:
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="NAME", help="Only this rule; repeatable.", autocompletion=_rule_names),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="NAME", help="Not this rule; repeatable.", autocompletion=_rule_names),
    ] = None

    def names(self) -> frozenset[str]:
        """Raises UserError for a name that no rule has."""
        from shoal.cli.known_names import check_known
        from shoal.policy.checks import reasons
        from shoal.units.errors import Where

        known = tuple(reasons())
        for option, names in (("--rule", self.rule), ("--ignore", self.ignore)):
            for name in names or ():
                check_known(name, known, "rule", Where(path=option))
        return frozenset(self.rule or known) - frozenset(self.ignore or ())


@dataclass(frozen=True, kw_only=True)
class AdviceOutput:
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help="table, wide (a row for each warning), name, json or yaml.",
            autocompletion=one_of(_FORMATS),
        ),
    ] = _FORMATS[0]
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="Exit with 1 if there is a warning (warning), or not (never).",
            autocompletion=one_of(_LEVELS),
        ),
    ] = _NEVER
    list_rules: Annotated[bool, typer.Option("--list", help="List the rules, and check nothing.")] = False

    def check(self) -> None:
        from shoal.cli.formats import checked
        from shoal.cli.known_names import check_known
        from shoal.units.errors import Where

        checked(self.output, _FORMATS)
        check_known(self.fail_on, _LEVELS, "level", Where(path="--fail-on"))


@with_options
def advise(source: AdviceSource, choice: RuleChoice, shown: AdviceOutput, access: AccessOptions) -> None:
    """Warn about objects that are valid and do something else than intended."""
    from shoal.policy.checks import warnings
    from shoal.policy.object_set import ObjectSet
    from shoal.units.errors import UserError

    shown.check()
    chosen = choice.names()
    if shown.list_rules:
        _list(shown.output, chosen)
        return
    if not source.filename and not source.live:
        raise UserError(
            "neither -f PATH nor --live is given", fix="name files with -f, or check the cluster with --live"
        )
    live, read = _live(source, access), _files(source)
    places = _places(read)
    files = [(places[one.where], one.obj) for one in read.objects]
    context = ObjectSet((*live.objects, *(obj for _, obj in files)), live.complete)
    checked = files if source.filename else [("", obj) for obj in live.objects]
    checked = [(place, obj) for place, obj in checked if source.all_namespaces or _is_in(obj, source.namespace)]
    found = list(warnings(checked, context, chosen, of_files=bool(source.filename)))
    _complain(live, read, places)
    _show(shown.output, found, len(checked), read)
    if read.errors:
        raise typer.Exit(WRONG_INPUT)
    raise typer.Exit(FAILED if found and shown.fail_on == _WARNING else DONE)


def _live(source: AdviceSource, access: AccessOptions) -> AdvisedObjects:
    from shoal.cli.cluster_access import announce, speak
    from shoal.cli.progress import long_work
    from shoal.store.advised_objects import AdvisedObjects, read_advised_objects

    if not source.live:
        return AdvisedObjects()
    cluster = access.access()
    announce(cluster)
    with long_work(f"reading the cluster {cluster.name or cluster.server}"):
        return speak(cluster, read_advised_objects)


def _files(source: AdviceSource) -> PlainObjects:
    from shoal.api.plain_objects import PlainObjects, read_plain_objects

    return read_plain_objects(source.filename) if source.filename else PlainObjects()


def _places(read: PlainObjects) -> dict[Where, str]:
    """Each document in words: the file alone where it is the only one in the file."""
    found = {*(one.where for one in read.objects), *(one.where for one in read.others)}
    counted = Counter(where.file for where in found)
    return {where: str(where) if counted[where.file] > 1 else where.file for where in found}


def _is_in(obj: Obj, namespace: str) -> bool:
    from shoal.policy.object_set import key_of

    return namespace in ("", key_of(obj)[0])


def _complain(live: AdvisedObjects, read: PlainObjects, places: Mapping[Where, str]) -> None:
    from shoal.policy.fragments import described
    from shoal.units.errors import one_line

    for note in live.notes:
        typer.echo(f"shoal: warning: {one_line(note)}", err=True)
    for other in read.others:
        what = one_line(described(other.value))
        typer.echo(f"shoal: {places[other.where]}: not checked, because it is no object but {what}", err=True)
    for error in read.errors:
        typer.echo(f"shoal: {error}", err=True)


def _show(output: str, found: list[Warned], objects: int, read: PlainObjects) -> None:
    from shoal.cli.formats import console, write
    from shoal.policy.fragments import described
    from shoal.views.advice_text import show_warnings, show_wide

    if output in FOR_PROGRAMS:
        skipped = [{"source": str(other.where), "content": described(other.value)} for other in read.others]
        errors = [str(error) for error in read.errors]
        document: dict[str, Any] = {"objects": objects, "warnings": found, "skipped": skipped, "errors": errors}
        write(document, output)
        return
    if output == "name":
        for line in dict.fromkeys(map(_name, found)):
            typer.echo(line)
        return
    if output == "wide":
        show_wide(console(), found)
        return
    if read.errors and not objects:
        # The errors are the answer.
        return
    show_warnings(console(), found)
    about = len({(one.source, one.object) for one in found})
    typer.echo(f"{_counted(len(found), 'warning')} about {about} of {_counted(objects, 'object')}")


def _list(output: str, chosen: frozenset[str]) -> None:
    from shoal.cli.formats import console, write
    from shoal.policy.checks import kinds_of, reasons
    from shoal.views.advice_text import show_rules

    rules = [(name, kinds_of(name), fault) for name, fault in reasons().items() if name in chosen]
    if output in FOR_PROGRAMS:
        write([{"rule": name, "kinds": kinds, "fault": fault} for name, kinds, fault in rules], output)
    elif output == "name":
        for name, *_ in rules:
            typer.echo(name)
    else:
        rows = [(name, fault, ", ".join(kinds) or "all, in files") for name, kinds, fault in rules]
        show_rules(console(), rows, is_wide=output == "wide")


def _name(one: Warned) -> str:
    """As kubectl writes it: `deployment.apps/web`."""
    group = one.api_version.rpartition("/")[0]
    return f"{one.kind.lower()}{f'.{group}' if group else ''}/{one.name}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

"""`shoal install --adopt PROJECT`: shows the plan of an adoption, carries it out, and reverts it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.exit_codes import FAILED
from shoal.units.errors import UserError, Where
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.install.adoption.plan import AdoptionPlan
    from shoal.install.adoption.projects import AdoptedProject
    from shoal.install.release import Release
    from shoal.install.values.reading import ChartValues
    from shoal.wiring.installation.adopting import Adopter
    from shoal.wiring.installation.applying import Patience
    from shoal.wiring.installation.cluster_writer import ClusterWriter
    from shoal.wiring.installation.preparing import InstallRequest

_TEXT = "text"
_PATIENCE_S = 600.0


@dataclass(frozen=True, kw_only=True)
class AdoptOptions:
    adopt: Annotated[
        str,
        typer.Option(
            "--adopt", metavar="PROJECT", help="Take over from kueue, volcano or kai, by a plan; see --dry-run."
        ),
    ] = ""
    revert: Annotated[
        bool, typer.Option("--revert", help="With --adopt: return to the project, and restore its former state.")
    ] = False

    @property
    def is_given(self) -> bool:
        if self.revert and not self.adopt:
            fix = "name the project, as in --adopt kueue --revert"
            raise UserError("is given without --adopt", where=Where(path="--revert"), fix=fix)
        return bool(self.adopt)


@dataclass(frozen=True, slots=True)
class Adoption:
    """What a command line asks for."""

    project: AdoptedProject
    request: InstallRequest
    patience: Patience
    output: str = _TEXT
    is_dry: bool = False
    values_are_given: bool = False

    @property
    def release(self) -> Release:
        return self.request.release


def adopt(access: Access, adoption: Adoption) -> None:
    from shoal.cli.installation_access import installing

    async def work(writer: ClusterWriter, version: str) -> int:
        return await _adopted(writer, version, adoption)

    code = installing(access, work)
    if code:
        raise typer.Exit(code)


def revert(access: Access, adoption: Adoption) -> None:
    from shoal.cli.installation_access import installing

    async def work(writer: ClusterWriter, _: str) -> str:
        return await _reverted(writer, adoption)

    typer.echo(installing(access, work))


async def _adopted(writer: ClusterWriter, version: str, adoption: Adoption) -> int:
    from msgspec.structs import replace

    from shoal.cli.installation_access import progress_line, show_findings
    from shoal.install.adoption.plan import adoption_plan, record_of
    from shoal.wiring.installation.adoption_reader import AdoptionReader, project_namespace
    from shoal.wiring.installation.applying import Installer
    from shoal.wiring.installation.discipline_warnings import discipline_warnings
    from shoal.wiring.installation.preparing import prepare

    project, release = adoption.project, adoption.release
    values = await _installed_values(writer, adoption)
    prepared = None
    if values is None:
        prepared = await prepare(writer, replace(adoption.request, server_version=version))
        show_findings(prepared.findings)
        values = prepared.values
    namespace = project_namespace(project, values)
    facts = await AdoptionReader(writer).read(project, namespace, release.namespace)
    plan = adoption_plan(project, namespace, release, facts, values, discipline_warnings(project, facts))
    show_findings(plan.findings)
    _print(plan, adoption.output)
    errors = [*plan.errors, *(prepared.errors if prepared is not None else ())]
    if errors:
        typer.echo("shoal: nothing was adopted: correct the errors above", err=True)
        return FAILED
    if adoption.is_dry:
        return 0
    if prepared is not None:
        await Installer(writer, progress_line, adoption.patience).apply(prepared)
    await _adopter(writer, adoption).adopt(project, record_of(project, namespace, facts))
    typer.echo(visible(f"release {release.name} decides for {project.title}"), err=True)
    return 0


def _adopter(writer: ClusterWriter, adoption: Adoption) -> Adopter:
    from shoal.cli.installation_access import progress_line
    from shoal.wiring.installation.adopting import Adopter

    return Adopter(writer, adoption.release, progress_line, adoption.patience.timeout_s)


async def _installed_values(writer: ClusterWriter, adoption: Adoption) -> ChartValues | None:
    """Of a complete release, which stays as it is; None if it is to be installed first."""
    from shoal.install.inventory import DEPLOYED
    from shoal.install.values.reading import read_values
    from shoal.wiring.installation.release_store import find_record

    record = await find_record(writer, adoption.release.name, adoption.release.namespace)
    if record is None or record.state != DEPLOYED or adoption.values_are_given:
        return None
    return read_values([], record.current.values)


async def _reverted(writer: ClusterWriter, adoption: Adoption) -> str:
    from shoal.wiring.installation.adopting import find_adoption

    project, release = adoption.project, adoption.release
    record = await find_adoption(writer, project.name, release.namespace)
    if record is None:
        what = f"release {release.name} in the namespace {release.namespace} has not adopted {project.title}"
        raise UserError(what, where=Where(path="--revert"), fix="name the release and its namespace (-n)")
    if adoption.is_dry:
        restored = [f"Deployment {one.namespace}/{one.name}: {one.replicas} replicas" for one in record.deployments]
        restored += [f"{one.kind} {one.name}" for one in record.hooks]
        restored += [f"CustomResourceDefinition {one.name}" for one in record.definitions]
        restored += [f"APIService {one['metadata']['name']}" for one in record.api_services]
        return visible("\n".join(("would be restored:", *(f"  {one}" for one in restored))), keeps_blanks=True)
    await _adopter(writer, adoption).revert(project, record)
    return visible(f"release {release.name} has returned the decisions to {project.title}")


async def revert_all(writer: ClusterWriter, release: Release, *, is_dry: bool, timeout_s: float = _PATIENCE_S) -> None:
    """Before a release is removed: otherwise no program would decide about the objects of the project. Raises
    NotReadyError, which names the way without a revert, if a controller does not start.
    """
    from shoal.cli.installation_access import progress_line
    from shoal.install.adoption.projects import PROJECTS
    from shoal.wiring.installation.adopting import Adopter, find_adoption
    from shoal.wiring.installation.stage_waits import NotReadyError

    for project in PROJECTS:
        record = await find_adoption(writer, project.name, release.namespace)
        if record is None:
            continue
        if is_dry:
            typer.echo(f"the decisions would be returned to {project.title}")
            continue
        try:
            await Adopter(writer, release, progress_line, timeout_s).revert(project, record)
        except NotReadyError as error:
            way = f"to remove Shoal without returning the decisions to {project.title}: add --no-revert"
            raise NotReadyError(f"{error}; {way}") from None


def _print(plan: AdoptionPlan, output: str) -> None:
    import msgspec

    from shoal.api.yaml_out import to_yaml
    from shoal.install.adoption.plan_text import plan_lines

    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode() + "\n")
    elif output == "yaml":
        sys.stdout.write(to_yaml(msgspec.to_builtins(plan)))
    else:
        for line in plan_lines(plan):
            typer.echo(visible(line, keeps_blanks=True))

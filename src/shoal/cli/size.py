"""Implements `shoal size`: prints which GPUs hold a model, how fast they serve or train it, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, Kubeconfig
from shoal.cli.completion_values import one_of
from shoal.cli.exit_codes import FAILED
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput
from shoal.cli.measured_size import MeasuredChoice, measured_size
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.data.gpus import Model
    from shoal.data.language_models import LanguageModel
    from shoal.policy.sizing.workload import ModelWorkload
    from shoal.views.top import NodeTop

_TRAININGS = ("full", "lora", "fsdp")
_DTYPES = ("fp32", "fp16", "bf16", "fp8", "int8", "int4")


def _model_names(incomplete: str) -> list[str]:
    from shoal.data.language_models import language_models

    return [model.name for model in language_models() if model.name.lower().startswith(incomplete.lower())]


def _gpu_names(incomplete: str) -> list[str]:
    from shoal.data.gpus import models

    return [model.name for model in models() if model.name.lower().startswith(incomplete.lower())]


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="A well-known model, or a folder with config.json (and safetensors files).",
            autocompletion=_model_names,
        ),
    ] = ""
    params: Annotated[
        float | None,
        typer.Option("--params", metavar="NUMBER", min=1e6, max=1e14, help="Parameters of the model, such as 70e9."),
    ] = None
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            metavar="FORMAT",
            help=f"Format of the weights: {', '.join(_DTYPES)}; by default that of the model.",
            autocompletion=one_of(_DTYPES),
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class LoadChoice:
    context: Annotated[
        int | None,
        typer.Option("--context", min=1, max=10_000_000, help="Tokens of a request or sample; by default 8192."),
    ] = None
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=100_000, help="Requests at one time, or samples on a GPU.")
    ] = 1
    train: Annotated[
        str,
        typer.Option(
            "--train",
            metavar="KIND",
            help="Train instead of serve: full, lora (adapters), or fsdp (full, sharded).",
            autocompletion=one_of(_TRAININGS),
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class GpuChoice:
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu",
            metavar="NAME",
            help="Only this GPU model or family, such as A100; repeatable.",
            autocompletion=_gpu_names,
        ),
    ] = None
    output: TableOutput = TABLES[0]
    filename: Files = None
    live: Annotated[
        bool, typer.Option("--live", help="Count how often the free GPUs of the cluster hold the model.")
    ] = False
    kubeconfig: Kubeconfig = None
    kube_context: Annotated[
        str, typer.Option("--kube-context", metavar="NAME", help="The context of the kubeconfig, for --live.")
    ] = ""

    def nodes(self) -> Sequence[NodeTop] | None:
        """Those of the cluster or of the files, if either is asked for."""
        if not self.live and not self.filename:
            return None
        from shoal.cli.object_source import source_from
        from shoal.cli.overview import top_of_source

        access = AccessOptions(kubeconfig=self.kubeconfig, context=self.kube_context)
        return top_of_source(source_from(self.filename, access)).nodes


@with_options
def size(choice: ModelChoice, load: LoadChoice, gpus: GpuChoice, measured: MeasuredChoice) -> None:
    """Tell which GPUs hold a model, how fast they serve or train it, and what they cost; or what holds a job."""
    from shoal.cli.formats import checked, console, write
    from shoal.policy.sizing.fits import fits
    from shoal.views.size_text import Sizing, largest_nodes, show_size, size_document

    checked(gpus.output, TABLES)
    if measured.job:
        if choice.model or choice.params is not None:
            from shoal.units.errors import UserError, Where

            raise UserError("is given beside a model", where=Where(path="--job"), fix="give one of them")
        measured_size(measured, gpus.output)
        return
    workload, asked = _workload(choice, load), _gpus(gpus.gpu)
    nodes = gpus.nodes()
    sizing = Sizing(workload, asked, fits(workload, asked, largest_nodes(nodes)), nodes)
    if gpus.output in FOR_PROGRAMS:
        write(size_document(sizing), gpus.output)
    else:
        show_size(console(), sizing, is_wide=gpus.output == "wide")
    if not sizing.fits:
        raise typer.Exit(FAILED)


def _workload(choice: ModelChoice, load: LoadChoice) -> ModelWorkload:
    from shoal.cli.known_names import check_known
    from shoal.policy.sizing.number_formats import USUAL, bytes_of
    from shoal.policy.sizing.workload import USUAL_CONTEXT, ModelWorkload
    from shoal.units.errors import UserError, Where, excerpt

    if load.train:
        check_known(load.train, _TRAININGS, "kind of training", Where(path="--train"))
    if choice.dtype and bytes_of(choice.dtype) is None:
        raise UserError(
            f"{excerpt(choice.dtype)} is not a format",
            where=Where(path="--dtype"),
            fix=f"choose among {', '.join(_DTYPES)}",
        )
    model, assumptions = _model(choice)
    context = load.context
    if context is None:
        context = min(USUAL_CONTEXT, model.context or USUAL_CONTEXT)
        assumptions.append(f"--context is not given: {context} tokens")
    elif model.context and context > model.context:
        assumptions.append(
            f"the longest context of {model.name} is {model.context} tokens, and {context} are asked for"
        )
    dtype = choice.dtype.lower() or model.dtype or USUAL
    if not choice.dtype:
        assumptions.append(f"--dtype is not given: {dtype}")
    if load.concurrency == 1 and not load.train:
        assumptions.append("--concurrency is not given or 1: one request at a time")
    cache = "fp32" if bytes_of(dtype) == bytes_of("fp32") else USUAL
    return ModelWorkload(
        model=model,
        dtype=dtype,
        cache_dtype=cache,
        context=context,
        concurrency=load.concurrency,
        training=next((kind for kind in ("full", "lora", "fsdp") if kind == load.train), ""),
        assumptions=tuple(assumptions),
    )


def _model(choice: ModelChoice) -> tuple[LanguageModel, list[str]]:
    """The model, and what had to be assumed of it."""
    from msgspec import structs

    from shoal.data.language_models import find_language_model, language_models
    from shoal.store.model_files import CONFIG, read_language_model
    from shoal.units.errors import UserError, Where, excerpt
    from shoal.units.near_texts import meant_words

    if not choice.model:
        if choice.params is None:
            raise UserError("no model is given", fix="name a model or a folder, or give --params")
        like = min(language_models(), key=lambda model: abs(model.parameters - (choice.params or 0)))
        made = structs.replace(
            like, name=f"{choice.params / 1e9:g}B", parameters=int(choice.params), active_parameters=None, context=0
        )
        return made, [f"layers and heads are not given: those of {like.name}, the nearest in size"]
    path = Path(choice.model)
    model = find_language_model(choice.model)
    if model is None and (path.is_dir() or path.name == CONFIG or path.suffix == ".json"):
        model = read_language_model(path)
    if model is None:
        names = [model.name for model in language_models()]
        raise UserError(
            f"model {excerpt(choice.model)} is not known{meant_words(choice.model, names)}",
            where=Where(path="MODEL"),
            fix="name a folder with its config.json, or give --params",
        )
    if choice.params is not None:
        model = structs.replace(model, parameters=int(choice.params), active_parameters=None)
    return model, []


def _gpus(names: list[str] | None) -> list[Model]:
    from shoal.data.gpus import find_model, models, models_of_family
    from shoal.units.errors import UserError, Where, excerpt
    from shoal.units.near_texts import near_texts

    if not names:
        return [model for model in models() if model.vendor == "nvidia"]
    found: dict[str, Model] = {}
    for name in names:
        exact = find_model(name)
        meant = models_of_family(name) if exact is None else (exact,)
        if not meant:
            known = [m.name for m in models()]
            begun = [each for each in known if each.lower().startswith(name.lower())]
            near = begun or near_texts(name, known)
            words = f"; did you mean {', '.join(near)}?" if near else ""
            raise UserError(f"GPU {excerpt(name)} is not known{words}", where=Where(path="--gpu"))
        found |= {model.name: model for model in meant}
    return list(found.values())

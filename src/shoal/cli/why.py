"""Implements `shoal why`: explains one pod, gang, workload or job on one screen, for a live cluster or files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import subjects
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.list_options import AllNamespaces
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files, Namespace
from shoal.cli.option_groups import with_options
from shoal.cli.options import Policy, SchedulerConfigFile, Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shoal.cli.object_source import Source
    from shoal.client.http.access import Access
    from shoal.views.explanation import Explanation

_POLICY = "Shoal"
_MOST_S = 2.0
"""For finding what would help a workload."""


@dataclass(frozen=True, kw_only=True)
class WhyOptions:
    filename: Files = None
    nodes: Machines = None
    namespace: Namespace = ""
    output: TextOutput = TEXTS[0]
    policy: Policy = _POLICY
    scheduler_config: SchedulerConfigFile = None
    seed: Seed = 42
    all_namespaces: AllNamespaces = False


@with_options
def why(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="pod/x, pod x, job/x, workload/x, deployment/x, gang/x ...; or namespace/name, or a name alone.",
            autocompletion=subjects,
        ),
    ],
    options: WhyOptions,
    access: AccessOptions,
) -> None:
    """Tell why a pod, gang, workload or job waits, or where it went: what it asks, the nodes, what would help."""
    checked(options.output, TEXTS)
    name = one_name(what)
    from shoal.cli.addressed_commands import cluster_flags
    from shoal.cli.formats import console, write
    from shoal.cli.object_source import source_from
    from shoal.views.explanation import show_explanation

    source = source_from(options.filename, access, options.namespace, nodes=options.nodes, complains=False)
    flags = () if source.access is None else cluster_flags(access, source.access)
    explanation = explain(source, name, options, flags)
    if options.output != TEXTS[0]:
        from shoal.views.explanation_document import document_of

        write(document_of(explanation), options.output, source.cluster)
        return
    show_explanation(console(is_folded=True), explanation)


def explain(
    source: Source, name: str, options: WhyOptions, flags: Sequence[str], is_wanted: Callable[[], bool] = lambda: True
) -> Explanation:
    """Uses up what was loaded of the source. `flags`: those that make commands use its cluster. `is_wanted`: the search
    for what would help ends when it is no longer. Raises UserError for an object that does not exist."""
    from shoal.cli.addressed_commands import address_commands
    from shoal.cli.advice_events import show_advice
    from shoal.cli.explainer import Explainer
    from shoal.cli.explanation_text import tell_assumed_settings
    from shoal.cli.invalid_objects import explanation_of
    from shoal.cli.live_history import show_history
    from shoal.cli.manifests import loaded_of, warn
    from shoal.cli.named_nodes import no_nodes_warning
    from shoal.cli.preemption_options import rules_in_use, without_configuration
    from shoal.cli.progress import long_work, terminal_step
    from shoal.cli.related_warnings import related_warnings
    from shoal.cli.search_deadline import SearchDeadline
    from shoal.cli.why_node_pools import tell_node_pools
    from shoal.cli.why_replicas import tell_replicas
    from shoal.units.errors import UserError

    namespace = "" if options.all_namespaces else source.namespace
    is_only = bool(namespace and options.namespace)
    own = rules_in_use(source.documents)
    policy = own.policy if own is not None and options.policy == _POLICY else options.policy
    is_plain = policy == _POLICY and options.scheduler_config is None
    loaded = source.taken() if is_plain else loaded_of(source.documents, policy, options.scheduler_config)
    try:
        with long_work("looking for what would help", terminal_step):
            deadline = SearchDeadline(_MOST_S)
            explainer = Explainer(source.documents, loaded, options.seed, lambda: is_wanted() and deadline())
            explanation = explainer.about(name, namespace, is_only=is_only)
    except UserError:
        wrong = explanation_of(source.notes, name, namespace, is_only=is_only)
        if wrong is None and source.access is not None:
            wrong = _of_unread(name, namespace, source, source.access, is_only=is_only)
        if wrong is None:
            # Any of them may say why there is no such object.
            warn(loaded.warnings if source.access is None else ())
            raise
        explanation = wrong
    else:
        wrong = None
        tell_node_pools(explanation, source, loaded, explainer.family)
        tell_replicas(explanation, source.documents, explainer.family)
        if own is None and is_plain:
            tell_assumed_settings(explanation, source.documents, explainer.family.pods)
    if source.access is None:
        related = related_warnings(loaded, explainer.family)
        warn([*without_configuration(related, own), *no_nodes_warning(loaded)])
    else:
        if wrong is None:
            show_history(explanation, explainer.family, source.documents, source.access)
        show_advice(explanation, source.documents, source.access)
        address_commands(explanation, flags)
    return explanation


def one_name(words: Sequence[str]) -> str:
    """`TYPE/NAME`, for `TYPE NAME` as well."""
    from shoal.units.errors import UserError, Where

    if len(words) == 1:
        return words[0]
    kind, name = words[0], words[1]
    if len(words) > 2 or "/" in kind:
        fix = "one object is explained at a time: TYPE/NAME, or TYPE NAME"
        raise UserError(f"{len(words)} words are given", where=Where(path="NAME"), fix=fix)
    return f"{kind}/{name}"


def _of_unread(name: str, namespace: str, source: Source, access: Access, *, is_only: bool) -> Explanation | None:
    """None where the cluster has no such object either."""
    from shoal.cli.cluster_access import speak
    from shoal.cli.unread_objects import explain_unread, find_unread

    unread = speak(access, lambda api: find_unread(api, name, namespace, is_only=is_only)) if "/" in name else None
    return None if unread is None else explain_unread(unread, source.documents)

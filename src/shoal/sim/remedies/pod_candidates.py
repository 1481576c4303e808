"""Changes of what the pods themselves say: a label or a topology level that no node has, and tolerations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain

from msgspec import structs

from shoal.api.requirement import Requirement
from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask, counted
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import WholeGpus
from shoal.engine.groups import GroupFacts
from shoal.engine.node_rules import models_named
from shoal.engine.pod_rules import PodRules
from shoal.engine.repelling_taints import RepellingTaint, repelling_taints, tolerating
from shoal.engine.respelling import respelt_group, respelt_rule
from shoal.engine.unmatched import Unmatched, levels_of, unmatched, unmatched_levels
from shoal.sim.remedies.candidates import Candidate, WaitingSubject
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.trial import RemedyTrial
from shoal.store.mig_relabelling import SINGLE, has_profile, strategy_of
from shoal.views.remedies import Remedy, single_request_words, single_strategy_words, tolerance_words
from shoal.views.remedy_commands import FieldEdit, deletion_words, edit_commands, edit_words, toleration_commands

_MOST_TAINTS = 3


def unmet_labels(cluster: Cluster, subject: WaitingSubject) -> tuple[Unmatched, ...]:
    """Labels that the subject demands and that no node has."""
    found: dict[Unmatched, None] = {}
    for ask in dict.fromkeys(cluster.pending[pod].charge.ask for pod in subject.pods):
        found.update(dict.fromkeys(unmatched(cluster, ask.nodes)))
        found.update(dict.fromkeys(unmatched_levels(cluster, levels_of(ask.near))))
    gang = cluster.gangs.find(subject.name) if subject.is_gang else None
    if gang is not None and gang.facts is not None:
        found.update(dict.fromkeys(unmatched_levels(cluster, _levels(gang.facts))))
    return tuple(found)


def spellings(labels: Sequence[Unmatched]) -> Iterator[tuple[Unmatched, ...]]:
    """The labels with one near label each, the nearest first."""
    for at in range(max(len(label.near) for label in labels)):
        yield tuple(
            structs.replace(label, near=label.near[min(at, len(label.near) - 1) :][:1] if label.near else ())
            for label in labels
        )


def spelling(
    trial: RemedyTrial, subject: WaitingSubject, objects: Objects, labels: Sequence[Unmatched]
) -> Candidate | None:
    """Every such label replaced by the nearest that nodes have; None where one has no near one."""
    if not labels or not all(label.near for label in labels):
        return None
    alike: list[tuple[list[FieldEdit], list[str]]] = []
    for pod in subject.pods:
        edits = list(_edits(objects, pod, labels))
        pods = next((found for each, found in alike if each == edits), None)
        if pods is not None:
            pods.append(pod)
        elif edits:
            alike.append((edits, [pod]))
    if alike:
        # Pods of one template have the same edits, so the template is corrected once.
        steps = [(edits, objects.target(pods)) for edits, pods in alike]
        words = " ".join(edit_words(edits, target) for edits, target in steps)
        commands = [edit_commands(edits, target) if objects.is_living else () for edits, target in steps]
        # Some of the changes alone would not help.
        remedy = Remedy(words, tuple(chain.from_iterable(commands)) if all(commands) else ())
    else:
        changes = ", ".join(
            f"{label.near[0]} instead of {', '.join(label.values) if label.has_key else label.key}" for label in labels
        )
        remedy = Remedy(f"Ask for {changes}.")

    def apply(stack: ExitStack) -> None:
        trial.change_asks(stack, subject.pods, partial(respelt_ask, labels=labels), are_new=True)
        if subject.is_gang:
            trial.requeue_gang(stack, subject.name)
            trial.change_gang(stack, subject.name, partial(respelt_group, trial.cluster, labels=labels))

    return Candidate(remedy, apply, changes_pods=True)


def _edits(objects: Objects, pod: str, labels: Sequence[Unmatched]) -> Iterator[FieldEdit]:
    for label in labels:
        yield from objects.edits(pod, label.key, label.near[0], label.values if label.has_key else ())


def tolerations(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[Candidate]:
    cluster = trial.cluster
    for taint in repelling_taints(cluster, cluster.pending[subject.pods[0]].charge.ask)[:_MOST_TAINTS]:
        yield _toleration(trial, subject, objects, taint)


def _toleration(trial: RemedyTrial, subject: WaitingSubject, objects: Objects, found: RepellingTaint) -> Candidate:
    commands: tuple[str, ...] = ()
    target = objects.target(subject.pods)
    words = tolerance_words([found]) + deletion_words(target)
    # Their controller creates them again from the changed template.
    are_new = target.is_open
    if objects.is_living:
        template = objects.template_of(subject.pods[0])
        # In the open trial a first toleration may have been added already.
        has_list = {pod: trial.tolerates_more or objects.has_tolerations(pod) for pod in subject.pods}
        if target.is_template:
            # The API server adds tolerations to each pod that the template does not have.
            in_template = template is not None and bool(template.spec.tolerations)
            has_list[target.keys[0]] = in_template or trial.tolerates_more
        commands = toleration_commands(found.taints, target, has_list)
        if target.is_template and not target.is_open:
            words += f" Pods that {target.called()} creates later need it in its template."

    def apply(stack: ExitStack) -> None:
        trial.change_asks(stack, subject.pods, partial(tolerating, taints=found.taints), are_new=are_new)
        stack.callback(setattr, trial, "tolerates_more", trial.tolerates_more)
        trial.tolerates_more = True

    return Candidate(Remedy(words, commands), apply, changes_pods=True)


def strategy_single(cluster: Cluster, subject: WaitingSubject, objects: Objects) -> Iterator[str]:
    """Facts about nodes whose MIG instances do not have the name that the subject requests."""
    for profile, _ in profiles_of(cluster.pending[subject.pods[0]].charge.ask):
        nodes = [
            name
            for name, node in objects.nodes.items()
            if strategy_of(node) == SINGLE and has_profile(node, profile) and name in objects.node_facts
        ]
        if nodes:
            yield single_strategy_words(nodes, profile)


def requests_by_gpu(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[Candidate]:
    """The same instances by the name that they have under strategy single."""
    profiles = profiles_of(trial.cluster.pending[subject.pods[0]].charge.ask)
    if len(profiles) != 1:
        return
    profile, amount = profiles[0]
    products = {
        node.metadata.labels.get(PRODUCT_LABEL, "")
        for node in objects.nodes.values()
        if strategy_of(node) == SINGLE and has_profile(node, profile)
    }
    for product in sorted(each for each in products if read_product(each).mig_profile == profile):

        def apply(stack: ExitStack, product: str = product) -> None:
            trial.change_asks(stack, subject.pods, partial(_by_gpu, amount=amount, product=product), are_new=True)

        yield Candidate(Remedy(single_request_words(amount, profile, product)), apply, changes_pods=True)


def _by_gpu(ask: Ask, amount: int, product: str) -> Ask:
    requests = tuple(each for each in ask.requests if not each[0].startswith(RESOURCE_PREFIX))
    selector = Requirement(PRODUCT_LABEL, "In", (product,))
    nodes = structs.replace(ask.nodes, always=(*ask.nodes.always, selector))
    return structs.replace(ask, requests=requests, devices=WholeGpus(amount), nodes=nodes)


def profiles_of(ask: Ask) -> list[tuple[str, int]]:
    """The requested MIG profiles with their amounts."""
    return [
        (name.removeprefix(RESOURCE_PREFIX), amount)
        for name, amount in sorted(counted(ask).items())
        if name.startswith(RESOURCE_PREFIX)
    ]


def _levels(facts: GroupFacts) -> Iterator[str]:
    for wish in (facts.requirement, *(part.requirement for part in facts.parts)):
        yield from (level for level in (wish.required, wish.slice_level) if level)


def respelt_ask(ask: Ask, labels: Sequence[Unmatched]) -> Ask:
    for label in labels:
        near = ask.near if label.has_key else _near(ask.near, label.key, label.near[0])
        nodes = respelt_rule(ask.nodes, [label])
        # The models were read from the conditions, with the spelling that no node has.
        models = models_named(nodes) if ask.devices is not None else ask.gpu_models
        ask = structs.replace(ask, nodes=nodes, near=near, gpu_models=models)
    return ask


def _near(rules: PodRules, old: str, new: str) -> PodRules:
    affinity = tuple(structs.replace(term, key=new) if term.key == old else term for term in rules.affinity)
    spread = tuple(structs.replace(each, key=new) if each.key == old else each for each in rules.spread)
    return structs.replace(rules, affinity=affinity, spread=spread)

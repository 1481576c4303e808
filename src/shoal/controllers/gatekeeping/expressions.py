"""Builds the expressions of the admission policies: JSON patches in CEL, generated from the table of kinds.

Rejected: apply configurations instead of JSON patches. They cannot change atomic fields, such as a variable's field
reference, and need a schema for every kind.

An expression creates missing maps and lists before it writes below them. Every step is a list of operations, and the
lists are concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.controllers.gatekeeping.held_kinds import (
    DEFAULT_QUEUE,
    GATE,
    HOLDERS,
    MANAGED,
    PARENT,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    Keeper,
)
from shoal.controllers.gatekeeping.rendezvous import ASKS, VARIABLES

_MOST_CONTAINERS = 32
Path = tuple[str, ...]


def suspending(path: Path) -> str:
    *above, last = path
    return _sum(*_made_maps(tuple(above), from_depth=2), _added((*above, last), "true"))


def labelled_default() -> str:
    """Sets the queue named `default` on the object."""
    return _sum(*_made_maps(("metadata", "labels")), _added(("metadata", "labels", QUEUE_LABEL), f"'{DEFAULT_QUEUE}'"))


def gating() -> str:
    """Adds label, finalizer and gate to a pod."""
    return _sum(
        *_made_maps(("metadata", "labels")),
        _added(("metadata", "labels", MANAGED), "'true'"),
        _listed(("metadata", "finalizers"), f"'{MANAGED}'", f"f == '{MANAGED}'"),
        _listed(
            ("spec", "schedulingGates"),
            f"{{'name': '{GATE}'}}",
            f"f.name == '{GATE}'",
        ),
    )


def handing_down(keeper: Keeper, queue: str = "") -> str:
    """Copies the queue, and the priority if there is one, to the templates. `queue`: an expression; by default the
    object's label.
    """
    first, *others = keeper.templates
    own = f"object.metadata.labels['{QUEUE_LABEL}']"
    steps = [_template(first, keeper, queue or own)]
    steps += [f"({_has(path)} ? {_template(path, keeper, queue or own)} : [])" for path in others]
    return _sum(*steps)


def _template(path: Path, keeper: Keeper, queue: str) -> str:
    labels, notes = (*path, "metadata", "labels"), (*path, "metadata", "annotations")
    priority = _added((*labels, PRIORITY_LABEL), f"object.metadata.labels['{PRIORITY_LABEL}']")
    return (
        "("
        + _sum(
            *_made_maps(labels, from_depth=len(path) + 1),
            *_made_maps(notes, from_depth=len(notes)),
            _added((*labels, QUEUE_LABEL), queue),
            f"({_has_label(PRIORITY_LABEL)} ? {priority} : [])",
            _added((*notes, PARENT), f"'{keeper.kind.name.lower()}'"),
        )
        + ")"
    )


def rendezvous() -> str:
    """One operation for each container, with all its variables; the first one determines the type of the list."""
    asked = _pointer(("metadata", "annotations", ASKS))
    return _sum(
        f"[JSONPatch{{op: 'test', path: '{asked}', value: 'true'}}]",
        *(
            f"({_has(('spec', part))} ? {_places()}.filter(i, i < size(object.spec.{part})).map(i, "
            f"JSONPatch{{op: 'add', path: '/spec/{part}/' + string(i) + '/env', value: {_environment(part)}}}) : [])"
            for part in ("containers", "initContainers")
        ),
    )


_DEVICES = "shoal.dev/devices"
_FRACTIONS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")
_MIRROR = "kubernetes.io/config.mirror"
_MAY_BIND = (
    "authorizer.group('').resource('pods').subresource('binding')"
    ".namespace(object.metadata.namespace).check('create').allowed()"
)
_MAY_REPORT = (
    "authorizer.group('').resource('pods').subresource('devices')"
    ".namespace(object.metadata.namespace).check('update').allowed()"
)
_NODES_OF_AGENT = "request.userInfo.?extra.orValue({})[?'authentication.kubernetes.io/node-name'].orValue([])"
DEVICES_MESSAGE = f"metadata.annotations[{_DEVICES}]: only a client that may create pods/binding may set or change it"
FRACTION_MESSAGE = (
    f"metadata.annotations[{', '.join(_FRACTIONS)}]: only a client that may create pods/binding may use them "
    "with spec.nodeName, or change them after the pod was created"
)


def _annotation(obj: str, name: str) -> str:
    return f"(has({obj}.metadata.annotations) ? {obj}.metadata.annotations[?'{name}'].orValue('') : '')"


def changes_annotations() -> str:
    """Whether a write changes annotations. Most updates of pods, such as those of the status, do not, and skip all
    other expressions. A creation sets all annotations.
    """
    after, before = (f"{obj}.metadata.?annotations.orValue({{}})" for obj in ("object", "oldObject"))
    return f"oldObject == null || {after} != {before}"


def speaks_of_devices() -> str:
    """Whether the pod has device annotations before or after the write."""
    names = (_DEVICES, *_FRACTIONS)
    after = " || ".join(f"{_annotation('object', name)} != ''" for name in names)
    before = " || ".join(f"{_annotation('oldObject', name)} != ''" for name in names)
    return f"({after}) || (oldObject != null && ({before}))"


def _unchanged(*names: str) -> str:
    return " && ".join(f"{_annotation('object', name)} == {_annotation('oldObject', name)}" for name in names)


def _is_trusted_maker() -> str:
    # A controller creates pods from a template, which any user may write.
    return f"(!has(object.metadata.ownerReferences) && {_MAY_BIND}) || ({is_own_mirror_pod()})"


def is_own_mirror_pod() -> str:
    """A kubelet creates a mirror pod of its node. Any user may write the annotation; only a kubelet has this name."""
    node = "object.spec.?nodeName.orValue('')"
    user = f"request.userInfo.username == 'system:node:' + {node} && 'system:nodes' in request.userInfo.groups"
    return f"{_annotation('object', _MIRROR)} != '' && {node} != '' && {user}"


def leaves_devices_alone() -> str:
    made = f"{_annotation('object', _DEVICES)} == '' || ({_is_trusted_maker()})"
    return f"oldObject == null ? ({made}) : ({_unchanged(_DEVICES)} || {_MAY_BIND} || ({_is_report_of_its_node()}))"


def _is_report_of_its_node() -> str:
    """An agent writes the devices that its kubelet has allocated. Its token names its node, if the server does so."""
    node = "object.spec.?nodeName.orValue('')"
    return f"{node} != '' && {_NODES_OF_AGENT}.all(name, name == {node}) && {_MAY_REPORT}"


def asks_before_it_is_bound() -> str:
    asks = " || ".join(f"{_annotation('object', name)} != ''" for name in _FRACTIONS)
    made = f"!({asks}) || object.spec.?nodeName.orValue('') == '' || ({_is_trusted_maker()})"
    return f"oldObject == null ? ({made}) : (({_unchanged(*_FRACTIONS)}) || {_MAY_BIND})"


def asks_rendezvous() -> str:
    return f"has(object.metadata.annotations) && object.metadata.annotations[?'{ASKS}'].orValue('') == 'true'"


def _places() -> str:
    return f"[{', '.join(map(str, range(_MOST_CONTAINERS)))}]"


def _environment(part: str) -> str:
    present = f"object.spec.{part}[i]"
    steps = []
    for name, annotation in VARIABLES.items():
        reference = f"{{'fieldRef': {{'fieldPath': \"metadata.annotations['{annotation}']\"}}}}"
        # Values of a map have one type in CEL, unless they are declared as dyn.
        made = f"[dyn({{'name': dyn('{name}'), 'valueFrom': dyn({reference})}})]"
        steps.append(f"(has({present}.env) && {present}.env.exists(e, e.name == '{name}') ? [] : {made})")
    return _sum(*steps, f"(has({present}.env) ? {present}.env : [])")


# -- conditions --------------------------------------------------------------------------------------------------------


def asks_for_queue() -> str:
    return f"{_has_label(QUEUE_LABEL)} && object.metadata.labels['{QUEUE_LABEL}'] != ''"


def runs(path: Path) -> str:
    """Whether the job with its `suspend` field at this path runs."""
    return f"!({_has(path)} && object.{'.'.join(path)})"


def keeps_queue() -> str:
    """Whether an update keeps the queue."""
    before, now = (f"{one}.metadata.?labels[?'{QUEUE_LABEL}'].orValue('')" for one in ("oldObject", "object"))
    return f"{now} == {before}"


def asks_for_no_queue() -> str:
    return f"!({_has_label(QUEUE_LABEL)})"


def is_nobodys() -> str:
    """Whether the object has no controller."""
    return _no_owner("o.?controller.orValue(false)")


def is_no_child() -> str:
    """Whether the object has no controller that is itself held."""
    kinds = ", ".join(f"'{group}/{name}'" for group, name in HOLDERS)
    owner = "o.apiVersion.split('/')[0] + '/' + o.kind"
    return _no_owner(f"o.?controller.orValue(false) && ({owner}) in [{kinds}]")


def _no_owner(which: str) -> str:
    return f"!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, {which})"


def is_held_by_parent() -> str:
    return f"has(object.metadata.annotations) && '{PARENT}' in object.metadata.annotations"


def is_unbound() -> str:
    return "object.spec.?nodeName.orValue('') == ''"


def has_spec() -> str:
    return "has(object.spec)"


# -- parts of expressions
# ------------------------------------------------------------------------------------------------------------


def _sum(*steps: str) -> str:
    return " + ".join(steps)


def _pointer(path: Sequence[str]) -> str:
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)


def _has(path: Path) -> str:
    """Checks every optional field on the path. Metadata and spec always exist."""
    return " && ".join(f"has(object.{'.'.join(path[:depth])})" for depth in range(2, len(path) + 1))


def _has_label(name: str) -> str:
    return f"has(object.metadata.labels) && '{name}' in object.metadata.labels"


def _made_maps(path: Path, from_depth: int = 2) -> list[str]:
    """Operations that create the maps at and above `path`, from that depth on."""
    return [
        f"(!({_has(path[:depth])}) ? {_added(path[:depth], '{}')} : [])" for depth in range(from_depth, len(path) + 1)
    ]


def _added(path: Sequence[str], value: str) -> str:
    return f"[JSONPatch{{op: 'add', path: '{_pointer(path)}', value: {value}}}]"


def _listed(path: Path, value: str, is_there: str) -> str:
    """Append a value to a list that lacks it."""
    place = f"object.{'.'.join(path)}"
    appended = _added((*path, "-"), value)
    return f"(!has({place}) ? {_added(path, f'[{value}]')} : {place}.exists(f, {is_there}) ? [] : {appended})"

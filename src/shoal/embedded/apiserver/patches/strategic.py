"""Strategic merge patch: a merge patch that knows which lists are keyed and by what.

Lists with the patch strategy `merge` are merged item by item (by their merge key) or, of plain values, united; others
are replaced. Directives say what plain data cannot: `$patch: replace|delete`, `$retainKeys`,
`$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`.

Own code: no library knows the directives. The steps are Kubernetes' own, in its order, because the order of merged
lists comes out of them. What a patch does not touch is not copied: most patches name three fields of a pod that has two
hundred. The functions below may change the patch they are handed; `strategic_merge` hands them a copy.

In a merged list, items that the patch (or its order directive) names have the order of the patch. Items that only the
server has keep their order, before the first named item that they preceded. New items come first, as in Kubernetes.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.patches.refusals import (
    bad_directive,
    go_text,
    go_type,
    lists_of_lists,
    no_merge_key,
    unexpected,
    unknown_directive,
    wrong_json,
)
from shoal.embedded.apiserver.schema.node import ANY, Schema

Obj = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategic_merge(obj: Obj, patch: Any, schema: Schema) -> Obj:
    """The patched object, which shares with the object what is the same in both; neither argument is changed."""
    if patch is None:
        return obj
    if not isinstance(patch, dict):
        raise wrong_json(patch, "map[string]interface {}")
    return _merge_map(obj, copied(patch), schema)


def _merge_map(original: Obj, patch: Obj, schema: Schema) -> Obj:
    if DIRECTIVE in patch:
        return _directed(patch)
    original = {**original}
    _retain_keys(original, patch)
    _set_orders(original, patch, schema)
    for key, value in patch.items():
        name, is_deletion = key, key.startswith(DELETE_FROM)
        if is_deletion:
            name = key.removeprefix(DELETE_FROM)
        if value is None:
            original.pop(name, None)
        elif name not in original or not _alike(original[name], value):
            if not is_deletion:
                original[name] = _taken(value)
        elif isinstance(value, dict):
            original[name] = _merge_map(original[name], value, _shape(schema, name))
        elif isinstance(value, list):
            original[name] = _merge_list(original[name], value, _shape(schema, name), is_deletion=is_deletion)
        else:
            original[name] = value
    return original


def _directed(patch: Obj) -> Obj:
    directive = patch.pop(DIRECTIVE)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    raise unknown_directive(directive, {DIRECTIVE: directive, **patch})


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return type(left) is type(right)
    return True


def _shape(schema: Schema, name: str) -> Schema:
    return schema.properties.get(name) or schema.values or ANY


def _retain_keys(original: Obj, patch: Obj) -> None:
    if RETAIN not in patch:
        return
    kept = patch.pop(RETAIN)
    if not isinstance(kept, list):
        raise bad_directive("retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, ORDER)) and key not in kept:
            raise bad_directive("retainKeys")
    for key in [key for key in original if key not in kept]:
        del original[key]


def _taken(value: Any) -> Any:
    """What a patch brings where nothing is yet: without nulls and directives."""
    if isinstance(value, list):
        return [_taken(one) for one in value if not (isinstance(one, dict) and one.get(DIRECTIVE) is not None)]
    if not isinstance(value, dict):
        return value
    return {
        key: _taken(below)
        for key, below in value.items()
        if below is not None and key not in (DIRECTIVE, RETAIN) and not key.startswith((DELETE_FROM, ORDER))
    }


def _merge_list(original: list[Any], patch: list[Any], shape: Schema, *, is_deletion: bool = False) -> list[Any]:
    if not is_deletion and "merge" not in shape.patch_strategies:
        return patch
    if not original and not patch:
        return original
    if _item_kind(original, patch) is not dict:
        if is_deletion:
            return [one for one in original if one not in patch]
        merged = list(dict.fromkeys([*original, *patch]))
        return in_order(*split_by_presence(merged, patch, ""), patch, original, "")
    key = shape.merge_key
    if not key:
        raise unexpected(f"cannot merge lists without merge key for {shape.name}")
    before, additions = _specials(original, patch, key)
    merged = _merge_items([*before], additions, key, shape.items or ANY)
    return in_order(*split_by_presence(merged, additions, key), additions, before, key)


def _item_kind(*lists: list[Any]) -> type:
    kinds = {dict if isinstance(one, dict) else type(one) for items in lists for one in items}
    if list in kinds:
        raise lists_of_lists()
    if len(kinds) > 1 and dict in kinds:
        raise unexpected("list element types are not identical")
    return dict if dict in kinds else str


def _specials(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The original without the items that the patch deletes, and the patch without items that are directives."""
    additions: list[Any] = []
    replaces = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            additions.append(item)
        elif directive == "delete":
            if key not in item:
                raise no_merge_key(item, key)
            original = [one for one in original if _key_of(one, key) != item[key]]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise unexpected("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(directive, item)
    return ([], additions) if replaces else (original, additions)


def _key_of(item: Obj, key: str) -> Any:
    if key not in item:
        raise no_merge_key(item, key)
    return item[key]


def _merge_items(merged: list[Any], additions: list[Any], key: str, shape: Schema) -> list[Any]:
    for item in additions:
        wanted = _key_of(item, key)
        place = next((at for at, one in enumerate(merged) if _key_of(one, key) == wanted), None)
        if place is None:
            merged.append(_taken(item))
        else:
            merged[place] = _merge_map(merged[place], item, shape)
    return merged


def _set_orders(original: Obj, patch: Obj, schema: Schema) -> None:
    """Lists with an order directive are merged here, and taken out of the patch."""
    for directive in [key for key in patch if key.startswith(ORDER)]:
        order, name = patch.pop(directive), directive.removeprefix(ORDER)
        before, given = original.get(name), patch.pop(name, None)
        for one in (order, before, given):
            if one is not None and not isinstance(one, list):
                raise unexpected(f"expected a []interface {{}}, but received a {go_type(one)}")
        shape = _shape(schema, name)
        _check_order(given or [], order or [], shape.merge_key)
        if before is None and given is None:
            continue
        if before is None or given is None:
            merged: list[Any] = _taken(given) if before is None else before
        else:
            merged = _merge_list(before, given, shape)
        parts = split_by_presence(merged, order or [], shape.merge_key)
        original[name] = in_order(*parts, order or [], before or [], shape.merge_key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The order list must contain the items of a patch, in the same order."""
    if not order:
        return
    wanted = [one for one in patch if not (isinstance(one, dict) and DIRECTIVE in one)]
    left = iter([_plain(one, key) for one in order])
    for item in wanted:
        if not any(one == _plain(item, key) for one in left):
            raise unexpected(
                f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
            )


def _plain(item: Any, key: str) -> Any:
    return _key_of(item, key) if key and isinstance(item, dict) else item


def key_of(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def split_by_presence(items: list[Any], named: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The items that `named` has, and the others."""
    names = [key_of(one, key) for one in named]
    inside = [one for one in items if key_of(one, key) in names]
    return inside, [one for one in items if key_of(one, key) not in names]


def in_order(
    named: list[Any], others: list[Any], patch_order: list[Any], server_order: list[Any], key: str
) -> list[Any]:
    ahead = _sorted(named, patch_order, key)
    rest = _sorted(others, server_order, key)
    places = [key_of(one, key) for one in server_order]
    merged: list[Any] = []
    while ahead and rest:
        mine, theirs = key_of(rest[0], key), key_of(ahead[0], key)
        is_before = mine in places and theirs in places and places.index(mine) < places.index(theirs)
        merged.append((rest if is_before else ahead).pop(0))
    return [*merged, *ahead, *rest]


def _sorted(items: list[Any], order: list[Any], key: str) -> list[Any]:
    places = [key_of(one, key) for one in order]
    return sorted(items, key=lambda one: places.index(key_of(one, key)) if key_of(one, key) in places else len(places))

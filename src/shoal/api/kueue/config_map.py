"""Kueue's configuration as most clusters keep it: as text inside a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.decode import Document, Unknown, read
from shoal.api.kueue.configuration import Configuration
from shoal.units.errors import UserError

_GROUP = "config.kueue.x-k8s.io/"


def unwrapped(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents, and after a ConfigMap the configuration it carries, with the place inside it."""
    for document in documents:
        yield document
        value = document.value
        if isinstance(value, Unknown) and value.kind == "ConfigMap":
            yield from _inside(document, value)


def _inside(document: Document, config_map: Unknown) -> Iterator[Document]:
    data = config_map.raw.get("data")
    for key, text in data.items() if isinstance(data, dict) else ():
        if not isinstance(text, str) or _GROUP not in text:
            continue
        where = document.where.below("data").key(key)
        try:
            found = read(text)
        except UserError as error:
            what = f"{error.where.path}: {error.what}" if error.where.path else error.what
            raise UserError(what, where=where, fix=error.fix) from error
        yield from (Document(one.value, where) for one in found if isinstance(one.value, Configuration))

"""The protocol of admission plugins, and their refusals.

A plugin looks at one write and changes it (`mutate`) or refuses it (`validate`); both may refuse. Plugins are plain,
synchronous and quick: they see other objects through a `Reader` only. `wants` is asked once per kind of request and
its answer is kept by the chain, so it must depend on its arguments alone.

Rejected: plugins that register for (group, plural) pairs. Namespace lifecycle wants everything with a namespace, and
a question is shorter than a pattern language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.embedded.apiserver import status

if TYPE_CHECKING:
    from shoal.embedded.apiserver.calls import AdmissionAttributes
    from shoal.embedded.apiserver.reading import Obj
    from shoal.embedded.apiserver.resource import Resource

POD = ("", "pods")


class AdmissionPlugin:
    """A plugin that does nothing; base of all."""

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:  # noqa: ARG002 - for others to override
        return False

    def mutate(self, admission: AdmissionAttributes) -> None:
        """Change the object in place, or refuse it."""

    def validate(self, admission: AdmissionAttributes) -> None:
        """Refuse what the object became after all changes."""


def forbid(admission: AdmissionAttributes, why: str) -> status.ApiError:
    """The refusal of a plugin. An object without a name yet is identified by its prefix."""
    resource = admission.call.resource
    name = admission.name
    if not name and admission.obj is not None:
        metadata = admission.obj.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName") or ""
    return status.forbidden(resource.plural, resource.group, name or "Unknown", why)


def spec_of(obj: Obj) -> Obj:
    """The spec to change. It may be missing: what must be there is checked only after the changes."""
    found: Obj = obj.setdefault("spec", {})
    return found

"""Lists the resources that are served: built-in ones always, custom ones while their definitions are established.

Discovery, OpenAPI, RBAC, admission and every request look resources up here. `stamp` grows with every change, so that
documents made from the catalog are good while it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.embedded.apiserver.resource import Home, Resource


class ResourceCatalog:
    def __init__(self, builtin: Iterable[Resource]) -> None:
        self.stamp = 1
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        self._stored: dict[Home, Resource] = {}
        self._custom: dict[Home, tuple[Resource, ...]] = {}
        self._settled: dict[Home, int] = {}
        self._preferences: dict[str, list[str]] = {}
        for resource in builtin:
            self._serve(resource)
        self._builtin_groups = frozenset(self._preferences)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def builtin(self, home: Home) -> Resource:
        """A resource that is always served, as it is stored."""
        return self._stored[home]

    def is_builtin(self, group: str) -> bool:
        return group in self._builtin_groups

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return self._by_kind.get((group, version, kind))

    def stored(self, home: Home) -> Resource | None:
        """The resource in the version in which its objects are kept."""
        return self._stored.get(home)

    def all(self) -> Iterable[Resource]:
        return self._served.values()

    def versions(self, group: str) -> Sequence[str]:
        """The served versions of a group, the preferred one first."""
        return self._preferences.get(group, [])

    def preferred(self, group: str) -> str:
        found = self.versions(group)
        return found[0] if found else ""

    def groups(self) -> Sequence[str]:
        return list(self._preferences)

    def settled(self, home: Home) -> int:
        """The revision at which the definition of a custom resource last changed."""
        return self._settled.get(home, 0)

    def put_custom(self, served: Sequence[Resource], stored: Resource, revision: int = 0) -> None:
        """Serve the versions of one custom resource, in place of what was served of it before."""
        home = stored.home
        self._settled[home] = revision
        self._withdraw(home)
        self._custom[home] = tuple(served)
        for resource in served:
            self._serve(resource)
        self._stored[home] = stored
        self.stamp += 1

    def drop_custom(self, home: Home) -> None:
        if home in self._custom:
            self._withdraw(home)
            self.stamp += 1

    def _serve(self, resource: Resource) -> None:
        self._served[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.group, resource.version, resource.kind] = resource
        if resource.version == resource.storage_version and resource.home == (resource.group, resource.plural):
            self._stored[resource.home] = resource
        versions = self._preferences.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
            versions.sort(key=_age_of_version)

    def _withdraw(self, home: Home) -> None:
        for resource in self._custom.pop(home, ()):
            self._served.pop((resource.group, resource.version, resource.plural), None)
            self._by_kind.pop((resource.group, resource.version, resource.kind), None)
        self._stored.pop(home, None)
        left = {resource.version for resource in self._served.values() if resource.group == home.group}
        versions = [version for version in self._preferences.get(home.group, ()) if version in left]
        if versions:
            self._preferences[home.group] = versions
        else:
            self._preferences.pop(home.group, None)


def _age_of_version(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2 before v1 before v2beta1 before v1alpha1 before anything else."""
    import re

    found = re.fullmatch(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", version)
    if found is None:
        return (3, 0, 0, version)
    context = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (context, -int(found[1]), -int(found[3] or 0), version)

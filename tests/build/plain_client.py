"""Reads and writes objects by HTTP, for what tests of kubectl do beside the commands that they test.

A kubectl process costs 45 ms of a processor, a request 3. `read` returns what `kubectl get -o json` prints. Names of
kinds are resolved as kubectl does it, by the server's discovery: plural, singular, short name, in the order of the
groups. Arguments that are not understood here are left to kubectl (`read` returns None).
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from build.cluster_api import credentials

Obj = dict[str, Any]
_TIMEOUT_S = 60.0
_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ServedKind(msgspec.Struct, frozen=True):
    group: str
    version: str
    plural: str
    singular: str
    short: tuple[str, ...]
    is_namespaced: bool

    def is_called(self, name: str) -> bool:
        """Whether the name is `plural`, `plural.group` or `plural.version.group`, or another name of the kind."""
        if name in (self.plural, self.singular, *self.short):
            return True
        plural, _, home = name.partition(".")
        return plural in (self.plural, self.singular) and home in (self.group, f"{self.version}.{self.group}")

    def path(self, namespace: str, name: str) -> str:
        start = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{start}{inside}/{self.plural}" + (f"/{name}" if name else "")


class PlainClient:
    """The user of one kubeconfig, with a connection for each request."""

    def __init__(self, text: str, kubeconfig: Path) -> None:
        self.text = text
        """The kubeconfig's content: a server that starts again may write another one."""
        url, self._tls, self._headers = credentials(kubeconfig, with_user=True)
        self._place = urlsplit(url).netloc
        self._kinds: list[ServedKind] = []

    def read(self, namespace: str, *what: str) -> Obj | None:
        """None if kubectl has to be asked. Raises AssertionError if the server answers no object."""
        names = [one for one in what if not one.startswith("-")]
        flags = [one.split("=", 1) for one in what if one.startswith("-")]
        query: dict[str, str] = {}
        for flag, *value in flags:
            if flag in ("--selector", "--field-selector") and value:
                query["labelSelector" if flag == "--selector" else "fieldSelector"] = value[0]
            elif flag == "--all-namespaces" and not value:
                namespace = ""
            else:
                return None
        if len(names) == 1 and names[0].count("/") == 1:
            names = names[0].split("/")
        if not 1 <= len(names) <= 2 or any("," in one or "/" in one for one in names):
            return None
        kind = self._kind(names[0].lower())
        if kind is None:
            return None
        found = self.ask("GET", kind.path(namespace, "".join(names[1:])) + (f"?{urlencode(query)}" if query else ""))
        if len(names) == 2:
            return _without_managers(found)
        shared = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        items = [_without_managers({**shared, **one}) for one in found["items"]]
        return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}

    def _kind(self, name: str) -> ServedKind | None:
        for _ in range(2):
            for kind in self._kinds:
                if kind.is_called(name):
                    return kind
            # A definition may have come since.
            self._kinds = [*self._discovered("/api"), *self._discovered("/apis")]
        return None

    def _discovered(self, path: str) -> list[ServedKind]:
        return [
            ServedKind(
                group["metadata"].get("name", ""),
                version["version"],
                one["resource"],
                one.get("singularResource") or one["responseKind"]["kind"].lower(),
                tuple(one.get("shortNames") or ()),
                one["scope"] == "Namespaced",
            )
            for group in self.ask("GET", path, accept=_DISCOVERY)["items"]
            for version in group["versions"]
            for one in version.get("resources") or ()
        ]

    def ask(self, method: str, path: str, body: Obj | None = None, *, accept: str = _JSON, media: str = _JSON) -> Obj:
        """The object of the answer. Raises AssertionError if it is a refusal, or if there is none."""
        connection = http.client.HTTPSConnection(self._place, timeout=_TIMEOUT_S, context=self._tls)
        headers = {**self._headers, "Accept": accept, "Content-Type": media}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            raw = answer.read()
        except (OSError, ssl.SSLError, http.client.HTTPException) as error:
            raise AssertionError(f"{method} {path}: {error}") from error
        finally:
            connection.close()
        assert answer.status < 300, f"{method} {path}: {answer.status} {raw[:2000].decode()}"
        found: Obj = json.loads(raw)
        return found

    def patch(self, path: str, body: Obj) -> Obj:
        """A merge patch."""
        return self.ask("PATCH", path, body, media=_MERGE)

    def create_namespace(self, name: str) -> None:
        self.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def has_account(self, namespace: str) -> bool:
        """Whether a controller has created the ServiceAccount without which no pod is accepted."""
        accounts: Obj = self.ask("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")
        return any(one["metadata"]["name"] == "default" for one in accounts["items"])

    def delete_namespace(self, name: str) -> None:
        """Does not wait until it is deleted."""
        self.ask("DELETE", f"/api/v1/namespaces/{name}")


_clients: dict[Path, PlainClient] = {}


def client_of(kubeconfig: Path) -> PlainClient:
    text = kubeconfig.read_text()
    known = _clients.get(kubeconfig)
    if known is None or known.text != text:
        known = _clients[kubeconfig] = PlainClient(text, kubeconfig)
    return known


def _without_managers(obj: Obj) -> Obj:
    obj["metadata"].pop("managedFields", None)
    return obj

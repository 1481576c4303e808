"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import yaml

from shoal.embedded.apiserver.schema.kubernetes import Shapes
from tools.differences import allowed, fuzzing, scenarios
from tools.differences.comparing import RANKS, Difference, differences
from tools.differences.fuzzing import Base
from tools.differences.sending import Request, Server, send_both

OBJECTS = Path(__file__).parent / "objects.yaml"
_WIDTH = 200


class Group(msgspec.Struct):
    """Differences of one signature."""

    example: Difference
    reason: str
    count: int = 0
    labels: list[str] = msgspec.field(default_factory=list)
    """What was sent, of the first few."""


class Table:
    """What the run has found so far."""

    def __init__(self, known: list[allowed.Allowed]) -> None:
        self._known = known
        self.groups: dict[str, Group] = {}
        self.sent = 0
        self.differing = 0

    def add(self, label: str, found: list[Difference]) -> None:
        self.sent += 1
        self.differing += bool(found)
        for one in found:
            signature = one.signature
            group = self.groups.setdefault(signature, Group(one, allowed.reason_for(signature, self._known)))
            group.count += 1
            if len(group.labels) < 3:
                group.labels.append(label)

    @property
    def ordered(self) -> list[tuple[str, Group]]:
        return sorted(self.groups.items(), key=lambda one: (bool(one[1].reason), one[1].example.rank, -one[1].count))

    @property
    def is_clean(self) -> bool:
        return all(group.reason for group in self.groups.values())


class Run:
    """Both servers, and the namespaces that this run has made on them."""

    def __init__(self, left: Server, right: Server, table: Table) -> None:
        self._left = left
        self._right = right
        self._table = table
        self._name = f"differences-{secrets.token_hex(3)}"

    async def compare(self, label: str, request: Request) -> None:
        self._table.add(label, differences(*await send_both(self._left, self._right, request)))

    async def fuzz(self, seeds: Sequence[int], count: int) -> None:
        found = fuzzing.bases(yaml.safe_load(OBJECTS.read_text()), self._name)
        await self._make_namespace(self._name)
        for base in found:
            await self.compare(f"create {base.object['kind']}", Request("POST", base.path, base.object))
        shapes = Shapes()
        for seed in seeds:
            for mutation in fuzzing.mutations(found, seed, count, shapes):
                await self.compare(mutation.label, mutation.request)
        await self._remove(Request("DELETE", base.at) for base in found if "/namespaces/" not in base.path)
        await self._remove([_patched(base) for base in found if base.object["metadata"].get("finalizers")])
        await self._remove([Request("DELETE", f"/api/v1/namespaces/{self._name}")])

    async def play(self, only: str) -> None:
        for number, scenario in enumerate(scenarios.read()):
            if only not in scenario.name:
                continue
            namespace = f"{self._name}-{number}"
            objects = fuzzing.bases(yaml.safe_load(OBJECTS.read_text()), namespace)
            await self._make_namespace(namespace)
            for request in scenarios.requests(scenario, namespace, objects):
                await self.compare(f"{scenario.name}: {request.method} {request.path}", request)
            await self._remove(scenarios.request(step, namespace, objects) for step in scenario.cleanup)
            await self._remove([Request("DELETE", f"/api/v1/namespaces/{namespace}")])

    async def _make_namespace(self, name: str) -> None:
        """With its ServiceAccount, because a server without controllers makes none and then takes no pods."""
        for path, kind, named in (("", "Namespace", name), (f"/{name}/serviceaccounts", "ServiceAccount", "default")):
            made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": named}}
            await send_both(self._left, self._right, Request("POST", f"/api/v1/namespaces{path}", made))

    async def _remove(self, requests: Iterable[Request]) -> None:
        for request in requests:
            await send_both(self._left, self._right, request)


def _patched(base: Base) -> Request:
    return Request("PATCH", base.at, {"metadata": {"finalizers": None}}, "merge")


async def run(options: argparse.Namespace) -> Table:
    table = Table(allowed.read(options.allowed))
    async with Server.open(options.left) as left, Server.open(options.right) as right:
        both = Run(left, right, table)
        if options.count:
            await both.fuzz(options.seed, options.count)
        if not options.no_scenarios:
            await both.play(options.scenario)
    return table


def show(table: Table) -> None:
    for signature, group in table.ordered:
        example = group.example
        print(f"{group.count:5d}  {RANKS[example.rank]:5s} {example.where}{'  (allowed)' if group.reason else ''}")
        if group.reason:
            print(f"         {group.reason}")
            continue
        print(f"         left:  {example.left[:_WIDTH]}")
        print(f"         right: {example.right[:_WIDTH]}")
        print(f"         {group.labels[0][:_WIDTH]}")
        assert signature
    open_ones = [group for group in table.groups.values() if not group.reason]
    print(
        f"{table.sent} requests, {table.differing} with differences, {len(open_ones)} signatures to explain:", end=" "
    )
    counts = {name: sum(group.example.rank == rank for group in open_ones) for rank, name in enumerate(RANKS)}
    print(", ".join(f"{number} {name}" for name, number in counts.items()))


def _as_json(table: Table) -> str:
    listed = [
        {"signature": signature, **msgspec.to_builtins(group), "rank": RANKS[group.example.rank]}
        for signature, group in table.ordered
    ]
    return json.dumps({"sent": table.sent, "differing": table.differing, "groups": listed}, indent=1)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.differences", description="Compare two API servers.")
    parser.add_argument("--left", type=Path, required=True, metavar="KUBECONFIG", help="the server to measure against")
    parser.add_argument("--right", type=Path, required=True, metavar="KUBECONFIG", help="the server under test")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="seeds of the mutations (default: 1)")
    parser.add_argument("--count", type=int, default=500, help="mutations for each seed (default: 500; 0 for none)")
    parser.add_argument("--scenario", default="", metavar="WORDS", help="only scenarios with these words in their name")
    parser.add_argument("--no-scenarios", action="store_true", help="mutations only")
    parser.add_argument("--allowed", type=Path, default=allowed.FILE, help="differences that are known and meant")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every group with its requests")
    options = parser.parse_args(arguments)
    table = asyncio.run(run(options))
    show(table)
    if options.json:
        options.json.write_text(_as_json(table))
    return 0 if table.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())

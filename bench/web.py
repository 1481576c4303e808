"""What the web dashboard costs with 1,000 nodes of 8 GPUs: `python -m bench.web`, with `src` and `tests` on PYTHONPATH.

A real Chromium opens the page of the fleet on a loopback server. Prints the time to the first paint, the time of an
update in the browser, the memory of the page, and the computing time of the server, each beside its bar. The facts are
those of generated pods and nodes; no API server takes part.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from build.browser import BrowserPage, browser
from build.web_sites import KnownReports, StateFacts, served
from shoal.client.clock import WallClock
from shoal.views.dashboard.facts import DashboardNode, DashboardPod, Slot
from shoal.web.page import Frame, document
from shoal.web.site import Site

_NODES, _GPUS, _TEAMS, _UPDATES, _CHANGED = 1_000, 8, 9, 20, 20
_PAINT_MS, _UPDATE_MS, _HEAP_MB, _RENDER_MS = 1_000, 100, 60, 100
_SLICES = 7


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mig", action="store_true", help="every GPU has seven MIG instances")
    chosen = parser.parse_args(arguments)
    if shutil.which("chromium") is None:
        print("  not measured: chromium is not installed")
        return 0
    asyncio.run(_measure(has_mig=chosen.mig))
    return 0


async def _measure(*, has_mig: bool) -> None:
    facts = StateFacts()
    _fill(facts, has_mig=has_mig)
    with tempfile.TemporaryDirectory() as profile:
        async with served(facts) as (url, _), browser(Path(profile)) as new_tab:
            paints = []
            for _ in range(5):
                tab = await new_tab()
                await tab.resize(1400)
                await tab.open(url)
                await tab.until("performance.getEntriesByName('first-contentful-paint').length")
                paints.append(await tab.run("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            _say("first paint, median and slowest of 5", f"{median(paints):.0f}, {max(paints):.0f} ms", _PAINT_MS, "ms")
            tiles = await tab.run("document.querySelectorAll('.tile').length")
            _say("tiles", f"{tiles:,}", _NODES, "")
            updates = await _updates(tab, facts)
            words = f"update of {_CHANGED} nodes with layout and paint, median and slowest of {_UPDATES}"
            _say(words, f"{median(updates):.0f}, {max(updates):.0f} ms", _UPDATE_MS, "ms")
            await tab.call("HeapProfiler.collectGarbage")
            found = await tab.call("Runtime.getHeapUsage")
            scripts, elements = found["usedSize"] / 1e6, found.get("embedderHeapUsedSize", 0) / 1e6
            words = f"{scripts:.1f} + {elements:.1f} MB"
            _say("heap of the page after that: of scripts, and of elements", words, _HEAP_MB, "MB")
            assert not tab.faults, tab.faults
    await _server_cost(facts)


async def _updates(tab: BrowserPage, facts: StateFacts) -> list[float]:
    """From the message of the server until the next frame is painted."""
    await tab.run(
        "window.times = []; const parse = JSON.parse; JSON.parse = text => { const began = performance.now();"
        " requestAnimationFrame(() => setTimeout(() => window.times.push(performance.now() - began)));"
        " return parse(text); }"
    )
    for number in range(_UPDATES):
        for node in range(_CHANGED):
            name = f"node-{(number * _CHANGED + node) % _NODES}"
            facts.state.put_pod(_pod(f"x-{number}-{node}", name, 1))
        await tab.until(f"window.times.length > {number}")
    found: list[float] = await tab.run("window.times")
    return found


async def _server_cost(facts: StateFacts) -> None:
    site = Site(facts, KnownReports(), None, WallClock())
    began = process_time()
    page = await site.page("/", {}, "")
    first = process_time() - began
    size = len(document(page, Frame("Shoal")))
    facts.state.put_pod(_pod("again", "node-0", 1))
    began, wall = process_time(), perf_counter()
    document(await site.page("/", {}, ""), Frame("Shoal"))
    _say("server: the first page, computing time", f"{1e3 * first:.0f} ms, {size / 1e3:,.0f} kB", _RENDER_MS, "ms")
    spent, waited = 1e3 * (process_time() - began), 1e3 * (perf_counter() - wall)
    _say("server: a page after a change, computing and wall time", f"{spent:.0f}, {waited:.0f} ms", _RENDER_MS, "ms")


def _fill(facts: StateFacts, *, has_mig: bool) -> None:
    parts = _SLICES if has_mig else 1
    for number in range(_NODES):
        slots = tuple(Slot(f"{gpu}/{at}", gpu, at / parts, 1 / parts) for gpu in range(_GPUS) for at in range(parts))
        broken = frozenset({7}) if number % 50 == 0 else frozenset[int]()
        facts.state.put_node(DashboardNode(f"node-{number}", f"kind-{number % 4}", _GPUS, slots, broken=broken))
        for pod in range(6):
            facts.state.put_pod(_pod(f"p-{number}-{pod}", f"node-{number}", number + pod))


def _pod(name: str, node: str, team: int) -> DashboardPod:
    created = "2026-01-01T00:00:00Z"
    return DashboardPod(f"team-{team % _TEAMS}", name, "Running", node, 1, (), "", created, load=team * 7 % 101)


def _say(what: str, figure: str, bar: float, unit: str) -> None:
    print(f"  {what:<76} {figure:>22}  (bar {bar:g} {unit})")


if __name__ == "__main__":
    main()

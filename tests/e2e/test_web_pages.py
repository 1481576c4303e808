"""Every page of `shoal up --web-port` in a real Chromium at three widths; keys, filter, copies, changes, signing in.

Pictures are written to the folder that SHOAL_SCREENSHOTS names.
"""

from __future__ import annotations

import asyncio
import csv
import os
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.request import urlopen

import pytest

from build.browser import BrowserPage, browser
from build.cluster_server import ServerProcess
from build.free_ports import free_port
from build.plain_client import PlainClient, client_of
from build.web_sites import StateFacts
from build.web_sites import served as site_of
from shoal.cli.main import main
from shoal.web.viewer import Viewer

pytestmark = [pytest.mark.external("chromium"), pytest.mark.slow]
WIDTHS = ((1400, "light"), (800, "dark"), (400, "light"))
JOBS = "/apis/batch/v1/namespaces/default/jobs"
QUEUE_PATH = "/apis/kueue.x-k8s.io/v1beta2"
NAMED = (
    "[...document.querySelectorAll('button, a, input, select')]"
    ".every(one => (one.innerText || one.ariaLabel || one.placeholder || one.labels?.length || '').toString().trim())"
)
FIRST_GPU = "(box => [box.x + 4, box.y + 4])(document.querySelector('#node-p5-48xlarge-0 svg').getBoundingClientRect())"
AXE = "axe-core@4.10.2"
PROGRESS = {
    "shoal.dev/progress": "1200/9000",
    "shoal.dev/checkpoint-every": "10m",
    "shoal.dev/step-time": "850ms",
    "shoal.dev/network-share": "0.31",
}
ODD = "<img src=x onerror=alert(1)>"


def job(name: str, gpus: int, pods: int = 1) -> dict[str, object]:
    container = {"name": "w", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    template = {
        "metadata": {"annotations": {"shoal.dev/run-for": "3h", **PROGRESS}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {"completions": pods, "parallelism": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def queue(name: str) -> dict[str, object]:
    quota = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]}
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}]
    spec = {"cohortName": "research", "namespaceSelector": {}, "resourceGroups": groups}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


class Served:
    def __init__(self, url: str, client: PlainClient) -> None:
        self.url, self.client = url, client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    port, folder = free_port(), tmp_path_factory.mktemp("web")
    prices = folder / "prices.yaml"
    prices.write_text("machines: [{instanceType: dgx-a100-80, perHour: '25.00'}]")
    nodes = "2xp5.48xlarge,1xdgx-a100-80[mig=all-1g.10gb]"
    server = ServerProcess(
        folder, "--nodes", nodes, "--web-port", str(port), "--prices", str(prices), "--no-dashboard", is_bare=False
    )
    client = client_of(server.kubeconfig)
    for name in ("language", "vision"):
        client.ask("POST", f"{QUEUE_PATH}/clusterqueues", queue(name))
    client.ask("POST", JOBS, job("train", 5, 2))
    client.ask("POST", JOBS, job("huge", 9))
    client.patch("/api/v1/nodes/p5-48xlarge-1", {"metadata": {"annotations": {"note": ODD}, "labels": {"odd": "x"}}})
    yield Served(f"http://127.0.0.1:{port}", client)
    server.stop()


async def opened(tab: BrowserPage, url: str) -> None:
    await tab.open(url)
    await tab.until("document.documentElement.dataset.colouring")


async def picture(tab: BrowserPage, name: str) -> None:
    if folder := os.environ.get("SHOAL_SCREENSHOTS"):
        await tab.picture(Path(folder) / f"{name}.png")


async def loaded(tab: BrowserPage, name: str) -> None:
    """Until what the script loads is there."""
    if name in LATER:
        await tab.until(f"document.querySelector('{LATER[name]}')")


LATER = {"job": "dl.why", "running-job": "dl.why", "what-if": "#why h2"}
PAGES = {
    "fleet": "/",
    "table": "/?as=table",
    "node": "/node/dgx-a100-80-0",
    "queues": "/queues",
    "queue": "/queue/ClusterQueue/vision",
    "workloads": "/workloads",
    "timelines": "/timelines?window=1h",
    "cost": "/cost?window=24h",
    "capacity": "/capacity",
    "alerts": "/alerts",
    "what-if": "/what-if?of=vision%7Ch100%7Cnvidia.com%2Fgpu&quota=32&nodes=2xp5.48xlarge&queue=vision"
    "&ordering=StrictFIFO&fair=on",
    "job": "/job/default/huge",
    "running-job": "/job/default/train",
    "missing": "/node/gone",
}


async def test_every_page_opens_at_three_widths_without_an_error_of_the_console(served: Served, tmp_path: Path) -> None:
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        for width, theme in WIDTHS:
            await tab.resize(width)
            await tab.use_theme(theme)
            for name, path in PAGES.items():
                await opened(tab, served.url + path)
                await loaded(tab, name)
                assert await tab.run("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                assert await tab.run(NAMED), f"{name}: a control without a name"
                assert await tab.run("document.querySelectorAll('h1, h2').length >= 1")
                await picture(tab, f"{name}-{width}")
                faults = [fault for fault in tab.faults if not (name == "missing" and "404" in fault)]
                assert faults == [], (name, width)
                tab.faults.clear()


def test_the_command_beside_a_table_prints_its_rows(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    for path, key in (("/capacity", "groups"), ("/node/p5-48xlarge-1", "gpus"), ("/", "nodes")):
        with urlopen(f"{served.url}{path}") as answer:  # noqa: S310 - the address of this test
            text = answer.read().decode()
        commands = [unescape(one) for one in re.findall(r'data-copy="([^"]*)"', text)]
        command = next(one for one in commands if f"#{key}" in one or key == "nodes")
        with urlopen(f"{served.url}{path}?csv={key}") as answer:  # noqa: S310 - the same
            first = [row[0] for row in csv.reader(answer.read().decode().splitlines())][1:]
        assert main(shlex.split(command)[1:]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert all(any(line.split()[:1] == [name] for line in printed) for name in first if name), command
        assert len(printed) > len(first)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, from its registry."""
    folder = tmp_path_factory.mktemp("axe")
    fetched = subprocess.run(["npm", "pack", AXE], cwd=folder, capture_output=True, timeout=120, check=False)
    if fetched.returncode:
        pytest.skip(f"{AXE} cannot be fetched: {fetched.stderr.decode()[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.mark.external("npm")
async def test_axe_finds_no_fault_on_any_page_light_and_dark(served: Served, axe: str, tmp_path: Path) -> None:
    violations = "axe.run(document).then(found => found.violations.map(one => one.id + ': ' + one.nodes[0].html))"
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        for width, theme in (WIDTHS[0], (400, "dark")):
            await tab.resize(width)
            await tab.use_theme(theme)
            for name, path in PAGES.items():
                await opened(tab, served.url + path)
                await loaded(tab, name)
                await tab.run(f"{axe}; true")
                assert await tab.run(violations) == [], (name, theme)


async def test_a_proposal_is_made_with_the_form_and_the_keyboard(served: Served, tmp_path: Path) -> None:
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await opened(tab, served.url + "/what-if")
        await tab.run("document.getElementById('nodes').value = '2xp5.48xlarge'")
        await tab.leave("document.querySelector('main form button').click()")
        await tab.until("document.querySelector('#why h2')")
        assert "With 2 more nodes" in await tab.run("document.getElementById('why').innerText")
        await tab.run("document.activeElement.blur()")
        await tab.press("5")
        await tab.until("location.pathname === '/cost' && document.querySelector('#of-groups')")
        assert tab.faults == []


async def test_the_fleet_can_be_filtered_coloured_and_walked_by_keys(served: Served, tmp_path: Path) -> None:
    shown = "document.querySelectorAll('.tile:not([hidden])').length"
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await tab.resize(1400)
        await opened(tab, served.url)
        assert await tab.run(shown) == 3
        await tab.press("/")
        for letter in "dgx":
            await tab.press(letter)
        assert await tab.run(shown) == 1
        await tab.press("Escape")
        assert await tab.run(shown) == 3
        colour = "getComputedStyle(document.querySelector('#node-p5-48xlarge-0 path')).fill"
        by_team = await tab.run(colour)
        await tab.press("c")
        assert await tab.run("document.documentElement.dataset.colouring") == "use"
        await tab.press("c")
        assert await tab.run(colour) != by_team
        await tab.run("document.querySelector('.tile').focus()")
        await tab.press("ArrowRight")
        assert await tab.run("document.activeElement.id") == "node-p5-48xlarge-0"
        box = await tab.run(FIRST_GPU)
        await tab.point(*box)
        await tab.until("!document.getElementById('hover').hidden && document.querySelector('#hover .here')")
        assert "GPU 0" in await tab.run("document.querySelector('#hover .here').textContent")
        await picture(tab, "hover")
        before = await tab.run("getComputedStyle(document.body).backgroundColor")
        await tab.press("t")
        assert await tab.run("getComputedStyle(document.body).backgroundColor") != before
        assert tab.faults == []


async def test_mig_slices_are_drawn_inside_their_gpus(served: Served, tmp_path: Path) -> None:
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await opened(tab, served.url)
        steps = await tab.run(
            "[...document.querySelectorAll('#node-dgx-a100-80-0 path')].map(p => p.getAttribute('d')).join('')"
        )
        assert len(re.findall("M", steps)) == 56


async def test_an_open_page_follows_the_cluster_and_its_explanation_has_remedies(
    served: Served, tmp_path: Path
) -> None:
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await opened(tab, served.url + "/workloads")
        served.client.ask("POST", JOBS, job("late", 16))
        await tab.until("document.querySelector('#of-waiting').textContent.includes('default/late-')")
        # Waiting pods have links to their own pages.
        link = await tab.run("[...document.querySelectorAll('#of-waiting a')].find(a => a.text.includes('late-')).href")
        await tab.open(link)
        await tab.until("document.querySelector('dl.why')")
        story = await tab.run("document.querySelector('#why').innerText")
        assert "16 GPUs" in story
        assert tab.faults == []


async def test_a_page_that_is_not_seen_gives_its_connection_back(served: Served, tmp_path: Path) -> None:
    hide = (
        "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange'))"
    )
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await opened(tab, served.url + "/workloads")
        await tab.until("events && events.readyState === 1")
        await tab.run(hide % "true")
        assert await tab.run("events === null")
        served.client.ask("POST", JOBS, job("unseen", 15))
        await tab.run(hide % "false")
        await tab.until("document.querySelector('#of-waiting').textContent.includes('default/unseen-')")
        assert tab.faults == []


async def test_tables_are_copied_as_csv(served: Served, tmp_path: Path) -> None:
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        await opened(tab, served.url)
        csv = await tab.run("fetch(document.querySelector('[data-copy-csv]').dataset.copyCsv).then(a => a.text())")
        assert csv.splitlines()[0].startswith('"node","kind","GPUs","held"')
        assert len(csv.splitlines()) == 4
        # What the button writes, where the browser allows no clipboard, is said on the button.
        await tab.run("document.querySelector('[data-copy]').click()")
        await tab.until("document.querySelector('[data-copy]').dataset.words")
        await asyncio.wait_for(tab.until("document.querySelector('[data-copy]').textContent != 'copy command'"), 30)


async def test_a_viewer_signs_in_with_the_form_and_signs_out(tmp_path: Path) -> None:
    async with site_of(StateFacts(), None, {"of-tenant": Viewer()}) as (url, _), browser(tmp_path) as new_tab:
        tab = await new_tab()
        await tab.open(url)
        assert await tab.run("location.pathname") == "/sign-in"
        await tab.run("document.getElementById('token').value = 'of-tenant'")
        await tab.leave("document.querySelector('form button').click()")
        assert await tab.run("location.pathname") == "/"
        assert await tab.run("document.body.innerText.includes('sign out')")
        await tab.open(url + "/sign-out")
        assert await tab.run("location.pathname") == "/sign-in"
        assert tab.faults == []

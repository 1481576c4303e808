"""A real Prometheus server over recorded metrics."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.free_ports import free_port

_READY = "Server is ready to receive web requests"


@contextmanager
def recorded_prometheus(folder: Path, text: str) -> Iterator[str]:
    """Its address. `text`: OpenMetrics without the line of its end, the lines of each metric together."""
    prometheus, promtool = shutil.which("prometheus"), shutil.which("promtool")
    assert prometheus
    assert promtool
    (folder / "recorded.txt").write_text(text + "# EOF\n")
    create = [promtool, "tsdb", "create-blocks-from", "openmetrics", "recorded.txt", "data"]
    subprocess.run(create, cwd=folder, check=True, capture_output=True, timeout=120)
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    command = [prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if _READY in line:
                break
        assert _READY in said[-1], said
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)

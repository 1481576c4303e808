"""All figures, each beside its bar: what `make bench` prints and docs/performance.md records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console

from bench import (
    admission,
    agent_exporter,
    agent_plugin,
    autoscale,
    burst,
    cost,
    dashboard,
    decode,
    doctor,
    fairshare,
    gpu_operator,
    idle_pass,
    lint,
    packages,
    packing,
    queues,
    scaling_day,
    startup,
    testing,
    this_machine,
    upgrade,
    volcano,
    web,
    why,
)
from bench.alive import run as alive
from bench.cluster import run as cluster
from bench.live import run as live
from shoal.cli.bench import figure_table
from shoal.sim.enginefigures import run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds of the packing runs, nothing else less")
    chosen = parser.parse_args(arguments)
    print("engine")
    figures = msgspec.to_builtins(run(lambda step: print(f"  {step}", file=sys.stderr)))
    Console().print(figure_table(figures))
    print("\nqueues")
    queues.main([])
    print("\nKAI's fair share")
    fairshare.main([])
    print("\nVolcano")
    volcano.main([])
    print("\nexplanations")
    why.main([])
    print("\nnode planning")
    autoscale.main(["--quick"] if chosen.quick else [])
    idle_pass.main(["--quick"] if chosen.quick else [])
    print("\nsimulated day of node scaling")
    scaling_day.main(["--days", "1"] if chosen.quick else [])
    print("\nburst of a gang")
    burst.main([])
    print("\nAPI server")
    cluster.main(["--quick"] if chosen.quick else [])
    print("\nliving cluster")
    alive.main(["--quick"] if chosen.quick else [])
    print("\nscheduling a cluster")
    live.main(["--quick"] if chosen.quick else [])
    print("\nclusters for tests")
    testing.main(["--quick"] if chosen.quick else [])
    print("\ndashboard")
    dashboard.main([])
    print("\nweb dashboard")
    web.main([])
    print("\nnode agent, exporter")
    agent_exporter.main(["--quick"] if chosen.quick else [])
    print("\nnode agent, device plugin")
    agent_plugin.main(["--quick"] if chosen.quick else [])
    print("\nGPU operator")
    gpu_operator.main(["--quick"] if chosen.quick else [])
    print("\nupgrade under load")
    upgrade.main(["--quick"] if chosen.quick else [])
    print("\ncosts and their history")
    cost.main(["--days", "6"] if chosen.quick else [])
    print("\npackages")
    packages.main()
    print("\nlint")
    lint.main()
    print("\ndiagnosis")
    doctor.main([])
    print("\nadmission rules")
    admission.main(["--seconds", "5"] if chosen.quick else [])
    print("\npods on this machine")
    this_machine.main(["--quick"] if chosen.quick else [])
    print("\npacking, public trace")
    packing.main(["--seeds", "2" if chosen.quick else "10"])
    print("\nstart of commands")
    startup.main(["--quick"] if chosen.quick else [])
    print("\ndecoding")
    decode.main([])
    return 0


if __name__ == "__main__":
    sys.exit(main())

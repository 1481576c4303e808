"""The time of `shoal lint`: 10,000 manifests of 40 lines, and one file from a cold start, each beside its bar.

python -m bench.lint [--manifests N]

The figures are processor seconds of the command, which one process needs; the bars are wall seconds of two processes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.cluster.figures import Figure, table

_MANIFESTS, _ALL_S, _ONE_S = 10_000, 20, 0.5
_MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{0}
  namespace: team-{1}
  labels:
    app: web-{0}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web-{0}
  template:
    metadata:
      labels:
        app: web-{0}
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB
      tolerations:
        - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      containers:
        - name: serve
          image: registry.example/serve:1.4
          args: ["--model", "mistral", "--port", "8000"]
          ports:
            - {{name: http, containerPort: 8000}}
          env:
            - name: HF_HOME
              value: /data
          resources:
            limits:
              nvidia.com/gpu: 1
              memory: 32Gi
            requests:
              cpu: "4"
              memory: 32Gi
          volumeMounts:
            - {{name: data, mountPath: /data}}
      volumes:
        - name: data
          emptyDir: {{}}
"""


def _processor_s(*paths: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "shoal", "lint", *paths], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(manifests: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(manifests):
            (Path(folder) / f"{number}.yaml").write_text(_MANIFEST.format(number, number % 50), encoding="utf-8")
        one = min(_processor_s(f"{folder}/0.yaml") for _ in range(3))
        return [
            Figure("one file, cold start", one, " s", most=_ONE_S),
            Figure(f"{manifests:,} manifests", _processor_s(folder), " s", most=_ALL_S),
        ]


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=_MANIFESTS)
    options = parser.parse_args(arguments)
    Console(highlight=False).print(table(measure(options.manifests)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

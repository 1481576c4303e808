"""Answers requests on one GPU one after the other for some seconds, and prints requests per second and latencies.

python examples/gpu/serve.py --seconds 5
"""

from __future__ import annotations

import sys

from workload import run

if __name__ == "__main__":
    sys.exit(run("serve", "An inference loop on the first visible GPU.", lambda work: work.answer))

"""Trains on one GPU for some seconds, and prints steps per second and how long steps take.

python examples/gpu/train.py --seconds 5
"""

from __future__ import annotations

import sys

from workload import run

if __name__ == "__main__":
    sys.exit(run("train", "A training loop on the first visible GPU.", lambda work: work.train))

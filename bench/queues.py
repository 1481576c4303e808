"""The queue discipline on the loads by which Kueue measures its own: processor time, queue use, waits, an idle round.

    python -m bench.queues [--out-of-step]

Prints what `shoal bench queues` prints.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from shoal.cli.bench import row_table
from shoal.sim import queuebench


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out-of-step", action="store_true", help="work starts at a different moment in every queue")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False)
    figures = queuebench.run(lambda step: print(f"  {step}", file=sys.stderr), out_of_step=chosen.out_of_step)
    for title, rows in queuebench.tables_of(figures):
        console.print(title)
        console.print(row_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

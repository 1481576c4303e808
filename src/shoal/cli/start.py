"""The entry point of the `shoal` command.

It imports the rest itself, so that Ctrl-C while modules load ends as at any other time: in one line, with exit code
130.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    try:
        from shoal.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("shoal: interrupted\n")
            sys.stderr.flush()
        # Modules that are half loaded must not run their exit handlers.
        os._exit(130)

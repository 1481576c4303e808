"""Runs the `shoal` command by `python -m shoal`, for machines whose PATH lacks the script folder."""

import sys

from shoal.cli.start import main

if __name__ == "__main__":
    sys.exit(main())

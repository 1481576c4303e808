"""`python -m shoal` is the same door as the `shoal` command, for machines whose PATH lacks the script folder."""

import sys

from shoal.cli.start import main

if __name__ == "__main__":
    sys.exit(main())

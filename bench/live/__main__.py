"""`python -m bench.live`."""

import sys

from bench.live.run import main

if __name__ == "__main__":
    sys.exit(main())

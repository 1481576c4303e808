"""`python -m bench.alive`."""

import sys

from bench.alive.run import main

sys.exit(main())

"""`python -m bench.cluster [--quick]`."""

from __future__ import annotations

import sys

from bench.cluster.run import main

sys.exit(main())

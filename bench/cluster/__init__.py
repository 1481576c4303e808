"""The figures of the embedded API server, measured from outside: a `shoal up` of its own, and clients over TLS.

Server and kubectl are those of the tests (`tests/build`), so that what is measured is what is tested.
"""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = str(Path(__file__).parents[2] / "tests")
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)

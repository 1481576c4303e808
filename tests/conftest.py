"""The order of all tests: first those that wait for processes of their own.

They leave a core idle while they wait. Begun first, by one worker, they wait while the others compute; at the end they
would wait alone.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "e2e" not in item.path.parts)

"""No module imports itself through others, not even for types or within functions."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def test_modules_do_not_import_each_other() -> None:
    graph = grimp.build_graph("shoal", cache_dir=None)
    sorter = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " imports ".join(reversed(error.args[1]))
        raise AssertionError(f"import cycle: {cycle}") from None

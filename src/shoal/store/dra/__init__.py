"""Converts objects of dynamic resource allocation to the engine's claims and devices; CEL expressions become sets of
devices.
"""

from shoal.store.dra.reading import Dra, dra_of

__all__ = ["Dra", "dra_of"]

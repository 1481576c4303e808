"""The border of dynamic resource allocation: expressions become sets, objects the engine's claims and devices."""

from shoal.store.dra.reading import Dra, dra_of

__all__ = ["Dra", "dra_of"]

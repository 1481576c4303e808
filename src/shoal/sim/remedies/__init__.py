"""Finds changes that would let a waiting pod or gang run, by trying each of them on the facts."""

from shoal.sim.remedies.candidates import WaitingSubject
from shoal.sim.remedies.objects import NO_OBJECTS, Objects
from shoal.sim.remedies.search import Found, remedies_of
from shoal.sim.remedies.trial import RemedyTrial, fits_beside

__all__ = ["NO_OBJECTS", "Found", "Objects", "RemedyTrial", "WaitingSubject", "fits_beside", "remedies_of"]

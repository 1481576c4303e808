"""Computes random numbers from a seed and a name: with one seed a pod gets the same number in any order of pods."""

from __future__ import annotations

from zlib import crc32

_MASK = (1 << 64) - 1


def seeded_number(seed: int, name: str) -> int:
    """A number of 62 bits (splitmix64's finaliser over seed and name)."""
    x = (seed * 0x9E3779B97F4A7C15 + crc32(name.encode()) * 0xD1B54A32D192ED03 + len(name)) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 2

"""How many threads a rank computes with."""

import hashlib
from typing import Iterable, Sequence


def place_of(host: str, cores: Iterable[int]) -> int:
    """Returns a number for a set of cores of a host: ranks that may use the same cores have the same number."""
    digest = hashlib.sha256(f"{host} {sorted(cores)}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def threads_of(rank: int, cores: int, places: Sequence[int]) -> int:
    """Returns the threads of a rank that may use so many cores. It shares them with the ranks that have the same place.

    So a rank that is bound to cores of its own takes all of them.
    """
    return max(1, cores // list(places).count(places[rank]))

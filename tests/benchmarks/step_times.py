"""When each step of a group ended, as its rank 0 writes it: one file "GROUP.START" for each start of a group, times of the steady clock in it.

That clock is the same for all processes of a machine, also for those in network namespaces.
"""

import array
import bisect
import pathlib


class Writer:
    def __init__(self, folder, group, start):
        # Each time is written at once, because ranks are killed.
        self.file = open(pathlib.Path(folder, f"{group}.{start}"), "ab", buffering=0)

    def add(self, when):
        self.file.write(array.array("d", [when]).tobytes())


def starts(folder, group):
    """Returns {start: times of its steps}."""
    found = {}
    for path in pathlib.Path(folder).glob(f"{group}.*"):
        data = path.read_bytes()
        found[int(path.suffix[1:])] = array.array("d", data[: len(data) // 8 * 8])
    return found


def between(times, begin, end):
    """Returns how many of the times are at least `begin` and less than `end`."""
    return bisect.bisect_left(times, end) - bisect.bisect_left(times, begin)


def first_after(found, start):
    """Returns the time of the first step of any start after this one; None: there is none."""
    return min((times[0] for number, times in found.items() if number > start and times), default=None)

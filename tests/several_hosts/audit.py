"""Watches a cluster while a test runs, and notes what must never be: two live starts of one group, or more batch jobs of Slurm than groups need them."""

import collections
import pathlib
import re
import threading
import time

# The folder of a start ends in job, group and start: .../groups/hybrid-1-0-2/start.
START = re.compile(r"/groups/(?P<job>[^/]+)-(?P<group>\d+)-(?P<start>\d+)/start")
PAUSE_SECONDS = 0.2


def starts_of(command_lines):
    """Returns (job, group) -> the starts that ranks with these command lines belong to."""
    found = collections.defaultdict(set)
    for line in command_lines:
        if match := START.search(line):
            found[match["job"], int(match["group"])].add(int(match["start"]))
    return dict(found)


def twice(starts):
    """Returns (job, group) -> its starts, in order, for those groups that have more than one."""
    return {group: sorted(several) for group, several in starts.items() if len(several) > 1}


def earlier_lines(command_lines):
    """Returns (job, group) -> the command lines of ranks that belong to an earlier start than others of their group."""
    starts, found = starts_of(command_lines), collections.defaultdict(list)
    for line in command_lines:
        match = START.search(line)
        if match and int(match["start"]) < max(starts[match["job"], int(match["group"])]):
            found[match["job"], int(match["group"])].append(line)
    return dict(found)


def rank_lines():
    """Returns the command lines of all ranks that this process sees. A dead one has none."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text().strip() == "hooke-rank":
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass
    return found


class Audit:
    """Looks some times a second. `more_checks` are functions that return what is wrong, as texts. `lines` returns the command lines of ranks. `excuses`
    says of such a line whether its start may run beside a later one. As a context, it looks until the block's end."""

    def __init__(self, *more_checks, lines=rank_lines, excuses=lambda line: False):
        self.more_checks, self.lines, self.excuses, self.looks, self.excused, self.wrong = more_checks, lines, excuses, 0, 0, []
        self.ended, self.thread = threading.Event(), threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _run(self):
        while not self.ended.wait(PAUSE_SECONDS):
            try:
                self._look()
            except Exception as error:  # It is a finding: from now on nothing would be seen.
                self.wrong.append(repr(error))
                return

    def _look(self):
        lines = self.lines()
        earlier = earlier_lines(lines)
        for (job, group), starts in twice(starts_of(lines)).items():
            if all(map(self.excuses, earlier[job, group])):
                self.excused += 1
            else:
                self.wrong.append(f"{time.monotonic():.1f} s: group {group} of {job} in starts {starts}: {earlier[job, group]}")
        self.wrong += [f"{time.monotonic():.1f} s: {text}" for check in self.more_checks for text in check()]
        self.looks += 1

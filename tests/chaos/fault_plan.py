"""Which faults a seed means: a list that depends on nothing else, so that a seed gives the same faults in the same order on each machine."""

import itertools
import random
import typing

# The kinds of faults, and how often each is drawn relative to the others. "cancel" is rare, because most jobs are to end by themselves.
WEIGHTS = {
    "cancel": 0.5,
    "cut_link": 1,
    "kill_agent": 1,
    "kill_batch_worker": 1,
    "kill_coordinator": 1,
    "kill_launcher": 1,
    "kill_rank": 1,
    "kill_server": 1,
    "kill_slurmd": 1,
    "kill_worker": 1,
    "stop_coordinator": 1,
    "stop_rank": 1,
    "stop_server": 1,
    "stop_worker": 1,
}
# The kinds that need a Slurm.
SLURM_KINDS = ("kill_agent", "kill_batch_worker", "kill_slurmd")
# The least number of faults in a run, however slow the machine is.
FAULTS_MIN = 5
# The seeds that CI runs.
CI_SEEDS = tuple(range(1, 21))
# The shortest time that a victim is away.
AWAY_SECONDS_MIN = 0.2


class Fault(typing.NamedTuple):
    kind: str
    choice: float  # From 0 to less than 1: which of the possible victims.
    part: float  # From 0 to less than 1: how long the victim is away, of the longest time for this kind.
    pause: float  # Seconds until the next fault.


def faults(seed):
    """Yields the faults of this seed, without an end."""
    chance = random.Random(seed)
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    while True:
        # Always the same draws, in the same order, whatever the fault is.
        kind = chance.choices(names, weights)[0]
        yield Fault(kind, chance.random(), chance.random(), chance.uniform(0.1, 1.5))


def kinds(seeds):
    """Returns the kinds among the first FAULTS_MIN faults of these seeds."""
    return {fault.kind for seed in seeds for fault in itertools.islice(faults(seed), FAULTS_MIN)}


def pick(victims, choice):
    """Returns the victim that is meant, or None if there is none."""
    return victims[int(choice * len(victims))] if victims else None


def seconds(part, longest):
    return AWAY_SECONDS_MIN + part * (longest - AWAY_SECONDS_MIN)

"""Which samples a job has left, and how its groups divide them. Plain arithmetic, without torch and the library.

The number of groups may change while a job runs: each change begins a new generation, which divides what the earlier
ones have left. An epoch is a list of positions in its order. A step of all groups takes the next slice of the list; in
the slice the groups come one after the other, each with `unit` positions for each of its ranks. What fills no step is
left out. When a generation ends, its groups may have come to different steps, even to different epochs. What is left of
an epoch is then the list without the slices that groups have taken. The next generation first works through the epochs
that are partly left, in order, then through whole ones. An epoch that all groups have finished is over.
"""

from typing import Iterator, List, NamedTuple, Sequence, Tuple

Range = Tuple[int, int]  # Half-open, not empty.


class Share(NamedTuple):
    """What a group had done when its generation ended."""

    ranks: int
    last_step: int


class Generation(NamedTuple):
    """A generation that has ended. Its groups counted their steps from `first_step`."""

    first_step: int
    shares: Tuple[Share, ...]


class Part(NamedTuple):
    """An epoch, or what is left of it."""

    epoch: int
    left: Tuple[Range, ...]  # Positions in the epoch's order, ascending.

    def size(self) -> int:
        return sum(last - first for first, last in self.left)


def at_places(positions: Sequence[Range], places: Iterator[Range]) -> Tuple[Range, ...]:
    """Returns the positions at these places of a list of positions. Both are ascending."""
    result: List[Range] = []
    before = index = 0  # How many positions lie before range number `index` of the list.
    for first, last in places:
        while first < last:
            begin, end = positions[index]
            if before + end - begin <= first:
                before += end - begin
                index += 1
                continue
            until = min(last, before + end - begin)
            found = (begin + first - before, begin + until - before)
            if result and result[-1][1] == found[0]:
                found = (result.pop()[0], found[1])
            result.append(found)
            first = until
    return tuple(result)


def _places_left(size: int, unit: int, shares: Sequence[Share], done: Sequence[int]) -> Iterator[Range]:
    """Yields the places of an epoch's list that the groups have not taken, when group g has done done[g] steps of it."""
    place = min(done) * unit * sum(share.ranks for share in shares)
    for step in range(min(done), max(done)):
        for share, steps in zip(shares, done):
            if step >= steps:
                yield place, place + share.ranks * unit
            place += share.ranks * unit
    yield place, size


class Division:
    """How the groups of one generation divide the data. Positions count a group's steps in this generation, from 0."""

    def __init__(self, samples: int, step_samples: int, begun: Sequence[Part] = (), next_epoch: int = 0):
        """A step of all groups takes `step_samples`. Earlier generations have begun the epochs `begun`, and none from `next_epoch` on."""
        self.whole_steps = samples // step_samples  # Steps of a whole epoch.
        self._samples = samples
        self._begun = [(part, part.size() // step_samples) for part in begun]
        self._next = next_epoch

    def part(self, epoch: int) -> Part:
        """Returns what is left of an epoch. One that is over counts as a whole one."""
        return next((part for part, _ in self._begun if part.epoch == epoch), Part(epoch, ((0, self._samples),)))

    def steps(self, epoch: int) -> int:
        """Returns the steps that are left in an epoch."""
        return next((steps for part, steps in self._begun if part.epoch == epoch), self.whole_steps)

    def steps_before(self, epoch: int) -> int:
        """Returns the steps of all epochs below this one that are left: the position where this epoch begins."""
        return sum(steps for part, steps in self._begun if part.epoch < epoch) + max(0, epoch - self._next) * self.whole_steps

    @property
    def steps_behind(self) -> int:
        """The work of earlier generations, in steps of this one: the whole epochs below the next one, without what is left of them."""
        return self._next * self.whole_steps - sum(steps for _, steps in self._begun)

    def from_position(self, position: int) -> Iterator[Tuple[int, int]]:
        """Yields (epoch, first step in it) for the epochs with steps from this position on, without end."""
        for part, steps in self._begun:
            if position < steps:
                yield part.epoch, position
            position = max(0, position - steps)
        epoch = self._next + (position // self.whole_steps if self.whole_steps else 0)
        while self.whole_steps:
            position %= self.whole_steps
            yield epoch, position
            epoch, position = epoch + 1, 0

    def left_after(self, generation: Generation, unit: int) -> Tuple[List[Part], int]:
        """Returns the epochs that are begun and not over when this generation has ended, and the first that is not begun."""
        done = [max(0, share.last_step - generation.first_step) for share in generation.shares]
        begun: List[Part] = []
        at = 0

        def end(part: Part, steps: int) -> None:
            """Notes what is left of an epoch. One whose rest fills no step is over when all groups have gone past it."""
            in_epoch = [min(max(0, position - at), steps) for position in done]
            over = min(in_epoch) == steps and (steps > 0 or min(done) > at)
            if not over:
                begun.append(Part(part.epoch, at_places(part.left, _places_left(part.size(), unit, generation.shares, in_epoch))))

        for part, steps in self._begun:
            end(part, steps)
            at += steps
        epoch = self._next
        while self.whole_steps and at < max(done):
            end(self.part(epoch), self.whole_steps)
            at += self.whole_steps
            epoch += 1
        return begun, epoch


def divide(earlier: Sequence[Generation], samples: int, unit: int, ranks: int) -> Division:
    """Returns the division of the present generation, which has so many ranks. A rank takes `unit` samples in a step of any generation."""
    begun: Sequence[Part] = ()
    next_epoch = 0
    for generation in earlier:
        step_samples = unit * sum(share.ranks for share in generation.shares)
        begun, next_epoch = Division(samples, step_samples, begun, next_epoch).left_after(generation, unit)
    return Division(samples, unit * ranks, begun, next_epoch)

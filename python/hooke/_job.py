"""What a job is to every kind of program: its place, its steps and epochs, its collectives and its end."""

import math
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from hooke._division import Division, Generation, divide
from hooke._ending import Ending
from hooke._memory import as_number, gathered, in_place
from hooke._native import Native, invalid, misuse
from hooke._state import Objects

_joined = None


def given_loss(loss) -> float:
    """Returns the loss as the library wants it. To that one NaN means "not known", but a program's NaN means that training has diverged."""
    loss = float(loss)
    return math.inf if math.isnan(loss) else loss


def numbers(named: Mapping[str, Any], where: str) -> Dict[str, float]:
    """Returns the values as floats. A tensor or an array of one value counts as a number."""
    result = {}
    for name, value in named.items():
        if not isinstance(name, str):
            raise invalid(f"{where}: the name {name!r} is no str: give each number a name, as {{'perplexity': 21.5}}")
        try:
            result[name] = float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise invalid(f"{where}: {name} is {value!r:.60}, which is no number: give a float, or a tensor of one value") from error
    return result


def first_sample(step: int, part: int, batch: int, accumulate: int, place) -> int:
    """Returns where in the list of an epoch's samples the batch begins that a rank takes for the `part`-th backward of a step.

    A step of all groups takes one slice of the list. In it come the groups one after the other, in each of them the
    backward passes, and in each of these the ranks. So one group of two ranks takes in each pass what a single process
    takes with twice the batch.
    """
    return ((step * place.ranks_of_all + place.ranks_before) * accumulate + part * place.ranks + place.rank) * batch


class Job:
    """This rank's part in its job. Base of the jobs of hooke.torch and hooke.numpy."""

    # What to do if an epoch takes more or fewer steps than planned, and how to say in time how long training is.
    _steps_advice = _length_advice = ""

    def __init__(self, native: Optional[Native] = None):
        global _joined
        if native is None:
            if _joined is not None and _joined._native.in_own_process():
                raise misuse("init() was called before in this process: keep the job that it returned")
            native = Native()
            _joined = self
        self._native = native
        self._place = native.place()
        self._earlier, self._generation_step = native.earlier_generations()
        self._registered = self._begun = self._finished = self._left = self._stopping = False
        self._epochs_planned = 0
        self._counts_epochs = False  # Whether the program goes through epochs().
        self._sampler: Any = None  # The first sampler that was made. It says how long an epoch is.
        self.accumulate = 1  # How many backward passes make the gradients of a step.
        self._division: Optional[Division] = None  # How the groups divide the data; None if the length of an epoch is not known.
        self._first_step = self._step = 0
        self._skipped = 0  # In all starts of this generation: steps that took their samples, but were not counted.
        self._first_position = 0  # Where this start begins in the data, in steps since the generation's beginning.
        self._epoch = None
        self._loss = math.nan
        self._objects = Objects()
        self._ending = Ending(self._leave_at_exit, native.fail) if _joined is self else None

    # ---- Where the rank is ----

    rank = property(lambda self: self._place.rank, doc="This rank's number in its group.")
    ranks = property(lambda self: self._place.ranks, doc="Ranks of this group.")
    group = property(lambda self: self._place.group, doc="This group's number in the job.")
    groups = property(lambda self: self._place.groups, doc="Groups of the job at present; 1 without servers.")
    seed = property(lambda self: self._place.seed, doc="The job's seed, the same on all ranks of all groups.")
    place = property(lambda self: self._place, doc="All that is known of the rank's place.")
    loss = property(lambda self: self._loss, doc="Mean over the ranks of the last reported loss; NaN before that.")
    step = property(lambda self: self._step, doc="The number of the group's last step, counted from the job's begin.")

    @property
    def generations(self) -> Tuple[Generation, ...]:
        """The job's earlier generations: for each the first step, and the ranks and the last step of each group. A generation ends when a user
        changes the number of groups."""
        return tuple(self._earlier)

    @property
    def generation_step(self) -> int:
        """The step from which all groups of the present generation count; 0 in the first."""
        return self._generation_step

    @property
    def first_step(self) -> int:
        """The step from which this start of the group goes on. Begins training."""
        self.begin()
        return self._first_step

    # ---- Epochs and the end ----

    def epochs(self, count: int) -> Iterator[int]:
        """Begins training, and returns an iterator over the epochs that are left. After the last one, training is finished."""
        if self._finished:
            raise misuse("job.epochs() was called after training had ended")
        is_late = self._begun and count != self._epochs_planned
        self._epochs_planned, self._counts_epochs = count, True
        if is_late:
            self._native.notice(f"epochs({count}) came after training had begun: {self._length_advice}, so that the job knows its length")
        self.begin()
        return self._each_epoch(count)

    def _each_epoch(self, count: int) -> Iterator[int]:
        for epoch in self._epochs_left(count):
            self._epoch, before = epoch, self._step + self._skipped
            yield epoch
            if self.all_reduce(int(self._stopping or self._native.stopping()), "max"):
                self._native.stop()  # The other groups learn it from finish().
                break
            self._check_epoch(epoch, self._step + self._skipped - before)
        self._epoch = None
        self.finish()

    def _epochs_left(self, count: int) -> Iterator[int]:
        """Yields the epochs below `count` of which this start has steps left."""
        if self._division is None:
            yield from range(count)
            return
        for epoch, _ in self._division.from_position(self._first_position):
            if epoch >= count:
                return
            yield epoch

    def stop(self) -> None:
        """Ends the whole job early. One rank of one group is enough to call it.

        Its own group ends after this epoch. The other groups learn it then, and end within about a second, in the midst
        of their epoch: job.epochs() ends on all of their ranks. A program without epochs looks at job.stopping.
        """
        self.begin()
        self._stopping = True
        if not self._counts_epochs:
            self._native.stop()

    @property
    def stopping(self) -> bool:
        """True if the job is to stop: make no more steps, and call job.finish(). The same on all ranks; it changes when gradients are combined."""
        return self._begun and self._native.stopping()

    def metrics(self, values: Optional[Mapping[str, Any]] = None, **named) -> None:
        """Reports numbers of the program's own by name, for instance job.metrics(perplexity=21.5), or a dict if names have spaces.

        `hooke watch` and `hooke jobs` show the last value of each beside the loss. Rank 0's count. At most 32 names.
        """
        self._native.report_metrics(numbers({**(values or {}), **named}, "job.metrics()"))

    def _check_epoch(self, epoch: int, steps: int) -> None:
        """Says so if an epoch took more steps than planned, or at most half of them: schedules and restarts would be
        wrong."""
        if self._division is None:
            return
        planned = self._division.steps(epoch) - self._first_in(epoch, self._division)
        if steps > planned or 2 * steps <= planned:
            self._native.notice(
                f"epoch {epoch} took {steps} steps instead of {planned}, so a restart would go on at a wrong sample: {self._steps_advice}"
            )

    def _first_in(self, epoch: int, division: Division) -> int:
        """Returns the step of an epoch with which this start begins; 0 if it begins before or after the epoch."""
        found, first = next(division.from_position(self._first_position), (epoch, 0))
        return first if found == epoch else 0

    def _divide(self, samples: int, unit: int) -> Division:
        """Divides a data set of which each rank takes `unit` samples in a step."""
        return divide(self._earlier, samples, unit, self._place.ranks_of_all)

    def _plan(self) -> Tuple[int, Optional[Division]]:
        """Returns the last step of the training, 0 if it is not known, and the division of its data, if the length of an epoch is known."""
        if self._sampler is None:
            return 0, None
        division = self._sampler.division()
        return self._generation_step + division.steps_before(self._epochs_planned) if self._epochs_planned else 0, division

    def begin(self) -> None:
        """Begins training: from now on the model has the values of the center. Collective. Happens by itself: before
        the first forward pass with torch, in register() with numpy."""
        if self._begun:
            return
        if self._left:
            raise misuse("the job has ended")
        if not self._registered:
            raise misuse("the job has no model yet: call job.wrap(model, optimizer) first")
        steps_total, self._division = self._plan()
        per_epoch, behind = (self._division.whole_steps, self._division.steps_behind) if self._division else (0, 0)
        self._first_step = self._native.begin(steps_total, per_epoch, behind / per_epoch if per_epoch else 0.0)
        self._step = self._first_step
        self._begun = True
        saved = self._native.saved_state()
        if saved:
            self._restore(*saved)
        self._first_position = max(0, self._first_step - self._generation_step) + self._skipped

    def _end_step(self, samples: int, epoch: float = 0.0) -> None:
        self._step = self._native.end_step(samples, epoch)

    def state(self, **objects):
        """Keeps objects with the group's state, so that a restarted group goes on with them. Returns them.

        They are what has state_dict() and load_state_dict(), random generators, tensors, arrays, dicts and lists. They
        are restored in place: here, or when training begins. Without servers nothing is kept.
        """
        self._objects.add(objects)
        values = tuple(objects.values())
        return values[0] if len(values) == 1 else values

    def _restore(self, state: bytes, step: int) -> None:
        """Takes back what an earlier start of the group had saved after `step` steps."""

    def _resume_data(self) -> None:
        """Called when the sampler goes on in the midst of an epoch."""

    def finish(self) -> None:
        """Ends training: the last exchange. Collective. job.epochs() does it after its last epoch."""
        if not self._finished:
            self.begin()
            self._native.finish()
            self._finished = True

    def leave(self) -> None:
        """Leaves the job. It happens by itself when the program ends."""
        if not self._left:
            self._left = True
            self._take_back()
            self._native.leave()

    def _leave_at_exit(self, message: Optional[str]) -> None:
        if not self._left:
            self._left = True
            self._take_back()
            self._native.leave_at_exit(message)

    def _take_back(self) -> None:
        """Moves values out of the job's memory, before it is freed."""

    # ---- For the program's own needs ----

    def all_reduce(self, values, reduction: str = "sum"):
        """Reduces a tensor or an array in place over the ranks ("sum", "mean", "min", "max") and returns it. A number gives a number."""
        values = as_number(values)
        if reduction == "mean" and isinstance(values, int):
            values = float(values)
        elif reduction == "mean" and str(getattr(values, "dtype", "")).replace("torch.", "").startswith(("int", "uint")):
            raise invalid("the mean of integers would be cut: convert them to floats first")
        return in_place(values, lambda *memory: self._native.all_reduce(*memory, reduction))

    def broadcast(self, values, root: int = 0):
        """Gives all ranks the values of rank `root`, in place, and returns them. A number gives a number."""
        return in_place(values, lambda *memory: self._native.broadcast(*memory, root))

    def all_gather(self, values):
        """Returns the values of all ranks, stacked: result[rank] are that rank's."""
        return gathered(values, self.rank, self.ranks, self._native.all_gather)

    def barrier(self) -> None:
        """Returns after all ranks of the group have called it."""
        self._native.barrier()

    def notice(self, text: str) -> None:
        """Sends a line to the job's log."""
        self._native.notice(text)

    def _with_center(self, work) -> None:
        self._native.with_center(work)

    def _evaluate(self, work):
        """Calls `work` with the center's values, reports its result and returns it. None in groups other than 0, and if a server is away."""
        self.begin()
        if self.group != 0:
            return None
        results = []
        self._with_center(lambda: results.append(work()))
        if not results:
            return None
        if self.rank == 0:
            said = numbers(results[0] if isinstance(results[0], dict) else {"accuracy": results[0]}, "the function of job.evaluate()")
            metrics = {name: value for name, value in said.items() if name not in ("accuracy", "loss", "samples")}
            self._native.evaluated(said.get("accuracy", math.nan), said.get("loss", math.nan), int(said.get("samples", 0)), metrics)
        return results[0]

"""Runs an example as it is, but for a SIGKILL: killed_example.py STEP EXAMPLE FLAG...

At its first start, rank 0 of the last group kills itself when it has done so many steps.
"""

import os
import pathlib
import runpy
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hooke import _job  # noqa: E402

DEADLY_STEP = int(sys.argv[1])
end_step = _job.Job._end_step


def end_step_and_life(job, *arguments):
    end_step(job, *arguments)
    if (job.group, job.rank, job.place.incarnation, job.step) == (job.groups - 1, 0, 1, DEADLY_STEP):
        os.kill(os.getpid(), signal.SIGKILL)


_job.Job._end_step = end_step_and_life
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")

#!/usr/bin/env python3
"""deploy/slurm/worker.sbatch under a real Slurm: a job trains on its workers, they leave before the time limit and come back, scancel leaves nothing.
And a program that srun starts as a group, without a job."""

import os
import pathlib
import sys

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import slurm_fixture  # noqa: E402
from slurm_fixture import ADDRESS, CPUS, JOB, PROGRAMS, WAITING_JOB  # noqa: E402


class Pilot(slurm_fixture.SlurmTestCase):
    def pilot(self, *arguments, path=True, **more):
        """Submits worker.sbatch for both nodes, with `arguments` for sbatch. Returns its job id."""
        flags = ["--coordinator", ADDRESS, "--token-file", self.token, "--site", "hpc", "--allow-commands"]
        search = f"{PROGRAMS}:{os.environ['PATH']}" if path else os.environ["PATH"]
        return self.slurm.submit("--nodes=2", "--exclusive", *arguments, HERE / "worker.sbatch", *flags, PATH=search, TMPDIR=str(self.temporary), **more)

    def log(self, slurm_job):
        return (self.folder / f"hooke-worker-{slurm_job}.log").read_text()

    def test_a_job_trains_and_scancel_leaves_nothing(self):
        pilot = self.pilot()
        workers = [f"n0-{pilot}", f"n1-{pilot}"]
        self.wait_for("both workers are there", lambda: self.alive() == workers)
        self.assertEqual([self.workers()[name]["slots"] for name in workers], [CPUS, CPUS])
        job_id = self.submit(JOB.replace("EPOCHS", "1"))
        self.wait_for("the job has succeeded", lambda: self.job(job_id)["state"] == "succeeded")
        job_id = self.submit(JOB.replace("EPOCHS", "1000"))
        self.runs(job_id, 1, steps=20)
        self.slurm.call("scancel", pilot)
        self.check_nothing_is_left()
        self.assertEqual(self.slurm.job(pilot)["JobState"], "CANCELLED")
        self.assertEqual(self.log(pilot).count("stopped"), 2, self.log(pilot))

    def test_workers_leave_before_the_time_limit_and_come_back(self):
        # Slurm looks at limits each 30 s, and sends the signal up to 60 s early.
        pilot = self.pilot("--time=1", "--signal=B:USR1@55", HOOKE_REQUEUE="1")
        self.wait_for("both workers are there", lambda: len(self.alive()) == 2)
        job_id = self.submit(WAITING_JOB)
        self.runs(job_id, 1)
        self.wait_for("the job was requeued", lambda: int(self.slurm.job(pilot)["Restarts"]) >= 1)
        log = self.log(pilot)
        self.assertIn("worker.sbatch: the time limit is near: the workers end\n", log)
        self.assertGreaterEqual(log.count("stopped"), 2, log)
        self.assertNotIn("TIME LIMIT", log)
        self.runs(job_id, 2)
        self.slurm.call("scancel", pilot)
        self.check_nothing_is_left()

    def test_workers_leave_when_they_are_told_to(self):
        pilot = self.pilot()
        self.wait_for("both workers are there", lambda: len(self.alive()) == 2)
        self.slurm.call("scancel", "--batch", "--signal=TERM", pilot)
        self.check_nothing_is_left()
        self.assertEqual([self.slurm.job(pilot)[key] for key in ("JobState", "ExitCode", "Restarts")], ["COMPLETED", "0:0", "0"], self.log(pilot))

    def test_a_missing_program_is_named(self):
        pilot = self.pilot(path=False)
        self.check_nothing_is_left()
        self.assertEqual(self.slurm.job(pilot)["JobState"], "FAILED")
        self.assertIn("hooke-worker is not on the PATH of node slurm-test", self.log(pilot))


GROUP = """import hooke.numpy, numpy
job = hooke.numpy.init()
print(f"rank {job.rank} of {job.ranks} has {job.all_reduce(numpy.ones(1), 'sum')[0]:g}", flush=True)
"""


class Srun(slurm_fixture.SlurmTestCase):
    def srun(self, mpi):
        """Starts a program of the user's own on two tasks of a node. Returns what it printed."""
        program = self.folder / "group.py"
        program.write_text(GROUP)
        environment = {"PYTHONPATH": str(HERE.parents[1] / "python"), "HOOKE_LIBRARY": str(PROGRAMS / "libhooke.so"), "PYTHONDONTWRITEBYTECODE": "1"}
        return self.slurm.call("srun", "--nodes=1", "--ntasks=2", f"--mpi={mpi}", "sh", "-c", f"/usr/bin/python3 {program} 2>&1 || true", **environment)

    def test_tasks_are_a_group(self):
        self.assertEqual(sorted(self.srun("pmix").splitlines()), ["rank 0 of 2 has 2", "rank 1 of 2 has 2"])

    def test_tasks_that_do_not_know_of_each_other_are_refused(self):
        printed = self.srun("none")
        self.assertEqual(printed.count("SLURM_STEP_NUM_TASKS says that srun started 2 processes"), 2, printed)
        self.assertNotIn("rank 0", printed)


if __name__ == "__main__":
    slurm_fixture.main(__file__)

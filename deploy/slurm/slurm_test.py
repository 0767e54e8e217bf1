#!/usr/bin/env python3
"""deploy/slurm/worker.sbatch under a real Slurm: a job trains on its workers, they leave before the time limit and come back, scancel leaves nothing."""

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


if __name__ == "__main__":
    slurm_fixture.main(__file__)

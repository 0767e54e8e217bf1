#!/usr/bin/env python3
"""Slurm preempts batch jobs of a site for a job of a higher partition: groups leave and come back, and no batch job is submitted twice."""

import pathlib
import re
import sys

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import slurm_fixture  # noqa: E402
from slurm_fixture import CPUS, DATA  # noqa: E402

# After a preemption, a batch job of `gentle` or `cancelled` has 60 s until it is killed. One of `requeued` has none.
PARTITIONS = """PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=gentle Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=60 State=UP
PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime=60 State=UP
PartitionName=requeued Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=0 State=UP
PartitionName=urgent Nodes=ALL PriorityTier=9 PreemptMode=OFF State=UP"""
# This job trains longer than the test runs.
JOB = f"""name: preempted
model: small-mlp
data: {{format: idx, train: {DATA}, test: {DATA}}}
train: {{epochs: 100000, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.01, momentum: 0.9}}}}
groups: {{count: 2, ranks: {CPUS}, site: hpc}}
averaging: {{rule: elastic, interval: 16}}
sites: {{hpc: {{slurm: {{partition: PARTITION}}}}}}
"""


class Preemption(slurm_fixture.SlurmTestCase):
    partitions = PARTITIONS

    def starts_with(self, partition):
        """Starts an agent, and a job whose two groups have a batch job each, so that they take both nodes."""
        self.agent()
        job_id = self.submit(JOB.replace("PARTITION", partition))
        self.runs(job_id, 1, steps=20)
        self.assertEqual(set(self.queue().values()), {"RUNNING"})
        return job_id, set(self.queue())

    def other_user(self):
        """Another user's job that takes all of one node. Returns its id, once it runs."""
        job = self.slurm.submit("--partition=urgent", "--exclusive", "--nodes=1", "--uid=65534", "--job-name=urgent", "--output=/dev/null", "--wrap=sleep 3600")
        self.wait_for("the other user's job runs", lambda: self.queue().get(job) == "RUNNING")
        return job

    def own(self, other):
        """Returns Slurm's queue without the other user's job."""
        return {job: state for job, state in self.queue().items() if job != other}

    def waits(self, job_id):
        """Waits until one group waits for Slurm and the other runs. Returns their numbers."""

        def one_waits():
            groups = self.job(job_id)["groups"]
            waiting = [group for group in groups if group["state"] == "waiting" and re.search(r"Slurm job \d+ waits: (Resources|Priority|BeginTime)", group["reason"])]
            running = [group for group in groups if group["state"] == "running"]
            return (waiting[0]["group"], running[0]["group"]) if len(waiting) == len(running) == 1 else None

        return self.wait_for("one group waits for Slurm", one_waits)

    def check_comes_back(self, job_id, other, group, queue):
        """The group waits as long as the other user's job runs. Then the batch job that waits runs it."""
        self.assertEqual(self.own(other), queue)
        self.slurm.call("scancel", other)
        self.runs(job_id, 1, steps=20)
        self.wait_for("the group runs in its second start", lambda: self.job(job_id)["groups"][group]["incarnation"] == 2)
        self.assertEqual(set(self.queue()), set(queue), "batch jobs")

    def ends(self, job_id):
        self.hooke("cancel", job_id)
        self.check_nothing_is_left()

    def check_leaves(self, partition):
        job_id, first = self.starts_with(partition)
        other = self.other_user()
        group, stays = self.waits(job_id)
        log = self.hooke("logs", job_id)
        left = re.search(rf"group {group} rank 0: .*: left after step (\d+), as asked", log)
        self.assertTrue(left, log)
        queue = self.own(other)
        self.assertEqual(len(queue), 2, queue)
        # The batch job ended by itself once the group had left. The one that waits is a new one.
        (gone,) = first - set(queue)
        self.assertEqual(self.slurm.job(gone)["JobState"], "COMPLETED", self.slurm.job(gone))
        self.check_comes_back(job_id, other, group, queue)
        log = self.hooke("logs", job_id)
        self.assertRegex(log, rf"group {group} was started again and goes on from step {left[1]} with its own state of step {left[1]}")
        self.assertEqual(self.job(job_id)["groups"][stays]["incarnation"], 1, "the other group has not been started again")
        self.ends(job_id)

    def test_groups_leave_a_batch_job_that_will_be_requeued(self):
        self.check_leaves("gentle")

    def test_groups_leave_a_batch_job_that_will_be_cancelled(self):
        self.check_leaves("cancelled")

    def test_a_requeued_batch_job_comes_back_and_no_other_is_submitted(self):
        job_id, first = self.starts_with("requeued")
        other = self.other_user()
        group, _ = self.waits(job_id)
        queue = self.own(other)
        self.assertEqual(set(queue), first)
        self.check_comes_back(job_id, other, group, queue)
        self.assertEqual(sorted(int(self.slurm.job(job)["Restarts"]) for job in first), [0, 1])
        self.ends(job_id)


if __name__ == "__main__":
    slurm_fixture.main(__file__)

#!/usr/bin/env python3
"""`hooke-worker --slurm` under a real Slurm: batch jobs come with the groups that wait for the site, and go with them."""

import pathlib
import random
import re
import sys

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import slurm_cluster  # noqa: E402
import slurm_fixture  # noqa: E402
from slurm_fixture import CPUS, JOB, WAITING_JOB  # noqa: E402

JOBS = 50
SEED = 20261127
GPU_JOB = """name: gpus
command: [sh, -c, "echo sees $CUDA_VISIBLE_DEVICES"]
groups: {count: 1, ranks: 2, site: hpc, gpus_per_rank: 2}
averaging: {rule: none}
"""
ONE_GROUP = WAITING_JOB.replace("count: 2", "count: 1")


class Site(slurm_fixture.SlurmTestCase):
    def gets_a_batch_job(self, job_id):
        self.wait_for(f"Slurm has a batch job of {job_id}", lambda: f"hooke-{job_id}" in self.slurm.call("squeue", "--noheader", "--format=%j").split())

    def reasons(self, job_id):
        return "\n".join(group["reason"] for group in self.job(job_id)["groups"])

    def check_all_is_free(self):
        self.check_nothing_is_left()
        self.wait_for("the workers are forgotten", lambda: self.workers() == {})
        self.assertEqual(self.slurm.call("sinfo", "--noheader", "--format=%C").split("/")[0], "0", "allocated CPUs")

    def test_a_job_gets_its_workers_from_slurm(self):
        self.agent()
        job_id = self.submit(JOB.replace("EPOCHS", "1"))
        self.wait_for("the job has succeeded", lambda: self.job(job_id)["state"] == "succeeded")
        # The evaluation took no batch job of its own.
        self.assertEqual(len(list((self.folder / "agent" / "slurm").glob("slurm-*.log"))), 2)
        self.assertRegex(self.hooke("logs", job_id), r"site hpc: Slurm jobs? ")
        self.check_all_is_free()

    def test_ranks_get_the_gpus_that_their_job_asks_for(self):
        self.agent()
        job_id = self.submit(GPU_JOB)
        self.wait_for("the job has succeeded", lambda: self.job(job_id)["state"] == "succeeded")
        log = self.hooke("logs", job_id)
        sees = sorted(re.findall(r"group 0 rank (\d): sees (\S+)", log))
        self.assertEqual(sees, [("0", "0,1"), ("1", "2,3")], log)
        self.check_all_is_free()

    def test_a_group_comes_back_after_its_time_limit(self):
        # Slurm looks at limits each 30 s, and sends the signal up to 60 s early.
        self.agent("--sbatch=--signal=B:USR1@55")
        job_id = self.submit(WAITING_JOB + "sites: {hpc: {slurm: {time: '1'}}}\n")
        self.runs(job_id, 1)
        first = set(self.queue())
        self.assertEqual(len(first), 2)
        self.runs(job_id, 2)
        self.assertEqual(set(self.queue()) & first, set(), "other batch jobs")
        for batch_job in first:
            log = (self.folder / "agent" / "slurm" / f"slurm-{batch_job}.log").read_text()
            self.assertIn("worker.sbatch: the time limit is near: the workers end\n", log)
            self.assertNotIn("TIME LIMIT", log, "Slurm itself has ended the workers")
        self.hooke("cancel", job_id)
        self.check_all_is_free()

    def test_the_end_of_a_batch_job_is_told(self):
        """Somebody cancels a batch job, and another one reaches its time limit before its groups have left. A group that waits shows how the last batch job
        ended, and so does the log."""
        self.agent()
        job_id = self.submit(ONE_GROUP)
        starts = 0
        for said, end in (
            ("Slurm job {id} ended: CANCELLED", ["scancel", "{id}"]),
            ("Slurm job {id} ended: TIMEOUT", ["scontrol", "update", "JobId={id}", "EndTime=now"]),
            ("Slurm requeued Slurm job {id}", ["scontrol", "requeue", "{id}"]),
        ):
            starts += 1
            self.wait_for(f"start {starts} runs", lambda: self.runs_in(job_id, starts))
            self.agent_looks()
            (batch_job,) = (number for number, state in self.queue().items() if state == "RUNNING")
            # The next batch job must wait, so that the group's reason can be seen.
            self.drain("DRAIN")
            self.slurm.call(*(word.format(id=batch_job) for word in end))
            said = said.format(id=batch_job)
            self.wait_for(said, lambda: re.search(rf"{said}; Slurm job \d+ waits: ", self.reasons(job_id)))
            self.assertIn(f"site hpc: {said}", self.hooke("logs", job_id))
            self.drain("RESUME")
        self.hooke("cancel", job_id)
        self.check_all_is_free()

    def runs_in(self, job_id, start):
        (group,) = self.job(job_id)["groups"]
        return group["state"] in ("starting", "running") and group["incarnation"] == start

    def agent_looks(self):
        """Waits until the agent has asked the coordinator and then Slurm since this call. Meanwhile nobody else calls squeue."""

        def asked():
            found = re.search(r"REQUEST_JOB_INFO .*count:(\d+)", self.slurm.call("sdiag"))
            return int(found[1]) if found else 0

        before = asked()
        self.wait_for("the agent looks twice", lambda: asked() >= before + 2)

    def drain(self, state):
        why = ["Reason=test"] if state == "DRAIN" else []
        self.slurm.call("scontrol", "update", f"NodeName={','.join(slurm_cluster.NODES)}", f"State={state}", *why)

    def test_the_queue_says_what_slurm_says(self):
        self.agent()
        full = self.submit(WAITING_JOB.replace("ranks: 1", f"ranks: {CPUS}"))
        self.runs(full, 1)
        waits = self.submit(ONE_GROUP)
        self.wait_for("Slurm's reason", lambda: "waits: Resources" in self.reasons(waits) or "waits: Priority" in self.reasons(waits))
        # Only an administrator could release the batch job, so it is replaced.
        self.slurm.call("scontrol", "hold", next(batch_job for batch_job, state in self.queue().items() if state == "PENDING"))
        self.wait_for("the hold", lambda: "was held back by Slurm or an administrator: JobHeldAdmin" in self.reasons(waits))
        wrong = self.submit(ONE_GROUP + "sites: {hpc: {slurm: {partition: nowhere}}}\n")
        self.wait_for("Slurm's refusal", lambda: "invalid partition" in self.reasons(wrong).lower())
        self.hooke("cancel", wrong)
        self.hooke("cancel", full)
        self.runs_one(waits)
        self.hooke("cancel", waits)
        self.check_all_is_free()

    def runs_one(self, job_id):
        self.wait_for(f"{job_id} runs", lambda: self.job(job_id)["groups"][0]["state"] in ("starting", "running"))

    def test_an_agent_that_is_started_again_goes_on(self):
        agent = self.agent("--sbatch=--hold")
        job_id = self.submit(WAITING_JOB)
        self.wait_for("two batch jobs", lambda: len(self.queue()) == 2)
        first = set(self.queue())
        agent.kill()
        agent.wait()
        self.before.remove("hooke-worker")
        # The coordinator takes the new process for the same agent. A different agent would have to wait until the first
        # one was silent for 90 s.
        ready = self.folder / "ready"
        self.agent(f"--ready-file={ready}")
        self.wait_for("the agent is accepted again", ready.exists, seconds=60)
        for held in first:
            self.slurm.call("scontrol", "release", held)
        self.runs(job_id, 1)
        self.assertEqual(set(self.queue()), first)
        self.hooke("cancel", job_id)
        self.check_all_is_free()

    def test_jobs_that_are_cancelled_at_random_leave_nothing(self):
        """Some of the jobs have a batch job when they are cancelled. Others are cancelled before that, or while it is submitted."""
        self.agent()
        chance = random.Random(SEED)
        print("seed", SEED, flush=True)
        going, known, with_batch_job = [], [], 0
        while len(known) < JOBS or going:
            if len(known) < JOBS and (not going or chance.random() < 0.6):
                going.append(self.submit(ONE_GROUP))
                known.append(going[-1])
            else:
                job_id = going.pop(chance.randrange(len(going)))
                if chance.random() < 0.3:
                    self.gets_a_batch_job(job_id)
                    with_batch_job += 1
                self.hooke("cancel", job_id)
        self.assertGreaterEqual(with_batch_job, JOBS // 10)
        self.assertEqual([self.job(job_id)["state"] for job_id in known], ["cancelled"] * JOBS)
        self.check_all_is_free()


class LostNode(slurm_fixture.SlurmTestCase):
    """Slurm takes a node for dead after 3 s without its slurmd, and takes it back with the next slurmd."""

    partitions = f"SlurmdTimeout=3\nReturnToService=2\n{slurm_cluster.PARTITIONS}"

    def test_the_next_worker_removes_what_killed_ones_have_left(self):
        self.agent()
        job_id = self.submit(JOB.replace("EPOCHS", "1000").replace("count: 2", "count: 1"))
        self.wait_for("the group trains", lambda: self.steps(job_id, 1))
        (lost,) = self.queue()
        node = self.slurm.job(lost)["NodeList"]
        slurmd = self.slurm.slurmds[node]
        slurmd.kill()
        slurmd.wait()
        self.wait_for(f"{node} is down", lambda: "down" in self.slurm.call("sinfo", "--noheader", f"--nodes={node}", "--format=%T"))
        # The next batch job must run on that node.
        (other,) = set(slurm_cluster.NODES) - {node}
        self.slurm.call("scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=test")
        self.slurm.start_slurmd(node)
        self.wait_for("the group trains in its second start", lambda: self.steps(job_id, 2))
        self.assertIn(f"site hpc: Slurm requeued Slurm job {lost}", self.hooke("logs", job_id))
        self.hooke("cancel", job_id)
        self.check_nothing_is_left()

    def steps(self, job_id, start):
        (group,) = self.job(job_id)["groups"]
        return group["incarnation"] >= start and (group["progress"] or {}).get("step", 0) > 20


if __name__ == "__main__":
    slurm_fixture.main(__file__)

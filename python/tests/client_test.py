#!/usr/bin/python3
"""Jobs from Python: hooke.submit, watch, wait, cancel, logs and export, on a real cluster of `hooke up`."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import skips  # noqa: E402
import up_cluster  # noqa: E402

SECONDS = 120
# Steps a vector with the numbers 0 to 3 down to zero.
TRAINS = """
import sys
sys.dont_write_bytecode = True
import numpy, hooke.numpy as h
job = h.init()
w = job.register({"w": numpy.arange(4, dtype=numpy.float32)})["w"]
while job.step < 20:
    job.gradients["w"][...] = w
    job.combine(float(w.sum()))
    w -= 0.5 * job.gradients["w"]
    job.end_step()
job.finish()
"""
# Rank 1 comes to no collective.
LATE = """
import signal, sys
sys.dont_write_bytecode = True
import numpy, hooke.numpy as h
job = h.init()
job.register({"w": numpy.zeros(3, dtype=numpy.float32)})
while job.rank == 1:
    signal.pause()
job.barrier()
"""


def command(*words, **more):
    return {"name": "test", "command": list(words), "averaging": {"rule": "none"}, "groups": {"count": 1, "ranks": 1}, **more}


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, cls.address = up_cluster.start(cls, workers=1)

    def raises(self, code, text, call):
        with self.assertRaises(hooke.Error) as caught:
            call()
        self.assertIn(text, caught.exception.message)
        self.assertEqual(caught.exception.code, code, caught.exception.message)

    def test_from_a_dictionary_to_the_trained_model(self):
        environment = {"PYTHONPATH": str(PACKAGE)}
        wanted = {"averaging": {"rule": "average", "interval": 4}, "groups": {"ranks": 2}}
        job = hooke.submit(command(sys.executable, "-c", TRAINS, environment=environment, **wanted))
        statuses = list(hooke.watch(job))
        self.assertEqual(statuses[-1]["state"], "succeeded", statuses[-1]["reason"])
        self.assertEqual(statuses[-1]["groups"][0]["progress"]["step"], 20)
        self.assertEqual(hooke.wait(job)["job_id"], job)
        self.assertIn(job, [each["job_id"] for each in hooke.jobs()])
        self.assertEqual(hooke.status(job)["state"], "succeeded")
        self.assertTrue(list(hooke.logs(job))[-1].endswith("coordinator job succeeded: all groups have finished"))
        profile = subprocess.run([os.environ["HOOKE_PROGRAM"], "profile", job], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn(f"{job}: 2 ranks of 1 group", profile)
        self.assertRegex(profile, r"all-reduce +64 B-128 B +40 ")  # 20 steps of two ranks.
        path = self.folder / "model.safetensors"
        said = hooke.export(job, path)
        self.assertEqual((said["path"], said["tensors"], said["values"]), (str(path), 1, 4))
        self.assertEqual(said["bytes"], path.stat().st_size)
        self.raises(hooke.Code.UNKNOWN, str(path), lambda: hooke.export(job, path))
        hooke.export(job, path, force=True)

    def test_ranks_wait_as_long_as_the_job_says(self):
        wanted = {"environment": {"PYTHONPATH": str(PACKAGE)}, "groups": {"ranks": 2}, "collectives": {"timeout_seconds": 1.5}}
        job = hooke.submit(command(sys.executable, "-c", LATE, **wanted))
        with contextlib.closing(hooke.logs(job, follow=True)) as lines:
            self.assertTrue(any("DEADLINE_EXCEEDED" in line and "(deadline 1.5s)" in line for line in lines))
        hooke.cancel(job)

    def test_files_reach_the_group(self):
        os.makedirs("brought", exist_ok=True)
        pathlib.Path("brought/words.txt").write_text("one two")
        script = "cat brought/words.txt; ls"
        job = hooke.submit({**command("sh", "-c", script), "files": ["brought"]})
        hooke.wait(job, timeout=SECONDS)
        said = [line.partition("rank 0: ")[2] for line in hooke.logs(job) if "rank 0: " in line]
        self.assertEqual(said, ["one twobrought"])
        self.assertEqual((hooke.status(job)["spec"]["files"], hooke.status(job)["spec"]["file_bytes"]), (1, 7))
        self.raises(hooke.Code.INVALID_ARGUMENT, "files: \"missing\" is not there", lambda: hooke.submit({**command("true"), "files": ["missing"]}))

    def test_file_and_letters_of_all_kinds(self):
        path = self.folder / "job.yaml"
        path.write_text("name: filed\ncommand: [sh, -c, 'echo \"hé 😀\"']\naveraging: {rule: none}\ngroups: {count: 1, ranks: 1}\n")
        text = 'hé 😀 "\\"'
        for job in (hooke.submit(path), hooke.submit(command("printf", "%s\\n", text))):
            hooke.wait(job, timeout=SECONDS)
            said = [line.partition("rank 0: ")[2] for line in hooke.logs(job) if "rank 0: " in line]
            self.assertIn(said, (["hé 😀"], [text]))

    def test_failed_job(self):
        job = hooke.submit(command("sh", "-c", "echo no such file >&2; exit 3"))
        last = list(hooke.watch(job))[-1]
        self.assertEqual(last["state"], "failed")
        self.assertIn("no such file", last["reason"])
        self.raises(hooke.Code.UNKNOWN, f"job {job} failed: ", lambda: hooke.wait(job))

    def test_cancelled_job(self):
        job = hooke.submit(command("sh", "-c", "echo here; sleep 1000"))
        with contextlib.closing(hooke.logs(job, follow=True)) as lines:
            self.assertTrue(any("rank 0: here" in line for line in lines))
        with contextlib.closing(hooke.watch(job)) as statuses:
            self.assertEqual(next(statuses)["state"], "running")
        self.raises(hooke.Code.DEADLINE_EXCEEDED, f"job {job} has not ended after 0.5 s; it is running", lambda: hooke.wait(job, timeout=0.5))
        self.assertEqual(hooke.cancel(job)["state"], "cancelled")
        self.raises(hooke.Code.CANCELLED, f"job {job} was cancelled: ", lambda: hooke.wait(job))
        self.assertEqual(hooke.cancel(job)["state"], "cancelled")

    def test_reader_that_stops_ends_the_program(self):
        job = hooke.submit(command("sleep", "1000"))
        statuses = hooke.watch(job)
        next(statuses)
        self.assertEqual(len(self.children()), 1)
        statuses.close()
        self.assertEqual(self.children(), [])
        hooke.cancel(job)

    def children(self):
        """The running `hooke watch` of this process."""
        pids = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return [pid for pid in pids if b"\0watch\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def test_wrong_job_or_argument(self):
        wrong = hooke.Code.INVALID_ARGUMENT
        with self.assertRaises(hooke.Error) as caught:
            hooke.submit({**command("true"), "train": {"epochs": 0}, "averging": {}})
        self.assertEqual(caught.exception.code, wrong)
        lines = caught.exception.message.splitlines()
        self.assertTrue(lines[1].startswith("train.epochs: 0 is out of range"), lines)
        self.assertTrue(lines[0].startswith("averging: unknown key"), lines)
        self.raises(wrong, "that a job file cannot have", lambda: hooke.submit({"name": float("nan")}))
        self.raises(wrong, "/nowhere.yaml: no such file", lambda: hooke.submit("/nowhere.yaml"))
        self.raises(wrong, '"zzz" is no address', lambda: hooke.jobs(coordinator="zzz"))

    def test_unknown_job(self):
        for name in ("nope-1", "--help"):
            for call in (hooke.status, hooke.cancel, hooke.wait, lambda j: next(hooke.watch(j)), lambda j: next(hooke.logs(j))):
                self.raises(hooke.Code.UNKNOWN, f"no job {name}", lambda call=call, name=name: call(name))

    def test_coordinator(self):
        job = hooke.submit(command("true"))
        self.assertEqual(hooke.status(job, coordinator=self.address)["job_id"], job)
        self.raises(hooke.Code.UNKNOWN, "cannot reach the coordinator at 127.0.0.1:1", lambda: hooke.jobs(coordinator="127.0.0.1:1"))


class Program(unittest.TestCase):
    def test_where_it_is_looked_for(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, clear=True):
            own = pathlib.Path(folder) / "hooke"
            os.environ.update(HOOKE_LIBRARY=f"{folder}/libhooke.so", PATH="")
            own.write_text("#!/bin/sh\n")
            self.assertNotEqual(self.found(), str(own), "it is not executable")
            own.chmod(0o755)
            self.assertEqual(self.found(), str(own))
            os.environ["HOOKE_PROGRAM"] = f"{folder}/other"
            self.assertIn(f"the program `hooke` was not found. Tried:\n  {folder}/other\n", self.found())

    def found(self):
        try:
            return hooke._client.program()
        except hooke.Error as error:
            return error.message


if __name__ == "__main__":
    skips.main()

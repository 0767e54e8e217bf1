#!/usr/bin/python3
"""Tests the check of a GPU where there is none: what is carried, what it decides, and that it leaves nothing behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path[:0] = [str(HERE), str(TREE / "deploy")]
import check  # noqa: E402
import skips  # noqa: E402
import stage  # noqa: E402
from report import FAILED, PASSED, Found, Report, failed  # noqa: E402

PROGRAMS = pathlib.Path("deploy/gpu_check/bin").resolve()
CARRIED_BYTES_MAX = 60 << 20
GPT2 = ["--samples=24", "--batch=4", "--width=16", "--tokens=50", "--features=16", "--heads=2", "--layers=1", "--unmeasured=1"]


class Carried(unittest.TestCase):
    """The folder that travels to the machine with the device."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name) / "gpu-check"
        stage.stage(PROGRAMS, TREE, cls.folder)

    def run_check(self, *flags):
        """Runs it where torch sees no device, whatever the machine has."""
        report = pathlib.Path(self.scratch.name) / "report"
        command = ["/usr/bin/python3", str(self.folder / "check.py"), f"--report={report}", *flags]
        result = subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
        return result, report

    def test_without_a_device_each_part_says_so(self):
        result, report = self.run_check()
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("finds 0 CUDA devices", result.stdout)
        self.assertIn(f"0 passed, 0 FAILED, {len(check.PARTS)} skipped", result.stdout)
        parts = json.loads((report / "report.json").read_text())
        self.assertEqual([part["part"] for part in parts], list(check.PARTS))
        for part in parts:
            self.assertEqual(part["outcome"], "skipped")
            self.assertIn("finds 0 CUDA devices", part["why"])
        self.assertIn("| `groups` | skipped |", (report / "report.md").read_text())

    def test_some_parts_and_a_part_that_is_none(self):
        result, report = self.run_check("--only=torch,groups")
        self.assertEqual([part["part"] for part in json.loads((report / "report.json").read_text())], ["torch", "groups"], result.stdout)
        result, _ = self.run_check("--only=nothing")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no part 'nothing'; the parts are machine, groups,", result.stdout)

    def test_it_is_small(self):
        """xz, with which it travels, packs it more tightly, but takes long."""
        archive = pathlib.Path(self.scratch.name) / "gpu-check.tar.gz"
        subprocess.run(["tar", "-C", self.scratch.name, "-czf", str(archive), "gpu-check"], check=True)
        print(f"{archive.stat().st_size / 2**20:.1f} MiB", flush=True)
        self.assertLess(archive.stat().st_size, CARRIED_BYTES_MAX)

    def test_all_libraries_but_the_systems_are_there(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder / "lib")}
        code = [file for folder in ("bin", "lib", "plugins") for file in (self.folder / folder).rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreater(len(code), 100)
        for file in code:
            listed = subprocess.run(["ldd", str(file)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            for name, path in re.findall(r"^\s*(\S+) => (\S+)", listed, re.MULTILINE):
                if name not in stage.OF_THE_SYSTEM:
                    self.assertEqual(path, str(self.folder / "lib" / name), file)

    def test_scripts_run_under_the_carried_mpi_and_in_a_job(self):
        with tempfile.TemporaryDirectory() as scratch:
            here = check.Check(self.folder, pathlib.Path(scratch), pathlib.Path(scratch) / "log", 300)
            script = here.source("python/examples/gpt2.py")
            two = here.run([*here.mpirun(), "-n", 2, "/usr/bin/python3", script, *GPT2], 120, OMP_NUM_THREADS="1")
            self.assertEqual((two.status, two.output.count("epoch 0: loss")), (0, 2), two.output)
            self.assertIsNotNone(check.speed_of(two))
            job = [here.program("hooke"), "run", f"--state-dir={scratch}/cluster", f"--programs-dir={self.folder / 'bin'}"]
            ended = here.run([*job, "--", "/usr/bin/python3", script, *GPT2], 120)
            self.assertEqual(ended.status, 0, ended.output)
            self.assertIsNotNone(check.speed_of(ended))


class Decisions(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        folder = self.scratch / "folder"
        (folder / "lib").mkdir(parents=True)
        self.check = check.Check(folder, self.scratch, self.scratch / "log.txt", 100)

    def compare(self, plain, other, least=0.98):
        def runs(speeds):
            values = iter(speeds)
            return lambda: check.Ended(0, f"speed: {next(values)} images per second")

        return check.in_turn(self.check, {"plain": runs(plain), "with Hooke": runs(other)}, least, "images", 10)

    def test_a_ratio_decides(self):
        self.assertEqual(self.compare([100, 102], [99, 101]).outcome, PASSED)
        found = self.compare([100, 100], [97, 98])
        self.assertEqual((found.outcome, found.why), (FAILED, "0.975 of the speed of plain"))
        self.assertEqual(found.figures[0], ("images per second, plain", "100 and 100"))
        self.assertEqual(self.compare([100, 100], [50, 50], None).outcome, PASSED)

    def test_a_script_that_fails_is_no_measurement(self):
        broken = lambda: check.Ended(1, "speed: 5 images per second\nRuntimeError: out of memory\n")  # noqa: E731
        found = check.in_turn(self.check, {"plain": broken, "with Hooke": broken}, 0.98, "images", 10)
        self.assertEqual((found.outcome, found.why), (FAILED, "plain: exit status 1; last line: RuntimeError: out of memory; log.txt has the rest"))

    def test_what_a_program_of_googletest_says(self):
        results = self.scratch / "results.json"
        test = {"name": "A", "classname": "CudaTest", "result": "COMPLETED"}
        left_out = {**test, "name": "B", "result": "SKIPPED"}
        broken = {**test, "name": "C", "failures": [{"failure": "x"}]}
        for tests, status, outcome, why in (
            ([test, left_out], 0, PASSED, ""),
            ([left_out], 0, "skipped", "no device"),
            ([test, broken], 1, FAILED, "failed: CudaTest.C"),
            ([test], 9, FAILED, "exit status 9; last line: no device; log.txt has the rest"),
        ):
            results.write_text(json.dumps({"testsuites": [{"testsuite": tests}]}))
            found = check.of_gtest(check.Ended(status, "x.cc:1: Skipped\nno device\n"), 10, results)
            self.assertEqual((found.outcome, found.why), (outcome, why))
        results.unlink()
        self.assertEqual(check.of_gtest(check.Ended(None, "begins"), 10, results).why, "not done after 10 s; last line: begins; log.txt has the rest")

    def test_a_program_that_takes_too_long_ends_with_all_it_started(self):
        # The child ignores SIGTERM, and would hold the output open for long.
        ended = self.check.run(["sh", "-c", "(trap '' TERM; echo $$; exec sleep 1000) & wait"], 1)
        self.assertIsNone(ended.status)
        left = subprocess.run(["pgrep", "-f", "^sleep 1000$", "-g", ended.lines()[0]], stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(left, "")
        self.assertIn("exit status None", (self.scratch / "log.txt").read_text())

    def test_parts_without_time_are_skipped_and_the_report_has_the_others(self):
        report = Report(self.scratch / "report")
        (self.scratch / "late").mkdir()
        (self.scratch / "again").mkdir()
        late = check.Check(self.check.folder, self.scratch / "late", self.scratch / "log.txt", seconds=1)
        with unittest.mock.patch.object(check, "why_no_device", lambda _: ""):
            check.run_all(late, ["groups"], report)
        # A part that the end of the time has cut short has not failed.
        with unittest.mock.patch.dict(check.PARTS, {"cut": check.Part("it", lambda here: setattr(here, "_ends", 0) or failed("not done"))}):
            with unittest.mock.patch.object(check, "why_no_device", lambda _: ""):
                check.run_all(check.Check(self.check.folder, self.scratch / "again", self.scratch / "log.txt", 100), ["cut"], report)
        report.add("more", "about it", 1.5, Found(PASSED, "", (("speed", "7"),)))
        text = (self.scratch / "report/report.md").read_text()
        self.assertIn("| `groups` | skipped | 0.0 | no time was left |", text)
        self.assertIn("| `cut` | skipped | 0.0 | the time was over: not done |", text)
        self.assertIn("| `more` | passed | 1.5 | about it |", text)
        self.assertIn("| `more` | speed | 7 |", text)

    def test_sigterm_takes_the_scratch_folder_away(self):
        folder = self.scratch / "own"
        (folder / "lib").mkdir(parents=True)
        for name in ("check.py", "report.py"):
            (folder / name).write_text((HERE / name).read_text())
        # In place of torch: its import never ends.
        (folder / "torch.py").write_text("import signal\nsignal.pause()\n")
        environment = {**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(self.scratch)}
        (folder / "tree").mkdir()
        (folder / "tree/python").symlink_to(folder)
        process = subprocess.Popen([sys.executable, str(folder / "check.py"), f"--report={folder / 'report'}"], env=environment)
        self.addCleanup(process.kill)
        ends = time.monotonic() + 60
        while not list(self.scratch.glob("hooke-gpu-check-*/lib")) and time.monotonic() < ends:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 143)
        self.assertEqual(list(self.scratch.glob("hooke-gpu-check-*")), [])


if __name__ == "__main__":
    skips.main()

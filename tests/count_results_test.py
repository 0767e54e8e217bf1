#!/usr/bin/env python3
"""Tests count_results.py: each way a test or target can end is counted once, and reported with its reason if it did not pass."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
PROGRAM = pathlib.Path(__file__).resolve().parent / "count_results.py"

PASSED = '<testcase classname="A" name="One"/>'
FAILED = '<testcase classname="A" name="Two"><failure message="1 is not 2"/></testcase>'
SKIPPED = '<testcase classname="A" name="Three"><skipped message="file.cc:3&#10;no GPU here"/></testcase>'
DISABLED = '<testcase classname="A" name="Four" result="suppressed"/>'


class CountResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-count-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.events = [{"id": {"workspace": {}}, "workspaceInfo": {"localExecRoot": f"{self.folder}/execroot/hooke"}}]

    def configure(self, label, kind="cc_test rule", tags=()):
        self.events.append({"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind, "tag": list(tags)}})

    def complete(self, label, **outcome):
        self.events.append({"id": {"targetCompleted": {"label": label}}, **outcome})

    def skip(self, label, kind="cc_test rule", tags=()):
        self.configure(label, kind, tags)
        self.complete(label, aborted={"reason": "SKIPPED", "description": "Target was skipped."})

    def run_test(self, label, status, xml, log=None):
        """Runs one test. `xml` is the content of its test.xml, and `log` that of its test.log; None if there is no such file."""
        path = self.folder / f"a folder/{len(self.events)}/test.xml"
        for file, content in ((path, xml), (path.with_name("test.log"), log)):
            file.unlink(missing_ok=True)
            if content is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
        self.configure(label)
        self.complete(label, completed={"success": True})
        output = [{"name": "test.log", "uri": "file:///log"}, {"name": "test.xml", "uri": path.as_uri()}]
        self.events.append({"id": {"testResult": {"label": label, "run": 1}}, "testResult": {"status": status, "testActionOutput": output}})

    def assert_says(self, lines, exit_status):
        path = self.folder / "events.json"
        path.write_text("".join(json.dumps(event) + "\n" for event in self.events))
        result = subprocess.run([sys.executable, PROGRAM, path], capture_output=True, text=True)
        self.assertEqual((result.stdout.splitlines(), result.returncode, result.stderr), (lines, exit_status, ""))

    def test_cases_are_counted_and_those_that_did_not_pass_are_named(self):
        self.run_test("//a:a_test", "PASSED", f"<testsuites>{PASSED}{SKIPPED}{DISABLED}</testsuites>")
        self.assert_says(["skipped: //a:a_test A.Three: no GPU here", "skipped: //a:a_test A.Four: disabled", "1 passed, 0 failed, 2 skipped"], 0)

    def test_a_failed_case_ends_with_one(self):
        self.run_test("//a:a_test", "FAILED", f"<testsuites>{PASSED}{FAILED}</testsuites>")
        self.assert_says(["failed: //a:a_test A.Two", "1 passed, 1 failed, 0 skipped"], 1)

    def test_a_failed_test_shows_the_end_of_its_log(self):
        self.run_test("//a:a_test", "PASSED", PASSED, "a log of a test that passed\n")
        self.run_test("//a:b_test", "FAILED", FAILED, "".join(f"line {i}\n" for i in range(100)))
        log = [f"    line {i}" for i in range(70, 100)]
        self.assert_says(["failed: //a:b_test A.Two", *log, "1 passed, 1 failed, 0 skipped"], 1)

    def test_a_test_that_left_no_failed_case_behind_failed_all_the_same(self):
        for status, xml, passed in (
            ("TIMEOUT", None, 0),
            ("TIMEOUT", "", 0),
            ("FAILED", f"<testsuites>{PASSED}<testcase", 0),  # Killed while it wrote the file.
            ("FAILED", f"<testsuites>{PASSED}</testsuites>", 1),  # Crashed after its last case.
            ("REMOTE_FAILURE", None, 0),
        ):
            with self.subTest(status=status, xml=xml):
                self.events = []
                self.run_test("//a:a_test", status, xml)
                self.assert_says([f"failed: //a:a_test {status}", f"{passed} passed, 1 failed, 0 skipped"], 1)

    def test_a_target_that_fails_to_build_failed(self):
        self.run_test("//a:a_test", "PASSED", PASSED)
        self.configure("//a:library", "cc_library rule")
        self.complete("//a:library", completed={})
        self.configure("//a:other_test")
        self.complete("//a:other_test", aborted={"reason": "ANALYSIS_FAILURE"})
        lines = ["failed: //a:library FAILED_TO_BUILD", "failed: //a:other_test FAILED_TO_BUILD", "1 passed, 2 failed, 0 skipped"]
        self.assert_says(lines, 1)

    def test_an_interrupted_run_names_the_tests_that_did_not_run(self):
        self.run_test("//a:a_test", "PASSED", PASSED)
        self.configure("//a:b_test")
        aborted = {"reason": "USER_INTERRUPTED"}
        for kind in ("testResult", "testSummary", "targetCompleted"):
            self.events.append({"id": {kind: {"label": "//a:b_test"}}, "aborted": aborted})
        self.events.append({"id": {"targetCompleted": {"label": "//a:library"}}, "aborted": aborted})
        self.assert_says(["failed: //a:b_test NOT_RUN", "1 passed, 1 failed, 0 skipped"], 1)

    def test_only_tests_count_as_skipped(self):
        self.run_test("//a:a_test", "PASSED", PASSED)
        self.skip("//a:library", "cc_library rule")
        self.skip("//a:a_program_named_like_a_test", "cc_binary rule")
        self.skip("//a:b_test")
        self.assert_says(["skipped: //a:b_test: not built by this configuration (its BUILD file says for which it is)", "1 passed, 0 failed, 1 skipped"], 0)

    def test_without_a_toolkit_the_reason_says_what_to_install(self):
        note = self.folder / "external/cuda/missing"
        note.parent.mkdir(parents=True)
        self.run_test("//a:a_test", "PASSED", PASSED)
        self.skip("//a:cuda_test", tags=["exclusive", "cuda"])
        without = "no CUDA Toolkit found: no nvcc on PATH; install it and NCCL, then run tests/run --config=cuda //a:cuda_test"
        with_one = "no part of a build without --config=cuda; run tests/run --config=cuda //a:cuda_test"
        for said, reason in (("no CUDA Toolkit found: no nvcc on PATH", without), ("", with_one), (None, with_one)):
            with self.subTest(said=said):
                note.unlink(missing_ok=True)
                if said is not None:
                    note.write_text(said)
                self.assert_says([f"skipped: //a:cuda_test: {reason}", "1 passed, 0 failed, 1 skipped"], 0)

    def test_none_that_passed_is_a_failure(self):
        self.assert_says(["0 passed, 0 failed, 0 skipped"], 1)
        self.skip("//a:b_test")
        self.assert_says(["skipped: //a:b_test: not built by this configuration (its BUILD file says for which it is)", "0 passed, 0 failed, 1 skipped"], 1)


if __name__ == "__main__":
    unittest.main()

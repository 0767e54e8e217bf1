#!/usr/bin/env python3
"""A test program that gets SIGTERM cleans up, runs no further test and fails."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = """
import pathlib, signal, sys, unittest
sys.path.insert(0, {here!r})
import skips

class Tests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(print, "class cleaned up", flush=True)

    def test_a(self):
        self.addCleanup(print, "cleaned up", flush=True)
        {around}
            print("runs", flush=True)
            signal.pause()
        print("the test went on", flush=True)

    def test_b(self):
        print("the next one ran", flush=True)

skips.main()
"""


class SkipsTest(unittest.TestCase):
    def test_sigterm_ends_a_test_with_its_cleanups(self):
        for around in ("if True:", "with self.subTest():"):
            with self.subTest(around=around), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "program.py")
                script.write_text(PROGRAM.format(here=str(HERE), around=around))
                process = subprocess.Popen([sys.executable, "-B", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(process.kill)
                self.assertEqual(process.stdout.readline(), "runs\n")
                process.send_signal(signal.SIGTERM)
                said, errors = process.communicate(timeout=60)
                self.assertEqual((said, process.returncode), ("cleaned up\nclass cleaned up\n", 1), errors)
                self.assertIn("ended by SIGTERM", errors)


if __name__ == "__main__":
    unittest.main()

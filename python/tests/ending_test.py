#!/usr/bin/python3
"""How a program ends decides what the job hears: hooke._ending in programs of its own. And hooke._native without a library."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 60
PROGRAM = """
import os, sys
sys.dont_write_bytecode = True
from hooke import Code, Error
from hooke._ending import Ending
def fail(code, message):
    print("fail", code.name, message, flush=True)
    os._exit(1)
def leave():
    print("leave", flush=True)
ending = Ending(leave, fail)
"""


def run(program, **environment):
    """Returns (exit status, output, errors)."""
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment}, capture_output=True, text=True, timeout=SECONDS
    )
    return result.returncode, result.stdout, result.stderr


class Ending(unittest.TestCase):
    def check(self, end, status, output):
        result = run(PROGRAM + end)
        self.assertEqual((result[0], result[1].splitlines()[:1]), (status, [output]), result)
        return result

    def test_ends_well(self):
        self.check("", 0, "leave")
        self.check("sys.exit()", 0, "leave")
        self.check("exit(0)", 0, "leave")

    def test_exception(self):
        _, out, errors = self.check("def f():\n  raise ValueError('no such thing')\nf()", 1, "fail INVALID_ARGUMENT ValueError: no such thing")
        self.assertIn("in f", out)
        self.assertIn("Traceback (most recent call last)", errors)
        self.check("raise Error(14, 'server away')", 1, "fail UNAVAILABLE hooke._native.Error: server away")
        self.check("try:\n  raise Error(14, 'server away')\nexcept Error as e:\n  raise ValueError('x') from e", 1, "fail UNAVAILABLE ValueError: x")
        self.check("raise KeyboardInterrupt", 1, "fail CANCELLED KeyboardInterrupt")

    def test_message_has_no_underlines(self):
        # Python has the source of a file only, so that only there it underlines.
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(PROGRAM + "def f(x):\n  return 1 + x / 0\nf(2)\n")
            result = subprocess.run(
                [sys.executable, str(path)], env={**os.environ, "PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, timeout=SECONDS
            )
        self.assertIn("return 1 + x / 0", result.stdout)
        self.assertIn("^", result.stderr)
        self.assertNotIn("^", result.stdout)

    def test_message_is_bounded(self):
        _, out, _ = run(PROGRAM + "raise ValueError('é' * 5000)")
        message = out.split(" ", 2)[2].rstrip("\n")
        self.assertEqual(len(message.encode()), 2048)
        self.assertEqual(message, "ValueError: " + "é" * 1018)

    def test_exit_with_a_status(self):
        self.check("sys.exit(3)", 1, "fail INVALID_ARGUMENT the program called sys.exit(3)")
        self.check("quit(2)", 1, "fail INVALID_ARGUMENT the program called sys.exit(2)")
        self.check("sys.exit('bad data')", 1, "fail INVALID_ARGUMENT the program ended with: bad data")
        self.check("import argparse\nargparse.ArgumentParser().error('x')", 1, "fail INVALID_ARGUMENT the program called sys.exit(2)")

    def test_exit_that_was_caught(self):
        self.check("try:\n  sys.exit(3)\nexcept SystemExit:\n  ending.goes_on()", 0, "leave")

    def test_leaving_fails(self):
        self.check("def leave():\n  raise Error(4, 'rank 1 is gone')\nending._leave = leave", 1, "fail DEADLINE_EXCEEDED hooke._native.Error: rank 1 is gone")

    def test_own_excepthook_is_kept(self):
        _, out, errors = run("import sys\nsys.excepthook = lambda *_: print('mine')\n" + PROGRAM + "1 / 0")
        self.assertEqual((out.splitlines()[:2], errors), (["mine", "fail INVALID_ARGUMENT ZeroDivisionError: division by zero"], ""))

    def test_threads_and_children_do_not_count(self):
        self.check("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()", 0, "leave")
        self.check("pid = os.fork()\nif not pid:\n  raise ValueError\nassert os.waitpid(pid, 0)[1] == 256", 0, "leave")
        self.check("pid = os.fork()\nif not pid:\n  sys.exit(5)\nassert os.waitpid(pid, 0)[1] == 5 * 256", 0, "leave")


class Library(unittest.TestCase):
    def test_missing_library_names_what_was_tried(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "libhooke.so"
            program = "import hooke.numpy\nhooke.numpy.init()"
            self.assertIn(f"  {library}: {library}: cannot open shared object file", run(program, HOOKE_LIBRARY=str(library))[2])
            library.write_text("no library")
            status, _, errors = run(program, HOOKE_LIBRARY=str(library))
            self.assertEqual(status, 1)
            self.assertRegex(errors, r"hooke._native.Error: libhooke.so cannot be loaded. Tried:\n  .*libhooke.so: .*\nBuild it \(bazel build")

    def test_import_needs_no_library(self):
        self.assertEqual(run("import hooke, hooke.numpy; print(hooke.Code.INTERNAL.value)", HOOKE_LIBRARY="/nowhere")[:2], (0, "13\n"))


if __name__ == "__main__":
    unittest.main()

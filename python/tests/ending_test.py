#!/usr/bin/python3
"""Tests what a job hears when a program ends (hooke._ending), in programs of its own. Also tests hooke._native without
a library."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

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
def at_exit(message):
    print("at exit", message, flush=True)
ending = Ending(at_exit, fail)
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
        self.check("", 0, "at exit None")
        self.check("sys.exit()", 0, "at exit None")
        self.check("exit(0)", 0, "at exit None")

    def test_exception(self):
        _, out, errors = self.check("def f():\n  raise ValueError('no such thing')\nf()", 1, "fail INVALID_ARGUMENT ValueError: no such thing")
        self.assertIn("in f", out)
        self.assertIn("Traceback (most recent call last)", errors)
        self.check("raise Error(9, 'wrap twice')", 1, "fail FAILED_PRECONDITION hooke.Error: wrap twice")
        self.check("try:\n  raise Error(14, 'server away')\nexcept Error as e:\n  raise ValueError('x') from e", 1, "fail UNAVAILABLE ValueError: x")
        self.check("raise KeyboardInterrupt", 1, "fail CANCELLED KeyboardInterrupt")

    def test_error_of_another_rank_has_no_traceback(self):
        """If a rank raises, those that wait for it have nothing to tell, and its traceback should not drown in theirs."""
        _, out, errors = self.check("raise Error(14, 'lost rank 1')", 1, "fail UNAVAILABLE lost rank 1")
        self.assertEqual((out.count("\n"), errors), (1, ""))

    def test_message_names_the_programs_own_line(self):
        """Frames inside of the package would push the program's own out of the message."""
        _, out, _ = run(PROGRAM + "def mine():\n  import hooke._memory\n  hooke._memory.in_place('x', None)\nmine()")
        self.assertIn("in mine", out)
        self.assertNotIn("_memory.py", out)

    def test_error_can_be_pickled(self):
        """A process that a program starts hands its exceptions over that way."""
        self.check("import pickle\nraise pickle.loads(pickle.dumps(Error(14, 'away')))", 1, "fail UNAVAILABLE away")

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
        """The library sees the status. The text is for its message."""
        self.check("sys.exit(3)", 3, "at exit None")
        self.check("raise SystemExit(4)", 4, "at exit None")
        self.check("import argparse\nargparse.ArgumentParser().error('x')", 2, "at exit None")
        self.check("sys.exit('bad data')", 1, "at exit the program ended with: bad data")
        self.check("quit('bad data')", 1, "at exit the program ended with: bad data")
        self.check("try:\n  sys.exit('bad data')\nexcept SystemExit:\n  sys.exit(3)", 3, "at exit None")

    def test_leaving_fails(self):
        at_exit = "def at_exit(_):\n  raise Error(4, 'rank 1 is gone')\n"
        self.check(at_exit + "ending._call_at_exit = at_exit", 1, "fail DEADLINE_EXCEEDED hooke.Error: rank 1 is gone")

    def test_own_excepthook_is_kept(self):
        _, out, errors = run("import sys\nsys.excepthook = lambda *_: print('mine')\n" + PROGRAM + "1 / 0")
        self.assertEqual((out.splitlines()[:2], errors), (["mine", "fail INVALID_ARGUMENT ZeroDivisionError: division by zero"], ""))

    def test_threads_and_children_do_not_count(self):
        self.check("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()", 0, "at exit None")
        self.check("pid = os.fork()\nif not pid:\n  raise ValueError\nassert os.waitpid(pid, 0)[1] == 256", 0, "at exit None")
        self.check("pid = os.fork()\nif not pid:\n  sys.exit(5)\nassert os.waitpid(pid, 0)[1] == 5 * 256", 0, "at exit None")


class Library(unittest.TestCase):
    def test_missing_library_names_what_was_tried(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "libhooke.so"
            program = "import hooke.numpy\nhooke.numpy.init()"
            self.assertIn(f"  {library}: {library}: cannot open shared object file", run(program, HOOKE_LIBRARY=str(library))[2])
            library.write_text("no library")
            status, _, errors = run(program, HOOKE_LIBRARY=str(library))
            self.assertEqual(status, 1)
            self.assertRegex(errors, r"hooke.Error: libhooke.so cannot be loaded. Tried:\n  .*libhooke.so: .*\nBuild it \(bazel build")

    def test_import_needs_no_library(self):
        self.assertEqual(run("import hooke, hooke.numpy; print(hooke.Code.INTERNAL.value)", HOOKE_LIBRARY="/nowhere")[:2], (0, "13\n"))


if __name__ == "__main__":
    skips.main()

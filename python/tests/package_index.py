"""Virtual environments with packages of the package index, for tests that Debian's packages are not enough for."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax import saxutils

INSTALL_SECONDS = 900


def missing():
    """Returns the reason why nothing can be installed here; None if it can."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--dest", folder, "typing-extensions"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    said = result.stderr.strip().splitlines() or ["pip gives no reason"]
    return None if result.returncode == 0 else f"pip reaches no package index: {said[-1]}"


def skip(name, reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="{name}" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="{name}" tests="1">{case}</testsuite></testsuites>\n')


def run_tests(name):
    """Runs the tests of the calling program, or skips them if nothing can be installed."""
    reason = missing()
    if reason:
        skip(name, reason)
    else:
        unittest.main(argv=sys.argv[:1])


def run(case, seconds, *command, **environment):
    """Runs a command that must succeed, and returns its output."""
    result = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    case.assertEqual(result.returncode, 0, result.stdout)
    return result.stdout


def environment_with(case, *packages):
    """Makes a virtual environment, which goes with the test. Returns the path of its Python."""
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
    case.addCleanup(folder.cleanup)
    python = f"{folder.name}/bin/python"
    run(case, INSTALL_SECONDS, sys.executable, "-m", "venv", folder.name)
    run(case, INSTALL_SECONDS, python, "-m", "pip", "install", "--no-cache-dir", "--no-compile", *packages)
    return python

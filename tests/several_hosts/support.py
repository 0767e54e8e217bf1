"""What the tests of this folder share: where the programs are, waiting, and skipping where this machine can have no hosts."""

import os
import pathlib
import time
import unittest
from xml.sax import saxutils

import hosts

PROGRAMS = pathlib.Path("bin").resolve()
DATA = "/usr/share/datasets/fashion-mnist/t10k"
WAIT_SECONDS = 90


def wait_for(what, condition, seconds=WAIT_SECONDS):
    """Returns the condition's first true value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def skip(reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}; run as root with iproute2 and kernel support for network namespaces"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="Hosts" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="Hosts" tests="1">{case}</testsuite></testsuites>\n')


def main():
    missing = hosts.missing()
    if missing:
        skip(missing)
    else:
        unittest.main()

"""Runs the tests of the calling program, and tells Bazel which were skipped and why: tests/count_results.py shows that.

SIGTERM, which Bazel sends when it is interrupted, fails the test that runs, so that its cleanups take away what it has made.
"""

import os
import pathlib
import signal
import sys
import unittest
from xml.sax import saxutils


class Terminated(Exception):
    """This process got SIGTERM."""


class Result(unittest.TextTestResult):
    """Runs no test after one that SIGTERM has ended."""

    def addError(self, test, err):
        super().addError(test, err)
        self.note(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.note(err)

    def note(self, err):
        if err is not None and issubclass(err[0], Terminated):
            # With failfast, a SIGTERM during a subTest also ends the test around it.
            self.failfast = True
            self.stop()


class Runner(unittest.TextTestRunner):
    resultclass = Result


def terminate(*_):
    # A second one does not interrupt the cleanups.
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise Terminated("ended by SIGTERM")


def cases(result):
    """Returns the test cases as XML: those that were skipped with their reasons, the others as one."""
    skipped = "".join(
        f"<testcase name={saxutils.quoteattr(test.id())}><skipped message={saxutils.quoteattr('skipped: ' + why)}/></testcase>" for test, why in result.skipped
    )
    ran = result.testsRun - len(result.skipped)
    return skipped + (f'<testcase name="{ran} others"/>' if ran else "")


def main(argv=None):
    signal.signal(signal.SIGTERM, terminate)
    result = unittest.main(argv=argv, exit=False, testRunner=Runner).result
    path = os.environ.get("XML_OUTPUT_FILE")
    if path and result.wasSuccessful() and result.skipped:
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="Tests">{cases(result)}</testsuite></testsuites>\n')
    sys.exit(not result.wasSuccessful())

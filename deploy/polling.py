"""Waits in the tests of deployment."""

import time


def wait_for(what, condition, seconds, logs, pause=0.1):
    """Returns the condition's first true value. After `seconds` the test fails, with what `logs` returns."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"{what}: not within {seconds} s{logs()}")

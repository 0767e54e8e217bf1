"""Code for all benchmark scripts: their command line, processes that they end again, JSON lines, and the judgement at
the end."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time


def parse_arguments(description, add=lambda parser: None, repetitions=5):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--programs", required=True, help="folder of hooke, hooke-server, hooke-worker and hooke-rank")
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--repetitions", type=int, default=repetitions, help=f"how often each rival runs, alternating (default {repetitions})")
    add(parser)
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    return arguments


def run(main, *arguments):
    """Runs the program. After SIGTERM or Ctrl-C, the blocks that started processes still end them. The output then only says that the run was
    interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    try:
        main(*arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None


# The tolerance for sums and differences of floats. In floats, 50.1 - 49.8 is more than 0.3.
NOISE = 1e-9


def text(value, asked, digits=2):
    """Returns `value` with `digits` decimals, or with more if it would otherwise read like `asked` without being equal to it."""
    while value != asked and round(value, digits) == asked:
        digits += 1
    return f"{value:.{digits}f}"


def rounded(row, digits):
    """Returns `row` rounded for a file. `digits` maps a name to its number of decimals, or to None for a whole number."""
    return {name: round(value, digits[name]) if name in digits and value is not None else value for name, value in row.items()}


def write_json(path, rows, digits):
    """Writes rows, rounded as by rounded(). The rows themselves stay exact, because they are judged."""
    if path:
        with open(path, "a") as file:
            for row in rows:
                file.write(json.dumps(rounded(row, digits)) + "\n")


def judge(missed, asked=True, not_judged=()):
    """Prints whether the requirements were met, and ends the program with exit code 1 if not. `missed` has one line for each that was missed. `asked`
    is false if what ran had no requirement. `not_judged` has requirements that could not be compared; the last line then names them instead of
    "met"."""
    for line in missed:
        print(f"MISSED: {line}", flush=True)
    if not_judged:
        rest = "" if missed else "; nothing else was missed" if asked else "; nothing is asked of what ran"
        print(f"not judged: {'; '.join(not_judged)}{rest}", flush=True)
    if missed:
        raise SystemExit(1)
    if not not_judged:
        print("met: all that is asked of what ran" if asked else "nothing is asked of what ran", flush=True)


def stop(process, seconds=10):
    """Ends a process of `started` and everything in its session."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return


@contextlib.contextmanager
def started(command, **options):
    """A context manager: a process in its own session, which is ended in whatever way the block is left."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        stop(process)


def wait_for_file(path, process, seconds=20):
    """Returns the text of the file that `process` writes when it is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} ended with status {process.returncode} before it was ready")
        if os.path.exists(path) and os.path.getsize(path):
            with open(path) as file:
                return file.read().strip()
        time.sleep(0.02)
    raise SystemExit(f"{process.args[0]} was not ready after {seconds} s")

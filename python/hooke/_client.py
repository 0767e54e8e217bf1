"""Jobs from Python: submit, watch, cancel and export. Each call runs the program `hooke`, which has the same commands.

`coordinator` is a HOST:PORT in each call. Without it the program decides: HOOKE_COORDINATOR, else the cluster that `hooke
up` runs here, else its default. A call that fails raises hooke.Error with the program's message. Its code is
INVALID_ARGUMENT if the job or an argument is wrong, NOT_FOUND if there is no program `hooke`, and UNKNOWN otherwise,
unless the call says another one.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from hooke._native import HERE, Code, Error, candidates, invalid

PROGRAM = "hooke"
_WRONG = 2  # The program's exit status if the command line or the job is wrong.
_ENDED = ("succeeded", "failed", "cancelled")
_STOP_SECONDS = 10

Status = Dict[str, Any]


def program() -> str:
    """Returns the path of the program: $HOOKE_PROGRAM, else beside libhooke.so, else in this tree's bazel-bin, else on PATH."""
    chosen = os.environ.get("HOOKE_PROGRAM")
    beside = [pathlib.Path(library).parent / PROGRAM for library in candidates() if os.sep in library]
    places = [chosen] if chosen else [*beside, HERE.parent.parent / "bazel-bin/bin" / PROGRAM, shutil.which(PROGRAM)]
    for place in places:
        if place and os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    tried = "".join(f"\n  {place or 'PATH'}" for place in places)
    raise Error(Code.NOT_FOUND, f"the program `hooke` was not found. Tried:{tried}\nBuild it (bazel build //:programs) and set HOOKE_PROGRAM to its path.")


def _command(name: str, flags: List[str], words: List[str], coordinator: Optional[str]) -> List[str]:
    if coordinator is not None:
        flags = [*flags, f"--coordinator={coordinator}"]
    # After "--", a word that begins with a dash is no flag.
    return [program(), name, *flags, "--", *words]


def _error(status: int, said: str) -> Error:
    said = said.strip()
    said = said[len("hooke: ") :] if said.startswith("hooke: ") else said
    return Error(Code.INVALID_ARGUMENT if status == _WRONG else Code.UNKNOWN, said or f"the program `hooke` ended with status {status}")


def _run(name: str, flags: List[str], words: List[str], coordinator: Optional[str], text: str = "") -> Any:
    """Runs a command to its end and returns what it printed, an object of JSON."""
    command = _command(name, ["--output=json", *flags], words, coordinator)
    result = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", errors="replace")
    if result.returncode:
        raise _error(result.returncode, result.stderr)
    return json.loads(result.stdout)


@contextlib.contextmanager
def _running(command: List[str]):
    """A process whose output is read while it runs. It is ended if the reader stops early. An exit status other than 0 raises."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", errors="replace"
        )
        try:
            yield process.stdout
            status = process.wait()
        finally:
            process.stdout.close()
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if status:
            errors.seek(0)
            # The last message says why it ended. Those before it say that the coordinator was away.
            raise _error(status, errors.read().strip().rpartition("\nhooke: ")[2])


def submit(job: Union[str, os.PathLike, Mapping[str, Any]], *, coordinator: Optional[str] = None) -> str:
    """Starts a job and returns its id. `job` is the path of a job file, or a dictionary with the same keys.

    Relative paths in a dictionary start at the current folder, those in a file at the file's.
    """
    if not isinstance(job, Mapping):
        return _run("submit", [], [os.fspath(job)], coordinator)["job_id"]
    try:
        text = json.dumps(job, ensure_ascii=False, allow_nan=False, default=os.fspath)
    except (TypeError, ValueError) as error:
        raise invalid(f"the job has a value that a job file cannot have: {error}") from error
    try:
        return _run("submit", [], ["-"], coordinator, text)["job_id"]
    except Error as error:
        # A dictionary has no lines; the messages name the keys.
        raise Error(error.code, re.sub(r"^standard input, line \d+: ", "", error.message, flags=re.MULTILINE)) from None


def jobs(*, coordinator: Optional[str] = None) -> List[Status]:
    """Returns the status of each job that `hooke jobs` lists, the newest first."""
    return _run("jobs", [], [], coordinator)["jobs"]


def status(job_id: str, *, coordinator: Optional[str] = None) -> Status:
    """Returns the status of one job, as `hooke jobs JOB --output json` prints it."""
    return _run("jobs", [], [job_id], coordinator)


def watch(job_id: str, *, coordinator: Optional[str] = None) -> Iterator[Status]:
    """Returns an iterator over the job's status, which goes on with each change, until the job has ended.

    The last status has the state "succeeded", "failed" or "cancelled". If the coordinator goes away meanwhile, the
    iterator waits for it, at most five minutes.
    """
    return _watch(job_id, [], coordinator)


def _watch(job_id: str, flags: List[str], coordinator: Optional[str]) -> Iterator[Status]:
    last = None
    try:
        with _running(_command("watch", ["--output=json", *flags], [job_id], coordinator)) as lines:
            for line in lines:
                last = json.loads(line)
                yield last
    except Error:
        # The program's exit status tells of a failed job, too.
        if last is None or last["state"] not in _ENDED:
            raise


def wait(job_id: str, *, timeout: Optional[float] = None, coordinator: Optional[str] = None) -> Status:
    """Waits until the job has succeeded, and returns its last status.

    Raises hooke.Error if the job has failed (UNKNOWN) or was cancelled (CANCELLED), or has not ended after `timeout`
    seconds (DEADLINE_EXCEEDED). After such a timeout the job goes on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    # A coordinator that is away is given up soon after that time. One that is there is heard once a second.
    patience = [] if timeout is None else [f"--patience={min(300, timeout + 5)}"]
    last = None
    with contextlib.closing(_watch(job_id, patience, coordinator)) as statuses:
        # Even if nothing happens, a status comes about once a second: each has the coordinator's time, so no two are
        # equal.
        for last in statuses:
            if deadline is not None and last["state"] not in _ENDED and time.monotonic() >= deadline:
                raise Error(Code.DEADLINE_EXCEEDED, f"job {job_id} has not ended after {timeout} s; it is {last['state']}")
    if last["state"] != "succeeded":
        how = "was cancelled" if last["state"] == "cancelled" else "failed"
        raise Error(Code.CANCELLED if last["state"] == "cancelled" else Code.UNKNOWN, f"job {job_id} {how}: {last['reason']}")
    return last


def scale(job_id: str, groups: int, *, site: Optional[str] = None, coordinator: Optional[str] = None) -> Status:
    """Changes the number of a running job's groups, and returns its status. Of a job with several kinds of groups, those that run at `site`."""
    return _run("scale", [f"--groups={groups}", *([f"--site={site}"] if site else [])], [job_id], coordinator)


def cancel(job_id: str, *, coordinator: Optional[str] = None) -> Status:
    """Stops a job and returns its status. A job that has ended stays as it ended."""
    return _run("cancel", [], [job_id], coordinator)


def logs(job_id: str, *, follow: bool = False, coordinator: Optional[str] = None) -> Iterator[str]:
    """Returns an iterator over the lines of the job's log; with `follow`, until the job has ended."""
    with _running(_command("logs", ["--follow"] if follow else [], [job_id], coordinator)) as lines:
        for line in lines:
            yield line.rstrip("\n")


def export(
    job_id: str, path: Union[str, os.PathLike], *, format: str = "safetensors", force: bool = False, coordinator: Optional[str] = None
) -> Dict[str, Any]:
    """Writes the job's center, the trained model, to a file. Returns its path, format, tensors, values and bytes.

    `format` is "safetensors" or "torchscript". A file that is there is replaced only with `force`.
    """
    return _run("export", [f"--format={format}", *(["--force"] if force else [])], [job_id, os.fspath(path)], coordinator)

"""How the process ends is how the job learns what became of this rank: an exception must not leave the other ranks waiting."""

import atexit
import builtins
import os
import sys
import traceback
from typing import List

from hooke._native import HERE, Code, Error

MESSAGE_BYTES_MAX = 2048
FRAMES_MAX = 6


def _frames(error: BaseException) -> List[traceback.FrameSummary]:
    """Returns the last frames of the traceback. The frames of this package at its end are left out, because they say nothing to the program's author."""
    frames = traceback.extract_tb(error.__traceback__)
    while len(frames) > 1 and os.path.dirname(os.path.abspath(frames[-1].filename)) == str(HERE):
        frames.pop()
    return frames[-FRAMES_MAX:]


def describe(error: BaseException) -> str:
    """Returns the exception's type and text, then its last frames, in at most MESSAGE_BYTES_MAX bytes."""
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    lines = "".join(traceback.format_list(_frames(error))).splitlines()
    # Since 3.11 Python underlines the failed part of a line. The message will be one line, where that says nothing.
    frames = "\n".join(line for line in lines if line.strip(" ^~"))
    text = f"{said}\n{frames}".rstrip().encode(errors="replace")
    return text[:MESSAGE_BYTES_MAX].decode(errors="ignore")


def code_of(error: BaseException) -> Code:
    """Returns the job's error code. It means a fault of the program, unless Hooke itself raised the error or somebody pressed Ctrl-C."""
    cause, seen = error, set()
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, Error):
            return cause.code
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return Code.CANCELLED if isinstance(error, KeyboardInterrupt) else Code.INVALID_ARGUMENT


def is_of_another(error: BaseException) -> bool:
    """Returns whether the error only says that another rank, the worker or a server is gone, or that the worker wants the group to leave. Then it does
    not matter where the program was.
    """
    return isinstance(error, Error) and error.code in (Code.UNAVAILABLE, Code.ABORTED, Code.CANCELLED)


class Ending:
    """Calls `fail(code, message)`, which ends the process, when an exception ends the main thread. Otherwise calls `at_exit(message)` at the process's end.

    The latter runs while the interpreter still works, and cannot know the exit status: the interpreter forgets a `raise
    SystemExit(1)` before it calls anybody. So it is to leave the job later, by the exit status that the process then has.
    `message` is the text that sys.exit, exit or quit got instead of a status, and None if they got none. Exceptions of
    other threads do not count. Nothing happens in processes forked from this one.
    """

    def __init__(self, at_exit, fail):
        self._call_at_exit, self._fail = at_exit, fail
        self._pid = os.getpid()
        self._message = None
        self._excepthook = sys.excepthook
        sys.excepthook = self._on_exception
        sys.exit = self._noting(sys.exit)
        for name in ("exit", "quit"):
            if hasattr(builtins, name):
                setattr(builtins, name, self._noting(getattr(builtins, name)))
        atexit.register(self._at_exit)

    def _noting(self, leave_program):
        def noting(status=None):
            self._message = None if status is None or isinstance(status, int) else f"the program ended with: {status}"[:MESSAGE_BYTES_MAX]
            leave_program(status)

        return noting

    def _on_exception(self, kind, value, trace):
        of_another = os.getpid() == self._pid and is_of_another(value)
        if not of_another or self._excepthook is not sys.__excepthook__:
            self._excepthook(kind, value, trace)
        if os.getpid() == self._pid:
            self._end_failed(code_of(value), value.message if of_another else describe(value.with_traceback(trace)))

    def _end_failed(self, code, message):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass  # It is closed, and nothing can be said there any more.
        self._fail(code, message)

    def _at_exit(self):
        if os.getpid() != self._pid:
            return
        try:
            self._call_at_exit(self._message)
        except BaseException as error:
            traceback.print_exc()
            self._end_failed(code_of(error), describe(error))

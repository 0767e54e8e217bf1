"""How the process ends is how the job learns what became of this rank: an exception must not leave the other ranks waiting."""

import atexit
import builtins
import os
import sys
import traceback

from hooke._native import Code, Error

MESSAGE_BYTES_MAX = 2048
FRAMES_MAX = 6


def describe(error: BaseException) -> str:
    """Returns the exception's type and text, then its last frames, in at most MESSAGE_BYTES_MAX bytes."""
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    lines = "".join(traceback.format_tb(error.__traceback__)[-FRAMES_MAX:]).splitlines()
    # Since 3.11 Python underlines the failed part of a line. The message will be one line, where that says nothing.
    frames = "\n".join(line for line in lines if line.strip(" ^~"))
    text = f"{said}\n{frames}".rstrip().encode(errors="replace")
    return text[:MESSAGE_BYTES_MAX].decode(errors="ignore")


def code_of(error: BaseException) -> Code:
    """The job's error code: a fault of the program, unless Hooke itself raised the error or somebody pressed Ctrl-C."""
    cause, seen = error, set()
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, Error):
            return cause.code
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return Code.CANCELLED if isinstance(error, KeyboardInterrupt) else Code.INVALID_ARGUMENT


class Ending:
    """Calls `leave` when the process ends well, and `fail(code, message)`, which ends the process, when it does not.

    An exception that ends the main thread counts as failed, and so does sys.exit, exit or quit with a status other than
    0. The interpreter forgets a `raise SystemExit(1)` before it calls anybody, so that one cannot be seen. Exceptions of
    other threads do not count. Nothing happens in processes forked from this one.
    """

    def __init__(self, leave, fail):
        self._leave, self._fail = leave, fail
        self._pid = os.getpid()
        self._status = None
        self._excepthook = sys.excepthook
        sys.excepthook = self._on_exception
        sys.exit = self._noting(sys.exit)
        for name in ("exit", "quit"):
            if hasattr(builtins, name):
                setattr(builtins, name, self._noting(getattr(builtins, name)))
        atexit.register(self._at_exit)

    def goes_on(self) -> None:
        """Says that the program runs on: an earlier sys.exit was caught."""
        self._status = None

    def _noting(self, leave_program):
        def noting(status=None):
            self._status = status
            leave_program(status)

        return noting

    def _on_exception(self, kind, value, trace):
        self._excepthook(kind, value, trace)
        if os.getpid() == self._pid:
            self._end_failed(code_of(value), describe(value.with_traceback(trace)))

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
        if self._status not in (None, 0, False):
            if isinstance(self._status, int):
                self._end_failed(Code.INVALID_ARGUMENT, f"the program called sys.exit({self._status})")
            self._end_failed(Code.INVALID_ARGUMENT, f"the program ended with: {self._status}"[:MESSAGE_BYTES_MAX])
        try:
            self._leave()
        except BaseException as error:
            traceback.print_exc()
            self._end_failed(code_of(error), describe(error))

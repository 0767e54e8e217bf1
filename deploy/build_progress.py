#!/usr/bin/env python3
"""Runs `bazel build` or `bazel test` and shows its progress: targets built, tests run, time left, and the current action.

Usage: build_progress.py [--behind] [--events FILE] NAME bazel [STARTUP OPTION]... build|test [ARGUMENT]...
  NAME           begins each line
  --behind       counts the targets that the named ones are made of, instead of the named ones alone
  --events FILE  where Bazel writes its build events; default a temporary file

On a terminal one line of standard error is rewritten; elsewhere a line comes every 30 s. Errors and output of failed tests pass through.
Exit status: Bazel's. It is 130 after Ctrl-C or SIGTERM, and if the caller dies; the program then ends once Bazel has ended its work.
"""

import argparse
import collections
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TERMINAL_SECONDS = 1
PLAIN_SECONDS = 30
CLEAR = "\r\033[K"
# The rate is taken over the last minutes. Compilations, short tests and long tests come in turn, and the estimate must
# follow the current kind.
RATE_WINDOW_SECONDS = 120
RATE_SECONDS_MIN = 15
# Building a target counts 1; a test counts by its declared size. The numbers are rough means of whole runs on two
# cores.
TARGET_WORK = 1
TEST_WORK = {"SMALL": 0.5, "MEDIUM": 3, "LARGE": 30, "ENORMOUS": 60}

STEP_LINE = re.compile(r"\[[\d,]+ / [\d,]+[^\]]*\] (?:[\d,]+ / [\d,]+ tests[^;]*; ?)?(?P<action>.*)")
ACTION = re.compile(r"(?P<what>[^;]*?)(?:; (?:(?P<seconds>\d+)s\b)?.*?)?(?: \.\.\. \(.*\))?$")
# Between these two lines Bazel repeats the output of a failed test, in which any line may occur.
OUTPUT_BEGINS, OUTPUT_ENDS = re.compile(r"=+ Test output for "), re.compile(r"={80}$")
# Lines of Bazel that need not be shown: those about progress, and its final verdict. The exit status and earlier errors
# tell the verdict already.
NO_NEWS = (
    "Analyzing: ",
    "Loading:",
    "Starting local Bazel server",
    "... still trying to connect",
    "INFO: Build completed",
    "FAILED: Build did NOT complete",
)


def action_of(text):
    """Returns Bazel's text about one action, without its counts: "Compiling a.cc (11 s)". Returns "" for actions that take no time."""
    match = ACTION.match(text.strip())
    what, seconds = match["what"], match["seconds"]
    if not what or what.startswith(("[", "checking cached", "no action")):
        return ""
    return f"{what} ({seconds} s)" if int(seconds or 0) else what


def duration(seconds):
    seconds = int(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def about(seconds):
    """Returns the seconds as text, rounded up to ten seconds, or to a minute."""
    return f"{-(-int(seconds) // 60)} min" if seconds > 100 else f"{max(10, -(-int(seconds) // 10) * 10)} s"


def time_left(samples, total, now):
    """Returns the seconds until `total` is reached, or None if it is too early for an estimate. `samples` are (time, work done), oldest first."""
    if not samples or now - samples[0][0] < RATE_SECONDS_MIN:
        return None
    done = samples[-1][1]
    recent = next(((since, before) for since, before in samples if now - since <= RATE_WINDOW_SECONDS), samples[-1])
    for since, before in (recent, samples[0]):
        if done > before and now > since:
            return (total - done) * (now - since) / (done - before)
    return None


class Progress:
    """The state of a build, from Bazel's build events and its output. It has no clock: each call passes `now`, in seconds."""

    def __init__(self, name, now):
        self.name, self.started = name, now
        self.doing = "starting Bazel"
        self.targets, self.tests = set(), {}  # Labels of targets; the work of each test by its label.
        self.built, self.ran, self.failed = set(), set(), 0
        self.samples = collections.deque()
        self.in_output = self.in_progress = False

    def take_event(self, event, now):
        event_id = event.get("id", {})
        kind, about_what = next(iter(event_id.items()), ("", {}))
        label = about_what.get("label") if isinstance(about_what, dict) else None
        if kind == "targetConfigured" and "configured" in event:
            self.targets.add(label)
            if event["configured"].get("targetKind", "").endswith("_test rule"):
                self.tests[label] = TEST_WORK.get(event["configured"].get("testSize"), TARGET_WORK)
        elif kind == "targetCompleted" and label in self.targets:
            self._complete(label, event, now)
        # If the run is interrupted, a test's summary has "aborted" in place of "testSummary".
        elif kind == "testSummary" and "testSummary" in event and label in self.tests and label not in self.ran:
            self.ran.add(label)
            self.failed += event["testSummary"].get("overallStatus") not in ("PASSED", "FLAKY")
            self._note(now)

    def _complete(self, label, event, now):
        failed = "completed" in event and not event["completed"].get("success") or event.get("aborted", {}).get("reason") == "ANALYSIS_FAILURE"
        skipped = event.get("aborted", {}).get("reason") == "SKIPPED"
        # Bazel did not try to build it, because the run was interrupted or ends early.
        if "aborted" in event and not failed and not skipped:
            return
        self.built.add(label)
        self.failed += failed
        if failed or skipped:  # If the target is a test, the test does not run either.
            self.tests.pop(label, None)
        self._note(now)

    def take_line(self, line):
        """Takes a line of Bazel's output. Returns True if the line is about progress and need not be shown."""
        if self.in_output or OUTPUT_BEGINS.match(line):
            self.in_output, self.in_progress = not OUTPUT_ENDS.match(line), False
            return False
        # On indented lines below a line about progress, Bazel lists what it loads.
        if self.in_progress and line.startswith("    "):
            return True
        step = STEP_LINE.match(line)
        if step:
            self.doing = action_of(step["action"]) or self.doing
        elif line.startswith("Analyzing: "):
            self.doing = "analyzing " + line[len("Analyzing: ") :].partition(" (")[0]
        elif line.startswith("Loading: "):
            self.doing = "loading"
        self.in_progress = bool(step) or line.startswith(NO_NEWS)
        return self.in_progress

    def text(self, now):
        """Returns one line: the time so far, n of m, the time left, and the current action."""
        parts = [duration(now - self.started)]
        if self.built:
            parts.append(f"built {len(self.built)} of {len(self.targets)} targets")
            if self.tests and self.ran:
                parts.append(f"ran {len(self.ran)} of {len(self.tests)} tests")
            if self.failed:
                parts.append(f"{self.failed} failed")
            left = time_left(self.samples, self._total(), now)
            if left is not None:
                parts.append(f"about {about(left)} left")
        return f"{self.name}: {', '.join(parts)}; {self.doing}"

    def _total(self):
        return TARGET_WORK * len(self.targets) + sum(self.tests.values())

    def _note(self, now):
        self.samples.append((now, TARGET_WORK * len(self.built) + sum(self.tests.get(label, 0) for label in self.ran)))


def write_to_stderr(text):
    sys.stderr.write(text)
    sys.stderr.flush()


class Screen:
    """Standard error. On a terminal one line is rewritten; otherwise a line comes from time to time."""

    def __init__(self, now, terminal, write):
        self.terminal, self.write = terminal, write
        self.every = TERMINAL_SECONDS if terminal else PLAIN_SECONDS
        self.next = now + self.every

    def show(self, progress, now):
        if now < self.next:
            return
        self.next = now + self.every
        text = progress.text(now)
        if self.terminal:
            columns = shutil.get_terminal_size().columns
            self.write(CLEAR + (text if len(text) < columns else text[: columns - 2] + "…"))
        else:
            self.write(f"{text}\n")

    def clear(self):
        if self.terminal:
            self.write(CLEAR)

    def pass_on(self, line):
        self.clear()
        self.write(line)


class Events:
    """Reads the file of build events while Bazel writes it, and takes complete lines only."""

    def __init__(self, path):
        self.path, self.offset, self.rest = path, 0, b""

    def read(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                content = file.read()
        except FileNotFoundError:
            return
        self.offset += len(content)
        *lines, self.rest = (self.rest + content).split(b"\n")
        yield from (json.loads(line) for line in lines if line)


def verb_at(command):
    """Returns the index of Bazel's command, such as "build", after the startup options."""
    return next(at for at, word in enumerate(command) if at and not word.startswith("-"))


def with_flags(command, *flags):
    verb = verb_at(command)
    return [*command[: verb + 1], *flags, *command[verb + 1 :]]


def question_behind(command):
    """Returns the query that lists the targets of which the targets of `command` are made."""
    verb = verb_at(command)
    options = [word for word in command[verb + 1 :] if word.startswith("-")]
    named = [word for word in command[verb + 1 :] if not word.startswith("-")]
    return [*command[:verb], "cquery", *options, f"kind(rule, deps({' + '.join(named)}))"]


def named_each(command, answer):
    """Returns the command with every target of the query's answer named separately. The answer has lines of "LABEL (CONFIGURATION)". Targets of other
    repositories, and tools that the build itself runs, are left out."""
    verb = verb_at(command)
    found = [line.split() for line in answer.splitlines() if line.startswith("//")]
    labels = sorted({label for label, configuration in found if configuration != "(HOST)"})
    options = [word for word in command[verb + 1 :] if word.startswith("-")]
    return [*command[: verb + 1], *options, *labels] if labels else command


class Watch:
    """Runs Bazel clients one after another and watches each until its end."""

    def __init__(self, name):
        now = time.monotonic()
        self.progress, self.screen = Progress(name, now), Screen(now, sys.stderr.isatty(), write_to_stderr)
        self.interrupted, self.parent, self.bazel = False, os.getppid(), None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._interrupt())

    def run(self, command, events, stdout=None):
        """Shows the progress until Bazel ends; returns its exit status."""
        if self.interrupted:
            return 130
        # Bazel has its own process group. So it gets each Ctrl-C once, from this process.
        command = with_flags(command, "--curses=no", "--show_progress_rate_limit=1")
        self.bazel = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, process_group=0)
        if self.interrupted:
            self._interrupt()
        self._follow(self.bazel.stderr.fileno(), Events(events))
        self.screen.clear()
        self.bazel.stderr.close()
        status = self.bazel.wait()
        return 130 if self.interrupted else status if status >= 0 else 128 - status

    def _interrupt(self):
        self.interrupted = True
        if self.bazel:
            self.bazel.send_signal(signal.SIGINT)

    def _follow(self, source, events):
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                if selector.select(TERMINAL_SECONDS):
                    content = os.read(source, 1 << 16)
                    if not content:
                        break
                    *lines, rest = (rest + content).split(b"\n")
                    for line in lines:
                        self._take(line.decode(errors="replace") + "\n")
                now = time.monotonic()
                for event in events.read():
                    self.progress.take_event(event, now)
                if not self.interrupted:
                    self.screen.show(self.progress, now)
                    if os.getppid() != self.parent:
                        self._interrupt()
        if rest:
            self._take(rest.decode(errors="replace"))

    def _take(self, line):
        if not self.progress.take_line(line.rstrip()):
            self.screen.pass_on(line)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("Usage: ")[2].partition("\n\n")[0], add_help=False)
    parser.add_argument("--behind", action="store_true")
    parser.add_argument("--events")
    parser.add_argument("name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command, watch = arguments.command, Watch(arguments.name)
    with tempfile.TemporaryDirectory(prefix="hooke-progress-") as folder:
        events = arguments.events or os.path.join(folder, "events.json")
        if arguments.behind:
            with open(os.path.join(folder, "answer"), "w+") as answer:
                # If the query fails because of an error in a BUILD file, the build reports that error.
                if watch.run(question_behind(command), os.devnull, stdout=answer) == 0:
                    answer.seek(0)
                    command = named_each(command, answer.read())
        return watch.run(with_flags(command, f"--build_event_json_file={events}"), events)


if __name__ == "__main__":
    sys.exit(main())

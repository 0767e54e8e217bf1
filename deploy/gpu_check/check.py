#!/usr/bin/env python3
"""Runs everything of Hooke that needs a GPU, the most valuable first, and writes a report after each part.

The folder that holds this program comes from deploy/gpu-check. Nothing else of Hooke, no compiler and no MPI library has
to be on the machine: it needs a CUDA driver, and a Python with torch for CUDA that runs this program.

Exit status: 0 if something ran and all of it passed, 1 if a part failed, 3 if all parts were skipped, for example
because there is no GPU.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from report import FAILED, PASSED, SKIPPED, Found, Report, failed, skipped

HERE = pathlib.Path(__file__).resolve().parent
# Libraries of which the machine's own are taken, if it has them.
MACHINES_OWN = {"libcrypto.so.3", "libssl.so.3", "libz.so.1"}
RATIO_MIN = 0.98  # The least allowed ratio of a script's speed with Hooke to its speed without Hooke.
TORCH_SECONDS = 240  # A dozen groups start, whose processes import torch.
SCRIPT_SECONDS = 60
JOB_SECONDS = 75


class Ended(NamedTuple):
    """How a program ended, and its output."""

    status: Optional[int]  # None: it took too long.
    output: str

    def lines(self) -> List[str]:
        """The lines of the output, without those that mpirun adds after a line of dashes."""
        return [line.strip()[:300] for line in self.output.split("\n-----")[0].splitlines() if line.strip()] or ["no output"]

    def why(self, seconds: float) -> str:
        said = f"last line: {self.lines()[-1]}; log.txt has the rest"
        return f"not done after {seconds:.0f} s; {said}" if self.status is None else f"exit status {self.status}; {said}"


class Check:
    """What the parts share: where the programs are, the environment in which they run, and how much time is left."""

    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path, log: pathlib.Path, seconds: float):
        self.folder, self.scratch, self._log = folder, scratch, log
        self._ends = time.monotonic() + seconds
        self.environment = environment_of(folder, scratch)
        self.last_output = ""  # Of the program that ran last.

    def left(self) -> float:
        return self._ends - time.monotonic()

    def run(self, command: Sequence, seconds: float, **environment: str) -> Ended:
        """Runs a program for at most this long, ends all it has started, and keeps what it says in the log."""
        command = [str(word) for word in command]
        seconds = max(1.0, min(seconds, self.left()))
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(
                command, cwd=self.scratch, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end_session(process)
            output.seek(0)
            text = output.read()
        self.last_output = text
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{text}\n[exit status {status}]\n\n")
        return Ended(status, text)

    def program(self, name: str) -> pathlib.Path:
        return self.folder / "bin" / name

    def source(self, path: str) -> pathlib.Path:
        return self.folder / "tree" / path

    def mpirun(self) -> List[str]:
        return [str(self.program("mpirun.openmpi")), "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader", "--mca", "orte_tmpdir_base", str(self.scratch)]


def end_session(process: subprocess.Popen) -> None:
    """Ends a program and all that is left of what it has started: politely, so that it can tidy up, then at once."""
    for end, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, end)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            pass


def environment_of(folder: pathlib.Path, scratch: pathlib.Path) -> Dict[str, str]:
    """The environment of all programs: they find the libraries, the MPI library's parts and the Python package that came with them."""
    known = subprocess.run(["sh", "-c", "ldconfig -p || /sbin/ldconfig -p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    libraries = scratch / "lib"
    libraries.mkdir()
    for library in (folder / "lib").iterdir():
        if library.name not in MACHINES_OWN or f"\t{library.name} " not in known:
            (libraries / library.name).symlink_to(library)
    before = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join([*before, str(libraries), *nccl_folders()]),
        "PATH": f"{folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "PYTHONPATH": str(folder / "tree/python"),
        "HOOKE_LIBRARY": str(folder / "bin/libhooke.so"),
        "OPAL_PREFIX": str(folder),
        "OPAL_PKGDATADIR": str(folder / "share/openmpi"),
        "OMPI_MCA_mca_base_component_path": str(folder / "plugins/openmpi3"),
        "PMIX_MCA_mca_base_component_path": str(folder / "plugins/pmix"),
        # Some machines forbid copies from another process's memory, and Open MPI does not test whether they work.
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def nccl_folders() -> List[str]:
    """Where torch's wheels keep NCCL, which no loader looks into by itself."""
    return sorted({str(found.parent) for path in sys.path for found in pathlib.Path(path or ".").glob("nvidia/nccl/lib/libnccl.so.2")})


def why_no_device(check: Check) -> str:
    """Why torch cannot use a GPU here; "" if it can."""
    program = "import torch; print('torch', torch.__version__, 'finds', torch.cuda.device_count(), 'CUDA devices')"
    # The first import of torch on a machine reads gigabytes.
    ended = check.run([sys.executable, "-c", program], 240)
    if ended.status != 0:
        return f"{sys.executable} has no torch ({ended.lines()[-1]}); run check.py with a Python that has it"
    return "" if not re.search(r"finds 0 CUDA", ended.output) else ended.lines()[-1]


# ---- The parts ----


def machine(check: Check) -> Found:
    program = """
import os, torch
print("torch:", torch.__version__)
print("devices:", torch.cuda.device_count(), torch.cuda.get_device_name(0))
print("NCCL of torch:", ".".join(map(str, torch.cuda.nccl.version())))
print("cores:", len(os.sched_getaffinity(0)))
"""
    ended = check.run([sys.executable, "-c", program], 120)
    if ended.status != 0:
        return failed(ended.why(120))
    figures = [tuple(line.split(": ", 1)) for line in ended.output.splitlines() if ": " in line]
    if shutil.which("nvidia-smi"):
        driver = check.run(["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"], 30)
        figures.append(("driver and memory", driver.lines()[-1]))
    return Found(PASSED, "", tuple(figures))


def of_gtest(ended: Ended, seconds: float, results: pathlib.Path) -> Found:
    """Reads what a program of GoogleTest says of its tests."""
    if not results.exists():
        return failed(ended.why(seconds))
    tests = [test for suite in json.loads(results.read_text())["testsuites"] for test in suite["testsuite"]]
    broken = [f"{test['classname']}.{test['name']}" for test in tests if test.get("failures")]
    left_out = [test for test in tests if test["result"] == "SKIPPED"]
    figures = (("tests passed", str(len(tests) - len(broken) - len(left_out))), ("tests skipped", str(len(left_out))))
    if broken or ended.status != 0:
        return failed("failed: " + ", ".join(broken) if broken else ended.why(seconds), *figures)
    if len(left_out) == len(tests):
        reason = re.search(r": Skipped\n(.*)", ended.output)
        return skipped(reason[1] if reason else "all tests were skipped")
    return Found(PASSED, "", figures)


def groups(check: Check, around: Sequence[str] = (), only: str = "*", seconds: float = 90) -> Found:
    results = check.scratch / "groups.json"
    results.unlink(missing_ok=True)
    ended = check.run([*around, check.program("cuda_groups_test"), f"--gtest_filter={only}", f"--gtest_output=json:{results}"], seconds)
    return of_gtest(ended, seconds, results)


def torch_scripts(check: Check) -> Found:
    ended = check.run([sys.executable, check.source("python/tests/torch_cuda_test.py"), *check.mpirun()], TORCH_SECONDS)
    ran = re.search(r"^Ran (\d+) tests? in", ended.output, re.MULTILINE)
    if ended.status == 0 and ended.lines()[-1].startswith("skipped: "):
        return skipped(ended.lines()[-1][len("skipped: ") :])
    if ended.status != 0 or not ran:
        return failed(ended.why(TORCH_SECONDS))
    return Found(PASSED, "", (("tests passed", ran[1]),))


def speed_of(ended: Ended) -> Optional[float]:
    found = re.search(r"^.*speed: ([0-9.]+) (?:tokens|images) per second", ended.output, re.MULTILINE)
    return float(found[1]) if found and ended.status == 0 else None


def in_turn(check: Check, runs: Dict[str, Callable[[], Ended]], least: Optional[float], what: str, seconds: float = SCRIPT_SECONDS) -> Found:
    """Runs two programs in turn, twice each, and compares the second's speed with the first's. Without a least ratio, it only tells the ratio."""
    (plain, run_plain), (other, run_other) = runs.items()
    speeds: Dict[str, List[float]] = {plain: [], other: []}
    for name, run in ((plain, run_plain), (other, run_other), (other, run_other), (plain, run_plain)):
        ended = run()
        speed = speed_of(ended)
        if speed is None:
            return failed(f"{name}: {ended.why(seconds)}")
        speeds[name].append(speed)
    ratio = statistics.mean(speeds[other]) / statistics.mean(speeds[plain])
    figures = [(f"{what} per second, {name}", " and ".join(f"{speed:.0f}" for speed in speeds[name])) for name in speeds]
    wanted = "" if least is None else f", at least {least} is wanted"
    figures.append((f"{other} / {plain}", f"{ratio:.3f}{wanted}"))
    if least is not None and ratio < least:
        return failed(f"{ratio:.3f} of the speed of {plain}", *figures)
    return Found(PASSED, "", tuple(figures))


def script(name: str, what: str, flags: Sequence[str]) -> Callable[[Check], Found]:
    def part(check: Check) -> Found:
        def run(file: str) -> Callable[[], Ended]:
            return lambda: check.run([sys.executable, check.source(f"python/examples/{file}.py"), *flags], SCRIPT_SECONDS)

        return in_turn(check, {"plain PyTorch": run(f"{name}_plain"), "with Hooke": run(name)}, RATIO_MIN, what)

    return part


def job(check: Check) -> Found:
    """First two groups share the device, then one group without exchanges and with them in turn. Servers and workers run on this machine."""

    def run(flags: Sequence[str], sequences: int) -> Ended:
        command = [sys.executable, check.source("python/examples/gpt2.py"), "--batch=16", f"--samples={sequences}"]
        state = check.scratch / "cluster"
        shutil.rmtree(state, ignore_errors=True)
        return check.run([check.program("hooke"), "run", *flags, f"--state-dir={state}", f"--programs-dir={check.folder / 'bin'}", "--", *command], JOB_SECONDS)

    both = run(["--groups=2", "--rule=elastic", "--interval=16"], 1600)
    if both.status != 0:
        return failed(f"two groups: {both.why(JOB_SECONDS)}")
    runs = {
        "one group, no exchange before the last step": lambda: run(["--rule=none"], 1344),
        "one group, elastic each 16 steps": lambda: run(["--rule=elastic", "--interval=16"], 1344),
    }
    found = in_turn(check, runs, None, "tokens", JOB_SECONDS)
    return found._replace(figures=(("two groups on the device", "trained to their end"), *found.figures))


def collectives(check: Check) -> Found:
    figures: List[Tuple[str, str]] = []
    for ranks in (1, 2):
        results = check.scratch / "collectives.json"
        results.unlink(missing_ok=True)
        ended = check.run([*check.mpirun(), "-n", ranks, check.program("cuda_benchmark"), "--json", results, "--bytes", 4, 65536, 1048576, 67108864], 45)
        if ended.status != 0:
            return failed(f"{ranks} ranks: {ended.why(45)}", *figures)
        for line in results.read_text().splitlines():
            row = json.loads(line)
            figures.append((f"all-reduce of {row['bytes']} bytes, {row['ranks']} ranks, {row['impl']}", f"{row['median_us']:.1f} us"))
    return Found(PASSED, "", tuple(figures))


def sanitizer(check: Check) -> Found:
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if tool is None:
        return skipped("this machine has no compute-sanitizer, which is a part of the CUDA Toolkit")
    found = groups(check, [tool, "--error-exitcode=9"], "*WithTheHost", 90)
    refused = found.outcome == FAILED and "Device not supported" in check.last_output
    return skipped("compute-sanitizer does not support this device or its driver") if refused else found


class Part(NamedTuple):
    """A part of the check."""

    about: str
    run: Callable[[Check], Found]


PARTS: Dict[str, Part] = {
    "machine": Part("device, driver, torch", machine),
    "groups": Part("collectives and kernels on device memory", groups),
    "torch": Part("hooke.torch trains on the device as without Hooke", torch_scripts),
    "gpt2": Part("GPT-2, 124 M parameters, bfloat16", script("gpt2", "tokens", [])),
    "resnet50": Part("ResNet-50, batch 256, bfloat16", script("resnet50", "images", [])),
    "job": Part("a job on the device, through servers and workers", job),
    "collectives": Part("time of all-reduces of device memory", collectives),
    "sanitizer": Part("small tests of the kernels under compute-sanitizer", sanitizer),
}


def run_all(check: Check, names: Sequence[str], report: Report) -> None:
    no_device = why_no_device(check)
    if no_device:
        print(f"nothing can run here: {no_device}", flush=True)
    for name in names:
        part, began = PARTS[name], time.monotonic()
        if no_device:
            found = skipped(no_device)
        elif check.left() < 5:
            found = skipped("no time was left")
        else:
            found = part.run(check)
            if found.outcome == FAILED and check.left() < 1:
                found = Found(SKIPPED, f"the time was over: {found.why}", found.figures)
        report.add(name, part.about, time.monotonic() - began, found)
        why = "" if not found.why or no_device else f": {found.why}"
        print(f"{name}: {found.outcome}{why}", flush=True)
        for what, value in found.figures:
            print(f"  {what}: {value}", flush=True)


def names_of(text: str) -> List[str]:
    names = text.split(",")
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"there is no part {name!r}; the parts are {', '.join(PARTS)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names_of, default=list(PARTS), metavar="PART,...", help=f"the parts to run, of {','.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=540, help="end within this time; parts for which none is left are skipped")
    parser.add_argument("--report", type=pathlib.Path, default=pathlib.Path("gpu-check-report"), metavar="FOLDER", help="where report.md, report.json and log.txt go")
    arguments = parser.parse_args()
    report = Report(arguments.report.resolve())
    log = arguments.report.resolve() / "log.txt"
    log.unlink(missing_ok=True)
    # A SIGTERM ends the programs that run, and takes the scratch folder away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="hooke-gpu-check-") as scratch:
        run_all(Check(HERE, pathlib.Path(scratch), log, arguments.seconds), arguments.only, report)
    counts = report.counts()
    print(f"{', '.join(f'{number} {outcome}' for outcome, number in counts.items())}; the report is {arguments.report / 'report.md'}")
    return 1 if counts[FAILED] else 0 if counts[PASSED] else 3


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

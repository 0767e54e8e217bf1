"""What the tests of this folder share: where the programs are, waiting, and skipping where this machine can have no hosts."""

import ctypes
import os
import pathlib
import subprocess
import sys
import time
from xml.sax import saxutils

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import hosts  # noqa: E402
import skips  # noqa: E402

PROGRAMS = pathlib.Path("bin").resolve()
DATA = "/usr/share/datasets/fashion-mnist/t10k"
WAIT_SECONDS = 90
CLONE_NEWNS = 0x00020000  # linux/sched.h
CLONE_NEWNET = 0x40000000


def wait_for(what, condition, seconds=WAIT_SECONDS, pause=0.05):
    """Returns the condition's first true value. Pauses for so many seconds between two looks."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"{what}: not within {seconds} s")


def skip(reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}; run as root with iproute2 and kernel support for network namespaces"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="Hosts" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="Hosts" tests="1">{case}</testsuite></testsuites>\n')


def enter_network_of_its_own():
    """Puts this process, and all that it starts, into a network namespace of its own, where only the loopback device
    exists. It also gets a mount namespace with its own /run/netns and /sys. So other tests do not see the devices that
    `hooke up --hosts` makes and removes. MPICH's UCX fails with "No such device" if a device goes while it looks."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.makedirs("/run/netns", exist_ok=True)
    for command in (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "sysfs", "sysfs", "/sys"],
        ["mount", "-t", "tmpfs", "tmpfs", "/run/netns"],
        ["ip", "link", "set", "lo", "up"],
    ):
        subprocess.run(command, check=True)


def main(own_network=False):
    missing = hosts.missing()
    if missing:
        skip(missing)
        return
    if own_network:
        enter_network_of_its_own()
    skips.main()

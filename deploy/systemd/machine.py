"""A machine inside this one, for tests: systemd as the first process of namespaces of its own.

Its root folder is in memory. It sees /usr of this machine, read-only, and folders that the test names. It has a /tmp, /run, /dev/shm, /etc, network,
host name, processes and control groups of its own, so nothing that it does or cleans up reaches this machine. Needs root.
"""

import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import private_root  # noqa: E402

SYSTEMD = "/lib/systemd/systemd"
NAMESPACES = ("mnt", "pid", "net", "uts", "ipc", "cgroup")
# Units of Debian's systemd that ours and journald need. The others would prepare a machine, which is not wanted.
UNITS = (
    "basic.target", "multi-user.target", "network-online.target", "network.target", "network-pre.target", "shutdown.target", "sockets.target",
    "sysinit.target", "umount.target", "systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket",
)  # fmt: skip
UNITS_FROM = "/usr/lib/systemd/system"
UNIT_FOLDER = "etc/systemd/system"
BOOT_SECONDS = 30
UNSHARE = ("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--mount-proc")


def put_units(root):
    """Copies the units that each machine has."""
    wanted = root / UNIT_FOLDER / "sockets.target.wants"
    wanted.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(pathlib.Path(UNITS_FROM, unit), root / UNIT_FOLDER)
        if unit.endswith(".socket"):
            (wanted / unit).symlink_to(f"../{unit}")


def inside(root, outside, binds):
    """Runs as the first process of the new namespaces and becomes systemd."""
    private_root.refuse_to_share(outside, NAMESPACES)
    private_root.make(root, binds)
    private_root.mount("-t", "cgroup2", "cgroup2", root / "sys/fs/cgroup")
    put_units(root)
    private_root.enter(root)
    # Mounts spread, as on a machine that has booted, because systemd hands credentials to services through mounts.
    private_root.mount("--make-rshared", "/")
    environment = {"container": "other", "PATH": "/usr/sbin:/usr/bin", "SYSTEMD_UNIT_PATH": f"/{UNIT_FOLDER}", "SYSTEMD_GENERATOR_PATH": "/nowhere"}
    os.execve(SYSTEMD, [SYSTEMD, "--system", "--unit=multi-user.target", "--log-target=null"], environment)


class Machine:
    """A running machine. `folder` is an empty folder of the test's own. Use it as a context: at its end all processes of the machine are dead."""

    def __init__(self, folder, binds):
        self.root, self.log = pathlib.Path(folder) / "root", pathlib.Path(folder) / "machine.log"
        self.root.mkdir()
        self.binds, self.pid = binds, None
        self.cgroup = self.cgroup_mount() / f"hooke-machine-{os.getpid()}"

    @staticmethod
    def cgroup_mount():
        """Returns where this machine has its control groups of version 2."""
        for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            _, path, kind = line.split()[:3]
            if kind == "cgroup2":
                return pathlib.Path(path)
        raise OSError("no control groups of version 2 are mounted")

    def __enter__(self):
        self.cgroup.mkdir()
        arguments = json.dumps([str(self.root), private_root.links(NAMESPACES), self.binds])
        # The process enters its control group before the namespace of control groups is made, whose root that group then is.
        enter = f'echo $$ > {self.cgroup}/cgroup.procs && exec "$@"'
        command = ["sh", "-c", enter, "sh", *UNSHARE, sys.executable, "-B", os.path.realpath(__file__), arguments]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.wait_until_booted()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_booted(self):
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children and os.path.basename(os.readlink(f"/proc/{children[0]}/exe")) == "systemd":
                self.pid = int(children[0])
                state = self.call("systemctl", "is-system-running", check=False).stdout.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.05)
        raise OSError(f"systemd did not start: {self.log.read_text().strip() or 'it says nothing'}")

    def command(self, *command):
        """Returns the command that runs `command` inside."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wdns=/", *map(str, command)]

    def call(self, *command, check=True, **options):
        result = subprocess.run(
            self.command(*command), capture_output=True, text=True, timeout=120, env={"PATH": "/usr/sbin:/usr/bin", "SYSTEMD_PAGER": ""}, **options
        )
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: {result.returncode}: {result.stdout}{result.stderr}")
        return result

    def path(self, path):
        """Returns the path by which this machine reaches a file inside."""
        return pathlib.Path(f"/proc/{self.pid}/root") / str(path).lstrip("/")

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)  # The kernel kills all processes of its namespace.
        else:
            self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + BOOT_SECONDS
        for path in [*sorted(self.cgroup.glob("**/"), key=lambda path: -len(path.parts))]:
            while time.monotonic() < deadline:
                try:
                    path.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # Its processes are still dying.
                    time.sleep(0.02)


@functools.cache
def missing():
    """Returns the reason why this machine cannot run one inside; None if it can."""
    for program in ("unshare", "nsenter", "pivot_root", "systemctl", SYSTEMD):
        if shutil.which(program) is None:
            return f"no program {program}: install the packages systemd and util-linux"
    if os.geteuid() != 0:
        return "systemd in namespaces of its own needs root"
    probe = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"this machine or container allows no namespaces: {probe.stderr.strip()}"
    try:
        group = Machine.cgroup_mount() / f"hooke-probe-{os.getpid()}"
        group.mkdir()
        group.rmdir()
    except OSError as error:
        return f"this machine or container allows no control groups of one's own: {error}"
    return None


if __name__ == "__main__":
    root_folder, outside_links, bound = json.loads(sys.argv[1])
    inside(pathlib.Path(root_folder), outside_links, bound)

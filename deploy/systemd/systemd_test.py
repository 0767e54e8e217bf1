#!/usr/bin/env python3
"""The systemd units: systemd takes them, they are hardened, and under a real systemd the daemons train, come back after SIGKILL, and stop cleanly."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import machine  # noqa: E402
import polling  # noqa: E402
import skips  # noqa: E402

PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
DATA = "/usr/share/datasets/fashion-mnist/t10k"
DAEMONS = ("server", "worker")
# The exposure that systemd-analyze may find, in tenths. 0 is none, 100 is the worst.
EXPOSURE_MAX = {"server": 15, "worker": 22}
WAIT_SECONDS = 180
JOB = f"""name: small
model: mlp
data: {{format: idx, train: {DATA}, test: {DATA}}}
train: {{epochs: EPOCHS, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 1, ranks: 2}}
averaging: {{rule: elastic, interval: 4}}
"""
# What a job's command sees of the machine.
COMMAND = """name: command
command:
  - sh
  - -c
  - 'id -un; grep NoNewPrivs /proc/self/status; touch /tmp/own && echo own tmp; touch /usr/x /etc/x /var/lib/x 2>&1 | grep -c "Read-only"'
groups: {count: 1, ranks: 1}
averaging: {rule: elastic, interval: 4}
"""


def unit(daemon):
    return f"hooke-{daemon}.service"


class Units(unittest.TestCase):
    def setUp(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no program systemd-analyze: install the package systemd")
        folder = tempfile.TemporaryDirectory(prefix="hooke-units-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        units = self.root / machine.UNIT_FOLDER
        machine.put_units(self.root)
        (self.root / "opt/hooke/bin").mkdir(parents=True)
        for daemon in DAEMONS:
            shutil.copy(HERE / unit(daemon), units)
            shutil.copy(PROGRAMS / f"hooke-{daemon}", self.root / "opt/hooke/bin")

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", f"--root={self.root}", *arguments], capture_output=True, text=True, timeout=60)

    def test_systemd_finds_no_mistake(self):
        result = self.analyze("verify", *map(unit, DAEMONS))
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def test_a_mistake_would_be_found(self):
        path = self.root / machine.UNIT_FOLDER / unit("server")
        path.write_text(path.read_text().replace("ProtectHome=yes", "ProtectHomes=yes"))
        self.assertIn("ProtectHomes", self.analyze("verify", unit("server")).stderr)

    def test_exposure_is_small(self):
        for daemon, most in EXPOSURE_MAX.items():
            result = self.analyze("security", "--offline=true", f"--threshold={most}", "--no-pager", unit(daemon))
            self.assertEqual(result.returncode, 0, result.stdout[-400:])

    def test_every_flag_is_one_of_the_program(self):
        for daemon in DAEMONS:
            text = subprocess.run([PROGRAMS / f"hooke-{daemon}", "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
            known = set(re.findall(r"--[a-z][a-z-]*", text))
            for name in (unit(daemon), f"{daemon}.env"):
                lines = [line for line in (HERE / name).read_text().splitlines() if re.match(r"ExecStart=|HOOKE_", line)]
                used = set(re.findall(r"--[a-z][a-z-]*", "\n".join(lines)))
                self.assertTrue(used and used <= known, f"{name}: {used - known or 'no flag'}")


class Daemons(unittest.TestCase):
    """Daemons that systemd runs in a machine of their own."""

    def setUp(self):
        if machine.missing():
            self.skipTest(machine.missing())
        folder = tempfile.TemporaryDirectory(prefix="hooke-systemd-")
        self.addCleanup(folder.cleanup)
        self.machine = machine.Machine(folder.name, {"/opt/hooke/bin": str(PROGRAMS)})
        self.machine.__enter__()
        self.addCleanup(self.machine.__exit__)
        self.install()

    def install(self):
        """Installs the units as docs/deploy.md says."""
        self.machine.call("mkdir", "-p", "/etc/hooke", "/etc/sysusers.d")
        self.put(HERE / "hooke.sysusers", "/etc/sysusers.d/hooke.conf")
        self.machine.call("systemd-sysusers", "/etc/sysusers.d/hooke.conf")
        for daemon in DAEMONS:
            self.put(HERE / unit(daemon), f"/etc/systemd/system/{unit(daemon)}")
        self.machine.path("/etc/hooke/token").write_text("0123456789abcdef0123456789abcdef\n")
        self.machine.path("/etc/hooke/token").chmod(0o600)
        self.flags("server", "--listen=127.0.0.1:7411 --lease=5s")
        self.flags("worker", "--coordinator=127.0.0.1:7411 --slots=2 --allow-commands")
        self.machine.call("systemctl", "daemon-reload")

    def put(self, path, inside):
        self.machine.path(inside).write_text(path.read_text())

    def flags(self, daemon, text):
        self.machine.path(f"/etc/hooke/{daemon}.env").write_text(f"HOOKE_{daemon.upper()}_FLAGS={text}\n")

    def said(self):
        return self.machine.call("journalctl", "--no-pager", "--output=cat", check=False).stdout[-6000:]

    def wait_for(self, what, condition):
        """Returns the condition's first true value."""
        return polling.wait_for(what, condition, WAIT_SECONDS, lambda: f"\n{self.said()}")

    def hooke(self, *arguments, check=True, text=None):
        command = ["env", "HOOKE_TOKEN_FILE=/etc/hooke/token", "HOME=/root", "/opt/hooke/bin/hooke", *arguments]
        return self.machine.call(*command, check=check, input=text).stdout

    def submit(self, text):
        return json.loads(self.hooke("submit", "-", "--output=json", text=text))["job_id"]

    def job(self, job_id):
        """Returns the job; None while the coordinator is away."""
        said = self.hooke("jobs", job_id, "--output=json", check=False)
        return json.loads(said) if said else None

    def trains(self, job_id, incarnation):
        """Waits until the group has made steps in this start or a later one."""

        def moved():
            job = self.job(job_id)
            group = job["groups"][0] if job and job["groups"] else {}
            return group.get("state") == "running" and group["incarnation"] >= incarnation and (group["progress"] or {}).get("step", 0) >= 20

        self.wait_for(f"start {incarnation} of {job_id} trains", moved)

    def succeeded(self, job_id):
        self.wait_for(f"{job_id} has succeeded", lambda: (self.job(job_id) or {}).get("state") == "succeeded")

    def property(self, daemon, name):
        return self.machine.call("systemctl", "show", "--value", f"--property={name}", unit(daemon)).stdout.strip()

    def processes(self, daemon):
        """Returns process id -> name of all processes of a unit."""
        group = self.property(daemon, "ControlGroup")
        path = self.machine.path(f"/sys/fs/cgroup{group}/cgroup.procs")
        found = {}
        for pid in self.machine.call("cat", f"/sys/fs/cgroup{group}/cgroup.procs", check=False).stdout.split() if group and path.exists() else []:
            name = self.machine.call("cat", f"/proc/{pid}/comm", check=False).stdout.strip()
            if name:
                found[int(pid)] = name
        return found

    def start(self):
        self.machine.call("systemctl", "enable", "--now", *map(unit, DAEMONS))
        self.wait_for("the worker is welcome", lambda: '"worker"' in self.hooke("nodes", "--output=json", check=False))

    def kill(self, daemon):
        """Kills a daemon and waits until systemd has started it again. Returns the processes that it had."""
        before, pid = self.processes(daemon), int(self.property(daemon, "MainPID"))
        self.machine.call("kill", "-KILL", pid)
        self.wait_for(f"{daemon} runs again", lambda: self.property(daemon, "MainPID") not in ("0", str(pid)) and self.property(daemon, "ActiveState") == "active")
        self.assertEqual(set(before) & set(self.processes(daemon)), set(), "processes of the killed daemon are left")
        return before

    def test_training_goes_on_after_each_daemon_is_killed_and_stop_is_clean(self):
        self.start()
        long = self.submit(JOB.replace("EPOCHS", "1000"))
        self.trains(long, 1)
        names = list(self.processes("worker").values())
        self.assertEqual([names.count(name) for name in ("hooke-worker", "hooke-rank")], [1, 2], names)
        self.assertEqual(set(self.machine.call("ps", "-o", "user=", "-C", "hooke-rank").stdout.split()), {"hooke"})
        # Ranks have cores of their own, if there are two. So the lock in /dev/shm works, and binding is allowed.
        if len(os.sched_getaffinity(0)) >= 2:
            self.assertRegex(self.hooke("logs", long), r"each rank on .* has \d+ core")
        self.assertIn("hooke-rank", self.kill("worker").values())
        self.trains(long, 2)
        self.kill("server")
        short = self.submit_when_back(JOB.replace("EPOCHS", "1"))
        self.trains(long, 2)
        self.hooke("cancel", long)
        self.succeeded(short)
        self.stop()

    def submit_when_back(self, text):
        def tries():
            said = self.hooke("submit", "-", "--output=json", text=text, check=False)
            return json.loads(said)["job_id"] if said else None

        return self.wait_for("the coordinator takes a job", tries)

    def stop(self):
        job_id = self.submit(JOB.replace("EPOCHS", "1000"))
        self.trains(job_id, 1)
        self.machine.call("systemctl", "stop", unit("worker"))
        self.machine.call("systemctl", "stop", unit("server"))
        for daemon in DAEMONS:
            self.assertEqual((self.property(daemon, "Result"), self.property(daemon, "ExecMainStatus")), ("success", "0"), self.said())
            self.assertEqual(self.processes(daemon), {})
        self.assertTrue(list(self.machine.path("/var/lib/private/hooke-server/centers").glob(f"{job_id}.*.snapshot")), "no last snapshot")
        self.assertEqual([path.name for path in self.machine.path("/dev/shm").iterdir()], ["hooke.cores"])

    def test_a_command_sees_a_machine_that_it_cannot_change(self):
        self.start()
        job_id = self.submit(COMMAND)
        self.succeeded(job_id)
        log = self.hooke("logs", job_id)
        for line in ("hooke", "NoNewPrivs:\t1", "own tmp", "3"):
            self.assertRegex(log, rf"(?m) {line}$")
        self.assertFalse(self.machine.path("/tmp/own").exists())

    def test_wrong_flags_are_not_tried_again(self):
        self.flags("worker", "--coordinators=127.0.0.1:7411")
        self.machine.call("systemctl", "start", unit("worker"), check=False)
        self.wait_for("the unit has failed", lambda: self.property("worker", "ActiveState") == "failed")
        self.assertEqual((self.property("worker", "ExecMainStatus"), self.property("worker", "NRestarts")), ("2", "0"))
        self.assertIn("--coordinators", self.said())

    def test_no_daemon_starts_without_a_token(self):
        self.machine.path("/etc/hooke/token").unlink()
        result = self.machine.call("systemctl", "start", unit("server"), check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(self.processes("server"), {})


if __name__ == "__main__":
    skips.main()

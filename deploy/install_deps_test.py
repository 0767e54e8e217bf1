#!/usr/bin/env python3
"""Tests install-deps with programs in place of apt-get and dpkg: its progress and its final output."""

import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
INSTALL_DEPS = pathlib.Path(__file__).resolve().parent / "install-deps"
SECONDS = 60

APT_GET = """#!/bin/sh
echo "$*" >>"$(dirname "$0")/asked"
case "$*" in *install*)
  echo "dlstatus:3:12.5:Retrieving file 3 of 20 (8s remaining)"
  echo "Selecting previously unselected package a."
  echo "pmstatus:libc6:amd64:45.25:Unpacking libc6 (amd64)"
  exit {status} ;;
*download*) echo package >prometheus_1.deb ;;
esac
"""

DPKG = """#!/bin/sh
echo "dpkg $*" >>"$(dirname "$0")/asked"
mkdir -p "$3"
"""


class InstallDeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-install-deps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", HOOKE_UNPACKED=f"{self.folder}/unpacked")

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o700)

    def machine(self, installed, apt_status=0):
        """Makes a machine on which the user is root and `installed` is the state of every package."""
        self.program("dpkg-query", f"#!/bin/sh\necho {installed}\n")
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("dpkg", DPKG)
        self.program("apt-get", APT_GET.format(status=apt_status))

    def run_plain(self, *arguments):
        return subprocess.run([INSTALL_DEPS, *arguments], env=self.environment, capture_output=True, text=True, timeout=SECONDS)

    def test_nothing_is_asked_where_all_is_there(self):
        self.machine("installed")
        result = self.run_plain()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^install-deps: all \d+ packages are installed\n$")
        self.assertFalse((self.folder / "asked").exists())

    def test_what_is_missing_is_installed_without_noise(self):
        self.machine("not-installed")
        result = self.run_plain()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^install-deps: (\d+) of \1 packages are missing: bazel-bootstrap .*\ninstall-deps: installed \1 packages in \d+ s\n$")
        update, install, *unpacked = (self.folder / "asked").read_text().splitlines()
        self.assertTrue(update.endswith(" update"), update)
        self.assertIn(" install -y --no-install-recommends bazel-bootstrap ", install)
        # Prometheus would start as a service if it were installed.
        self.assertNotIn("prometheus ", install + " ")
        packages = ["prometheus", "kubernetes-client"]
        self.assertEqual(len(unpacked), 2 * len(packages))
        for package, download, unpack in zip(packages, unpacked[::2], unpacked[1::2]):
            self.assertTrue(download.endswith(f" download {package}"), download)
            self.assertRegex(unpack, f"^dpkg -x .*_1.deb {self.folder}/unpacked/{package}.new$")
        self.assertEqual(sorted(os.listdir(self.folder / "unpacked")), sorted(packages))

    def test_what_is_unpacked_is_not_unpacked_again(self):
        self.machine("not-installed")
        (self.folder / "unpacked/prometheus").mkdir(parents=True)
        self.assertEqual(self.run_plain().returncode, 0)
        self.assertNotIn("prometheus ", (self.folder / "asked").read_text().replace("\n", " "))

    def test_run_installs_what_the_programs_need_only(self):
        self.machine("not-installed")
        self.assertEqual(self.run_plain("--run").returncode, 0)
        install = (self.folder / "asked").read_text().splitlines()[1].split()
        self.assertTrue({"libtorch1.13", "openmpi-bin"} <= set(install), install)
        self.assertEqual([package for package in install if package.endswith("-dev") or package.startswith("bazel")], [])
        self.assertFalse((self.folder / "unpacked").exists())

    def test_no_daemon_is_started_by_the_packages_of_ci(self):
        self.machine("not-installed")
        self.program("id", "#!/bin/sh\necho 1000\n")
        # What would be done as root is written down. Only apt-get, which is not the real one either, runs.
        self.program("sudo", '#!/bin/sh\necho "$*" >>"$(dirname "$0")/sudo.asked"\ncase $1 in apt-get) exec "$@" ;; tee) cat >/dev/null ;; esac\n')
        result = self.run_plain("--ci")
        self.assertEqual(result.returncode, 0, result.stderr)
        asked = [line for line in (self.folder / "sudo.asked").read_text().splitlines() if not line.endswith(" update")]
        there = pathlib.Path("/usr/sbin/policy-rc.d").exists()
        around = [] if there else ["tee /usr/sbin/policy-rc.d", "chmod 755 /usr/sbin/policy-rc.d", "rm -f /usr/sbin/policy-rc.d"]
        self.assertEqual([line for line in asked if "policy-rc.d" in line], around)
        install = [line for line in asked if " install " in line]
        self.assertIn(" slurm-wlm ", install[0])
        # policy-rc.d, which keeps daemons from starting, is made before the packages are installed and removed after.
        # The commands that unpack Prometheus are left out; they start no daemon.
        self.assertEqual([line for line in asked if line in install + around], [*around[:2], *install, *around[2:]])

    def test_an_unknown_argument_is_refused(self):
        self.machine("not-installed")
        result = self.run_plain("--runs")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("use --check, --ci, --run or nothing", result.stderr)

    def test_a_failure_of_apt_get_shows_its_last_lines(self):
        self.machine("not-installed", apt_status=100)
        result = self.run_plain()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "Selecting previously unselected package a.\ninstall-deps: apt-get failed; its last lines are above\n")
        self.assertNotIn("installed", result.stdout)

    def test_a_terminal_shows_how_far_it_is(self):
        self.machine("not-installed")
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen([INSTALL_DEPS], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        said = b""
        try:
            while content := os.read(ours, 4096):
                said += content
        except OSError:  # The last process that could write to the terminal has ended.
            pass
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertRegex(said.decode(), r"\r\033\[Kinstall-deps: 0:0\d, fetching, 12 %: Retrieving file 3 of 20 \(8s remaining\)")
        self.assertTrue(said.endswith(b"\r\033[K"), said)


if __name__ == "__main__":
    unittest.main()

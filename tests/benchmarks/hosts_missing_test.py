#!/usr/bin/env python3
"""If a machine lacks something that hosts of network namespaces need, hosts.missing() names it, and hosts_test is skipped instead of failing."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
import hosts  # noqa: E402

# Stands in for ip and tc. It records its arguments, and fails for those that a kernel or container might refuse.
PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >>"$(dirname "$0")/asked"
case "$*" in {refused}) echo "a line before" >&2; echo "not permitted" >&2; exit 2 ;; esac
"""
NOTHING = "nothing"


class Missing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-hosts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def machine_that_refuses(self, refused):
        for program in ("ip", "tc"):
            path = self.folder / program
            path.write_text(PROGRAM.format(refused=refused))
            path.chmod(0o700)
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def missing(self, refused):
        with mock.patch.dict(os.environ, self.machine_that_refuses(refused)), mock.patch("os.geteuid", return_value=0):
            return hosts.missing()

    def test_a_machine_that_has_all_of_it_lacks_nothing(self):
        self.assertIsNone(self.missing(NOTHING))

    def test_each_ability_that_lacks_is_named_and_nothing_is_left(self):
        name = f"hkp{os.getpid()}"
        for refused, ability, command in (
            ("netns\\ add*", "network namespaces", "ip netns add"),
            ("netns\\ exec*", "programs inside a network namespace", "ip netns exec"),
            ("*bridge", "bridges", f"ip -n {name}"),
            ("*veth*", "pairs of virtual devices", f"ip -n {name}"),
            ("*tbf*", "links of a limited rate", f"tc -n {name}"),
        ):
            with self.subTest(refused=refused):
                self.assertEqual(self.missing(refused), f"this machine or container allows no {ability}: {command}: not permitted")
                self.assertEqual((self.folder / "asked").read_text().splitlines()[-1], f"ip netns delete {name}")

    def test_a_user_without_rights_and_a_program_that_is_not_there_are_named(self):
        with mock.patch("os.geteuid", return_value=1000):
            self.assertEqual(hosts.missing(), "network namespaces need root")
        with mock.patch("os.geteuid", return_value=0), mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertEqual(hosts.missing(), "no program ip: install iproute2 and util-linux")

    def test_hosts_test_is_skipped_with_the_reason(self):
        results = self.folder / "test.xml"
        environment = dict(os.environ, XML_OUTPUT_FILE=str(results), **self.machine_that_refuses("netns\\ exec*"))
        result = subprocess.run([sys.executable, FOLDER / "hosts_test.py"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        reason = "network namespaces need root" if os.geteuid() else "allows no programs inside a network namespace"
        self.assertIn(reason, xml.etree.ElementTree.parse(results).find(".//skipped").get("message"))


if __name__ == "__main__":
    unittest.main()

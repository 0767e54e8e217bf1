#!/usr/bin/env python3
"""LibTorch links the libraries of TORCH_UNUSED but uses no symbol of them. hooke-rank loads empty libraries in their place."""

import re
import subprocess
import sys
import unittest

UNUSED = sys.argv[1:]
del sys.argv[1:]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60).stdout


def symbols(kind, library):
    """Returns the library's symbols without their versions. `kind` is --undefined-only or --defined-only."""
    return {line.split()[-1].split("@")[0] for line in output("nm", "-D", kind, library).splitlines()}


class TorchUnused(unittest.TestCase):
    def setUp(self):
        # Maps the name of every library that the dynamic linker knows to its path.
        self.paths = dict(re.findall(r"^\s+(\S+) .*=> (\S+)$", output("/sbin/ldconfig", "-p"), re.MULTILINE))
        self.torch = self.paths["libtorch_cpu.so.1.13"]

    def test_no_symbol_of_them_is_used(self):
        used = symbols("--undefined-only", self.torch)
        self.assertGreater(len(used), 100)
        for library in UNUSED:
            self.assertEqual(used & symbols("--defined-only", self.paths[library]), set(), library)

    def test_each_is_named(self):
        named = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", self.torch)))
        self.assertGreater(len(UNUSED), 0)
        self.assertEqual(set(UNUSED) - named, set())

    def test_a_rank_takes_the_empty_ones_and_misses_nothing(self):
        said = output("ldd", "-r", "bin/hooke-rank")
        self.assertNotIn("undefined symbol", said)
        taken = dict(re.findall(r"^\s+(\S+) => (\S+) ", said, re.MULTILINE))
        for library in UNUSED:
            self.assertIn("bin/torch_unused/", taken[library])


if __name__ == "__main__":
    unittest.main()

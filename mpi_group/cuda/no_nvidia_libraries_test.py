#!/usr/bin/env python3
"""Programs built with --config=cuda start where no NVIDIA library is installed: they name none, and load NCCL when they need it.

Usage: no_nvidia_libraries_test.py BENCHMARK PROGRAM... Each is a program that was built with device code.
"""

import re
import subprocess
import sys
import unittest

BENCHMARK, *OTHERS = sys.argv[1:]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


class NoNvidiaLibraries(unittest.TestCase):
    def test_programs_name_none(self):
        """Neither a program nor any library that it loads at its start names a library of CUDA, of NCCL or of the driver."""
        for program in [BENCHMARK, *OTHERS]:
            with self.subTest(program):
                needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program))
                self.assertIn("libc.so.6", needed)
                loaded = needed + output("ldd", program).splitlines()
                self.assertEqual([line for line in loaded if re.search("cuda|nccl|nvidia|cublas", line.split("=>")[0])], [])

    def test_a_program_starts(self):
        """The benchmark gets as far as its command line, with all symbols resolved."""
        self.assertIn("--bytes", output("env", "LD_BIND_NOW=1", BENCHMARK, "--help"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""Tests how the MPI library of a virtual environment is recognized, and what is said of folders without one. The libraries are stand-ins."""

import os
import pathlib
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mpi_libraries  # noqa: E402

INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626"
MPICH = "HYDRA build details:\n    Version:                                 5.0.2"
OPEN_MPI = "mpirun (Open MPI) 5.0.11"


class Libraries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-mpi-libraries-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, launcher, said, library):
        for name in ("bin", "lib"):
            (self.folder / name).mkdir(exist_ok=True)
        path = self.folder / "bin" / launcher
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
        path.chmod(0o755)
        if library:
            (self.folder / "lib" / library).touch()
        return mpi_libraries.Library(str(self.folder))

    def test_each_family_has_its_name_and_program(self):
        for launcher, said, library, name, program in (
            ("mpirun", OPEN_MPI, "libmpi.so.40", "openmpi-5.0.11", "openmpi_rank"),
            ("mpiexec.hydra", MPICH, "libmpi.so.12", "mpich-5.0.2", "mpich_rank"),
            ("mpiexec.hydra", INTEL, "libmpi.so.12", "intelmpi-2021.18.1", "mpich_rank"),
        ):
            found = self.make(launcher, said, library)
            self.assertEqual((found.name, found.program), (name, program))
            self.assertEqual(found.command(2, True, False)[:3], [str(self.folder / "bin" / launcher), "-n", "2"])

    def test_the_program_finds_the_library_by_the_name_it_knows(self):
        found = self.make("mpiexec.hydra", MPICH, "libmpi.so.12")
        with tempfile.TemporaryDirectory(prefix="hooke-mpi-libraries-") as run:
            links = found.environment(run)["LD_LIBRARY_PATH"].split(":")[0]
            self.assertEqual(os.readlink(os.path.join(links, "libmpich.so.12")), str(self.folder / "lib" / "libmpi.so.12"))

    def test_what_is_wrong_with_a_folder(self):
        with self.assertRaisesRegex(mpi_libraries.Unusable, "no bin/mpiexec.hydra or bin/mpirun in .*pip install"):
            mpi_libraries.Library(str(self.folder))
        with self.assertRaisesRegex(mpi_libraries.Unusable, "openmpi-5.0.11 in .* has no lib/libmpi.so.40"):
            self.make("mpirun", OPEN_MPI, None)
        with self.assertRaisesRegex(mpi_libraries.Unusable, "says neither Intel MPI, MPICH nor Open MPI: 'something'"):
            self.make("mpirun", "something", "libmpi.so.40")


if __name__ == "__main__":
    unittest.main(verbosity=2)

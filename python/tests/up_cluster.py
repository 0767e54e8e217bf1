"""A cluster of `hooke up` for the tests of a class."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading


def start(case, workers):
    """Starts a cluster that ends with the class `case`. Returns (an empty folder, the coordinator's address).

    Bazel has put the programs into bin/. From now on hooke.submit finds this cluster and these programs.
    """
    # Sockets have short paths, so not in Bazel's folder.
    folder = tempfile.TemporaryDirectory(prefix="hooke-up-test-", dir="/tmp")
    case.addClassCleanup(folder.cleanup)
    program = str(pathlib.Path("bin/hooke").resolve())
    os.environ.update(HOME=folder.name, HOOKE_PROGRAM=program)
    os.environ.pop("HOOKE_COORDINATOR", None)
    up = subprocess.Popen([program, "up", f"--workers={workers}"], cwd=folder.name, stdout=subprocess.PIPE, text=True)
    case.addClassCleanup(up.stdout.close)
    case.addClassCleanup(up.wait)
    case.addClassCleanup(up.send_signal, signal.SIGINT)
    address = up.stdout.readline().split()[1]
    # It prints the address when the whole cluster is there. The rest is read so that it never waits for a reader.
    threading.Thread(target=up.stdout.read, daemon=True).start()
    return pathlib.Path(folder.name), address

"""A root folder in memory for a process in namespaces of its own, as a container has one. For tests. Needs root.

It has /usr of this machine, read-only, and folders that the test names. /tmp, /run, /var, /dev/shm and /etc are its own, so nothing that happens
there reaches this machine.
"""

import os
import pathlib
import shutil
import subprocess

# Daemons and tools of the system are in /usr/sbin, which not every PATH has.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "machine-id": "0123456789abcdef0123456789abcdef\n",
    "os-release": "ID=debian\n",
}
# Debian's links to chosen programs (mpirun, libblas.so.3), and folders of libraries.
ETC_COPIED = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "openmpi", "ssl")


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def mount_memory(path, mode="755"):
    path.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", path)


def refuse_to_share(outside, names):
    """Raises an error if this process is in one of the namespaces that it was started from. `outside` maps their names to their links in /proc."""
    for name in names:
        if os.readlink(f"/proc/thread-self/ns/{name}") == outside[name]:
            raise OSError(f"the namespace {name} is this machine's")


def links(names):
    """Returns the namespaces of this process, for `refuse_to_share`."""
    return {name: os.readlink(f"/proc/thread-self/ns/{name}") for name in names}


def make(root, binds):
    """Makes the folder: `binds` maps folders in it to folders of this machine, which are read-only there. The mounts must be this process's own."""
    mount("--make-rprivate", "/")
    mount_memory(root)
    for name in ("dev", "etc", "opt", "proc", "run", "sys", "usr", "var"):
        (root / name).mkdir()
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "var/run").symlink_to("/run")
    for inside, outside in {"/usr": "/usr", **binds}.items():
        target = root / inside.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        mount("--rbind", outside, target)
        mount("-o", "remount,bind,ro", target)
    mount("-t", "proc", "proc", root / "proc")
    mount("-t", "sysfs", "-o", "ro", "sysfs", root / "sys")
    mount_memory(root / "dev")
    mount_memory(root / "dev/shm", "1777")
    mount_memory(root / "tmp", "1777")
    for name in DEVICES:
        (root / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", root / "dev" / name)
    (root / "dev/pts").mkdir()
    mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=0620", "devpts", root / "dev/pts")
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    (root / "dev/fd").symlink_to("/proc/self/fd")
    for name, text in ETC.items():
        (root / "etc" / name).write_text(text)
    for name in ETC_COPIED:
        path = pathlib.Path("/etc", name)
        if path.is_dir():
            shutil.copytree(path, root / "etc" / name, symlinks=True)
        elif path.exists():
            shutil.copy(path, root / "etc")


def enter(root):
    """Makes the folder this process's root. The machine's files are then out of reach."""
    (root / "old").mkdir()
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "old"], check=True)
    os.chroot(".")
    subprocess.run(["umount", "--lazy", "/old"], check=True)
    os.rmdir("/old")

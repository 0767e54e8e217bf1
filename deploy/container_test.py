#!/usr/bin/env python3
"""deploy/Containerfile names what there is, and `install-deps --run` has what the programs need. No image is built here."""

import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

# Daemons and tools of the system are in /usr/sbin, which not every PATH has.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/.
sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
CONTAINERFILE = ROOT / "deploy/Containerfile"
# Programs besides libraries that the daemons start.
STARTED = ("mpirun", "orted", "setpriv")


def instructions():
    """Returns the stages of the file, each a list of (instruction, rest of its line)."""
    stages = []
    for line in CONTAINERFILE.read_text().splitlines():
        if line and not line.startswith("#"):
            word, rest = line.split(None, 1)
            if word == "FROM":
                stages.append([])
            stages[-1].append((word, rest))
    return stages


def run_packages():
    """Returns the packages of `install-deps --run`."""
    text = (ROOT / "deploy/install-deps").read_text()
    return re.search(r"^run_packages=\((.*?)\)", text, re.MULTILINE | re.DOTALL).group(1).split()


@functools.cache
def installed():
    """Returns the installed packages: name -> (names it provides, names it depends on)."""
    form = "${db:Status-Status}\t${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
    packages = {}
    for line in subprocess.run(["dpkg-query", "--show", f"--showformat={form}"], check=True, capture_output=True, text=True).stdout.splitlines():
        status, name, provides, depends = line.split("\t")
        if status == "installed":
            packages[name] = [[re.split(r"[ :(]", word)[0] for word in map(str.strip, re.split(r"[,|]", text)) if word] for text in (provides, depends)]
    return packages


def with_dependencies(names):
    """Returns the packages and all that they depend on, of those that are installed. Of alternatives, all that are installed count."""
    providers = {}
    for name, (provides, _) in installed().items():
        for provided in [name, *provides]:
            providers.setdefault(provided, set()).add(name)
    found, to_do = set(), list(names)
    while to_do:
        for name in providers.get(to_do.pop(), ()):
            if name not in found:
                found.add(name)
                to_do += installed()[name][1]
    return found


def owners(paths):
    """Returns {path: the package that this file belongs to, or None}."""
    # In packages, /lib may be a folder or a link to /usr/lib.
    names = {path: [path, path.removeprefix("/usr"), str(pathlib.Path(path).resolve())] for path in paths}
    command = ["dpkg-query", "--search", *(name for some in names.values() for name in some)]
    found = {}
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        package, _, name = line.rpartition(": ")
        found[name] = package.split(":")[0]
    return {path: next((found[name] for name in some if name in found), None) for path, some in names.items()}


@functools.cache
def libraries():
    """Returns the paths of all shared libraries of the system that the programs load."""
    paths = set()
    for program in PROGRAMS.iterdir():
        # Beside the programs there is a batch script.
        if program.is_file() and program.read_bytes()[:4] == b"\x7fELF":
            text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
            paths |= set(re.findall(r"=> (/\S+)", text))
    return sorted(path for path in paths if not pathlib.Path(path).resolve().is_relative_to(PROGRAMS))


class Container(unittest.TestCase):
    def test_run_packages_are_installed_by_a_build_too(self):
        self.assertEqual([package for package in run_packages() if package not in installed()], [])

    def test_run_packages_have_the_libraries_of_all_programs(self):
        found = with_dependencies(run_packages())
        self.assertGreater(len(libraries()), 50)
        self.assertEqual({path: package for path, package in owners(libraries()).items() if package not in found}, {})

    def test_a_package_that_lacks_would_be_seen(self):
        self.assertNotIn("libtorch1.13", with_dependencies(set(run_packages()) - {"libtorch1.13"}))

    def test_run_packages_have_the_programs_that_daemons_start(self):
        found = with_dependencies(run_packages())
        paths = [str(pathlib.Path("/usr/bin", program).resolve()) for program in STARTED]
        self.assertEqual({path: package for path, package in owners(paths).items() if package not in found}, {})

    def test_copied_files_are_there(self):
        build, last = instructions()
        self.assertEqual(build[0], ("FROM", "docker.io/library/debian:12 AS build"))
        copied = [shlex.split(rest) for stage in (build, last) for word, rest in stage if word == "COPY"]
        self.assertEqual(len(copied), 4)
        for *sources, _ in copied:
            if sources[0] == "--from=build":
                # Made by the commands of that stage.
                self.assertTrue(any(sources[1] in rest for word, rest in build if word == "RUN"), sources)
            else:
                self.assertTrue(all((ROOT / source).exists() for source in sources), sources)

    def test_commands_are_those_that_there_are(self):
        commands = [part for stage in instructions() for word, rest in stage if word == "RUN" for part in rest.split(" && ")]
        words = [shlex.split(command) for command in commands]
        scripts = [word for word in words if word[0].endswith("install-deps")]
        self.assertEqual([word[1:] for word in scripts], [[], ["--run"]])
        self.assertIn(["bazel", "build", "//:programs"], words)
        for word in words:
            self.assertTrue(word in scripts or shutil.which(word[0]), word)

    def test_useradd_takes_its_arguments(self):
        line = next(rest for stage in instructions() for word, rest in stage if rest.startswith("useradd"))
        flags = set(re.findall(r"--[a-z-]+", line))
        self.assertTrue(flags <= set(re.findall(r"--[a-z-]+", subprocess.run(["useradd", "--help"], capture_output=True, text=True).stdout)), flags)
        uid = re.search(r"--uid (\d+)", line).group(1)
        self.assertIn(("USER", f"{uid}:{uid}"), instructions()[-1])

    def test_the_programs_are_where_the_path_says(self):
        last = instructions()[-1]
        path = next(rest for word, rest in last if word == "ENV")
        self.assertTrue(path.startswith("PATH=/opt/hooke/bin:"), path)
        self.assertIn(("COPY", "--from=build /opt/hooke/bin /opt/hooke/bin"), last)
        self.assertTrue((PROGRAMS / "hooke").is_file())


if __name__ == "__main__":
    unittest.main()

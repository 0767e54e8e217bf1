#!/usr/bin/env python3
"""The house rules that no compiler checks. Prints one line per finding: FILE:LINE: what is wrong; exit 1 if there is any.

Usage: house_rules.py [ROOT]. Each rule is a function from a file's name and text to findings, tested in house_rules_test.py.
"""

import pathlib
import re
import sys

# Folder -> folders whose headers it may include, besides its own and third_party's. The table of the README.
MAY_INCLUDE = {
    "proto": set(),
    "algorithms": set(),
    "mpi_group": set(),
    "server": {"proto", "algorithms"},
    "worker": {"proto", "algorithms", "mpi_group"},
    "client": {"proto"},
    "tests": {"proto", "algorithms", "mpi_group", "server", "worker", "client"},
    "third_party": set(),
}
# What a folder's production code may include of the system's libraries that not every folder may.
LIBRARY_FOLDERS = {
    "mpi.h": {"mpi_group", "tests"},
    "torch/": {"worker/rank", "algorithms", "tests"},
    "grpcpp/": {"proto", "server", "worker", "client", "tests"},
    "sqlite3.h": {"server"},
    "yaml-cpp/": {"client"},
}
FUNCTION_LINES_MAX = 70
SOURCE_SUFFIXES = {".cc", ".h", ".cu", ".proto"}


def is_test(name):
    return bool(re.search(r"(_test|_benchmark)\.(cc|h)$", name))


def check_getenv(name, text):
    """Only a program's main reads the environment."""
    if pathlib.PurePath(name).name == "main.cc":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(secure_)?getenv\s*\(", line.split("//")[0]):
            yield number, "reads the environment; only a main.cc may: pass the value in through an options struct"


def check_includes(name, text):
    """Includes follow the direction of the folder table."""
    folder = pathlib.PurePath(name).parts[0]
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*(?:#\s*include|import)\s+["<]([^">]+)[">]', line)
        if not match:
            continue
        target = match.group(1)
        target_folder = target.split("/")[0]
        if target_folder in MAY_INCLUDE and target_folder != folder and target_folder not in MAY_INCLUDE.get(folder, set()):
            # A test may reach into folders below its own to check against the real thing.
            if not (is_test(name) and folder in ("worker", "server", "client") and target_folder != "tests"):
                yield number, f"{folder}/ may not include {target}: see the folder table in README.md"
        for library, folders in LIBRARY_FOLDERS.items():
            if target.startswith(library) and not name.startswith(tuple(allowed + "/" for allowed in folders)):
                yield number, f"{folder}/ may not include {target}: only {', '.join(sorted(folders))}"
            if library == "torch/" and target.startswith(library) and folder == "algorithms" and not is_test(name):
                yield number, "algorithms/ is pure: only its tests compare with LibTorch"


def check_function_length(name, text):
    """No function over FUNCTION_LINES_MAX lines. Relies on clang-format: a body closes at its header's indentation."""
    if name.endswith(".proto"):
        return
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if not line.endswith("{") or line.endswith("= {") or re.match(r"\s*(}|//|(if|for|while|switch|else|do|namespace|class|struct|enum|union|extern)\b)", line):
            continue
        header = start
        # Back over a constructor's initializers and a broken argument list to where the function begins; a lambda begins where it stands.
        while "[" not in lines[header] and header > 0 and (lines[header].lstrip().startswith((":", ",")) or lines[header - 1].endswith((",", "("))):
            header -= 1
        if "(" not in "".join(lines[header : start + 1]):
            continue
        indent = len(lines[header]) - len(lines[header].lstrip())
        closing = re.compile(r"^\s{%d}}" % indent)
        for end in range(start + 1, len(lines)):
            if closing.match(lines[end]):
                length = end - header + 1
                if length > FUNCTION_LINES_MAX:
                    yield header + 1, f"function of {length} lines; at most {FUNCTION_LINES_MAX}"
                break


def check_unfinished(name, text):
    """Nothing is left for later."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b|not (yet )?implemented", line, re.IGNORECASE):
            yield number, "unfinished: finish it or file it; the tree holds no notes to ourselves"


def check_include_guard(name, text):
    """A header's guard is its path."""
    if not name.endswith(".h"):
        return
    guard = "HOOKE_" + re.sub(r"[/.\-]", "_", name).upper() + "_"
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        yield 1, f"include guard must be {guard}"


def types_of_two_headers(texts):
    """No two headers define a type of one name: linked together, one of the two would be taken for the other.

    `texts`: header -> its text. Findings are (header, line, what). Nested types, indented by clang-format, are their class's matter.
    """
    first = {}
    for name, text in sorted(texts.items()):
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r"(?:class|struct|union|enum(?: class)?)\s+(?:[A-Z_]+\([^)]*\)\s+)?(\w+)\b[^;]*$|using (\w+) =", line)
            if not match:
                continue
            kind = match.group(1) or match.group(2)
            if first.setdefault(kind, name) != name:
                yield name, number, f"{first[kind]} has a type {kind}, too: name them for their things"


TEXT_RULES = [check_getenv, check_includes, check_function_length, check_unfinished, check_include_guard]


def build_file_of(path, root):
    """The BUILD file of the package that holds `path`, and the path below it."""
    for folder in [path.parent, *path.parent.parents]:
        if (folder / "BUILD").is_file():
            return folder / "BUILD"
        if folder == root:
            return None
    return None


def findings(root):
    headers = {}
    for folder in sorted(MAY_INCLUDE):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
                continue
            name = path.relative_to(root).as_posix()
            text = path.read_text()
            if path.suffix == ".h":
                headers[name] = text
            for rule in TEXT_RULES:
                for number, what in rule(name, text):
                    yield f"{name}:{number}: {what}"
            build = build_file_of(path, root)
            build_text = build.read_text() if build else ""
            below = path.relative_to(build.parent).as_posix() if build else name
            stem = pathlib.PurePath(below).stem
            # "name.cc" itself, or "name" in a list that a comprehension turns into name + ".cc".
            if f'"{below}"' not in build_text and not ('name + ".cc"' in build_text and f'"{stem}"' in build_text):
                yield f"{name}:1: no target of its folder's BUILD file names this file"
    for name, number, what in types_of_two_headers(headers):
        yield f"{name}:{number}: {what}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(findings(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The house rules that no compiler checks. Prints one line per finding: FILE:LINE: what is wrong; exit 1 if there is any.

Usage: house_rules.py [ROOT]. Each rule is a function from a file's name and text to findings, tested in house_rules_test.py.
"""

import pathlib
import re
import sys

import build_files
from cpp_source import Source, code_of

# Folder -> folders whose headers it may include, besides its own and third_party's. A table in the README has the same
# content.
MAY_INCLUDE = {
    "flags": set(),
    "proto": set(),
    "clocks": set(),
    "wire": {"proto", "clocks"},
    "files": set(),
    "job": {"proto", "wire", "algorithms"},
    "algorithms": set(),
    "mpi_group": {"flags"},
    "server": {"flags", "proto", "clocks", "wire", "files", "job", "algorithms"},
    "worker": {"flags", "proto", "clocks", "wire", "files", "job", "algorithms", "mpi_group"},
    "client": {"flags", "proto", "clocks", "wire", "files", "job"},
    "python": set(),
    "deploy": {"flags", "proto", "clocks", "wire", "files", "job", "algorithms", "mpi_group", "server", "worker", "client"},
    "tests": {"flags", "proto", "clocks", "wire", "files", "job", "algorithms", "mpi_group", "server", "worker", "client"},
    "third_party": set(),
}
# The same for the rooms (subfolders) of a folder: room -> rooms whose headers it may include, besides its own. The
# table has no cycle. Tests and benchmarks may include any room. docs/collectives.md and docs/rooms.md have tables with
# the same content.
ROOMS_MAY_INCLUDE = {
    "mpi_group": set(),
    "mpi_group/reduce": {"mpi_group"},
    "mpi_group/transport": {"mpi_group"},
    "mpi_group/mpi": {"mpi_group", "mpi_group/transport"},
    "mpi_group/collectives": {"mpi_group", "mpi_group/reduce", "mpi_group/transport"},
    "mpi_group/links": {"mpi_group", "mpi_group/transport"},
    "mpi_group/sockets": {"mpi_group", "mpi_group/transport", "mpi_group/collectives"},
    "mpi_group/node": {"mpi_group", "mpi_group/reduce", "mpi_group/transport", "mpi_group/collectives"},
    "mpi_group/two_level": {"mpi_group", "mpi_group/reduce", "mpi_group/transport", "mpi_group/collectives", "mpi_group/node"},
    "mpi_group/groups": {
        "mpi_group",
        "mpi_group/reduce",
        "mpi_group/transport",
        "mpi_group/mpi",
        "mpi_group/collectives",
        "mpi_group/links",
        "mpi_group/sockets",
        "mpi_group/node",
        "mpi_group/two_level",
    },
    "mpi_group/scale": {"mpi_group", "mpi_group/transport", "mpi_group/collectives", "mpi_group/groups"},
    "mpi_group/issue_order": {"mpi_group", "mpi_group/transport"},
    "mpi_group/profile": {"mpi_group"},
    "mpi_group/cuda": {"mpi_group", "mpi_group/reduce", "mpi_group/transport", "mpi_group/collectives"},
    "wire": set(),
    "wire/calls": {"wire"},
    "wire/http": {"wire"},
    "wire/metrics": {"wire", "wire/http"},
    "server/parameters": set(),
    "server/records": set(),
    "server/job_files": set(),
    "server/scheduling": set(),
    "server/history": {"server/records"},
    "server/cluster": {"server/records", "server/scheduling", "server/history"},
    "server/journal": {"server/records", "server/history", "server/cluster"},
    "server/coordinator": {"server/records", "server/history", "server/cluster", "server/journal"},
    "server/service": {"server/job_files", "server/cluster", "server/coordinator"},
    "server/heartbeat": {"server/parameters"},
    "server/dashboard": {"server/cluster", "server/coordinator"},
    "server/metrics": {"server/parameters", "server/cluster"},
    "server": {"server/parameters", "server/heartbeat", "server/records", "server/job_files", "server/scheduling", "server/cluster",
               "server/journal", "server/coordinator", "server/service", "server/dashboard", "server/metrics"},
    "worker/data": set(),
    "worker/report": set(),
    "worker/model": {"worker/data"},
    "worker/exchange": {"worker/model", "worker/report"},
    "worker/training": {"worker/model", "worker/report", "worker/exchange"},
    "worker/rank": {"worker/data", "worker/model", "worker/report", "worker/exchange", "worker/training"},
    "worker/api": {"worker/model", "worker/report", "worker/exchange", "worker/training"},
    "worker/launch": set(),
    "worker/remote": {"worker/launch"},
    "worker/file_cache": set(),
    "worker/cores": set(),
    "worker/gpus": set(),
    "worker/metrics": set(),
    "worker/slurm": {"worker/launch"},
    "worker/daemon": {"worker/launch", "worker/file_cache", "worker/cores", "worker/gpus", "worker/metrics", "worker/slurm"},
    "worker/bench": {"worker/launch"},
    "client/text": set(),
    "client/files": set(),
    "client": {"client/text", "client/files"},
    "client/process": set(),
    "client/local_cluster": {"client/process"},
    "client/job_file": {"client/files"},
    "client/export": {"client/process"},
    "client/history": {"client/text"},
    "client/watch": {"client", "client/text", "client/process", "client/history"},
    "client/top": {"client", "client/text", "client/process"},
    "client/profile": {"client/text"},
    "client/doctor": {"client", "client/text", "client/process"},
    "client/commands": {
        "client",
        "client/text",
        "client/files",
        "client/process",
        "client/local_cluster",
        "client/job_file",
        "client/export",
        "client/history",
        "client/watch",
        "client/top",
        "client/profile",
        "client/doctor",
    },
}
FOLDERS_WITH_ROOMS = {room.split("/")[0] for room in ROOMS_MAY_INCLUDE}
# Folders in which no sources are expected: hidden ones, such as .git and .ci, and those that Bazel makes.
MADE_FOLDERS = re.compile(r"\..*|bazel-.*")
# System headers that only some folders may include. This holds for tests, too.
LIBRARY_FOLDERS = {
    "CLI/": {"flags"},  # CLI11's headers take seconds to compile, so only flags/ compiles them.
    "mpi.h": {"mpi_group/mpi", "mpi_group/cuda", "tests"},
    "torch/": {"worker/model", "worker/rank", "algorithms", "tests"},
    "httplib.h": {"wire/http"},  # One source compiles it: it takes seconds, and its types depend on defines.
    "prometheus/": {"wire/metrics"},
    "grpcpp/": {"wire", "server", "worker", "client", "tests"},
    "openssl/": {"wire"},
    "sqlite3.h": {"server/records"},
    "yaml-cpp/": {"job/yaml"},
}
FUNCTION_LINES_MAX = 70
SOURCE_SUFFIXES = {".cc", ".h", ".cu", ".proto"}


def is_test(name):
    return bool(re.search(r"(_test|_benchmark)\.(cc|h)$", name))


def check_getenv(name, text):
    """Only a program's main reads the environment, and libhooke, which has no main. A test may pass its own environment to programs that it starts."""
    if pathlib.PurePath(name).name == "main.cc" or name == "worker/api/hooke.cc":
        return
    words = r"\b(secure_)?getenv\b" if is_test(name) or name.startswith("tests/") else r"\b((secure_)?getenv|_*environ)\b"
    for number, line in enumerate(code_of(text).splitlines(), 1):
        if re.search(words, line):
            yield number, "reads the environment; only a main.cc may: pass the value in through an options struct"


def included(text):
    """Yields (line, file) of each include or import."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*(?:#\s*include|import)\s+["<]([^">]+)[">]', line)
        if match:
            yield number, match.group(1)


def check_includes(name, text):
    """Includes follow the direction of the folder table."""
    folder = pathlib.PurePath(name).parts[0]
    for number, target in included(text):
        target_folder = target.split("/")[0]
        if target_folder in MAY_INCLUDE and target_folder != folder and target_folder not in MAY_INCLUDE.get(folder, set()):
            # A test may include headers of folders that the table does not allow, to test against the real thing.
            if not (is_test(name) and folder in ("worker", "server", "client") and target_folder != "tests"):
                yield number, f"{folder}/ may not include {target}: see the folder table in README.md"
        for library, folders in LIBRARY_FOLDERS.items():
            if target.startswith(library) and not name.startswith(tuple(allowed + "/" for allowed in folders)):
                yield number, f"{folder}/ may not include {target}: only {', '.join(sorted(folders))}"
            if library == "torch/" and target.startswith(library) and folder == "algorithms" and not is_test(name):
                yield number, "algorithms/ is pure: only its tests compare with LibTorch"


def check_room_includes(name, text):
    """Includes between the rooms of a folder follow the table of rooms."""
    room = pathlib.PurePosixPath(name).parent.as_posix()
    top = room.split("/")[0]
    if top not in FOLDERS_WITH_ROOMS or name == "client/main.cc":
        return
    if room not in ROOMS_MAY_INCLUDE:
        yield 1, "a new room belongs in ROOMS_MAY_INCLUDE, and in the table of docs/collectives.md or docs/rooms.md"
        return
    for number, target in included(text):
        target_room = pathlib.PurePosixPath(target).parent.as_posix()
        inside = target.split("/")[0] == top and target_room != room
        if inside and target_room not in ROOMS_MAY_INCLUDE[room] and not is_test(name):
            yield number, f"{room}/ may not include {target}: see the table in docs/{'collectives' if top == 'mpi_group' else 'rooms'}.md"


def check_function_length(name, text):
    """No function and no lambda has more than FUNCTION_LINES_MAX lines, from the first line of its signature to its closing brace."""
    if name.endswith(".proto"):
        return
    source = Source(text)
    if not source.balanced:
        yield 1, "the brackets do not match (an #if inside a statement?): functions cannot be told apart"
    for first, last in sorted(source.functions):
        length = last - first + 1
        if length > FUNCTION_LINES_MAX:
            yield first, f"function of {length} lines; at most {FUNCTION_LINES_MAX}"


# Files that may make channels and open ports. wire/channel.cc adds the caller's credential, wire/admission.cc asks for it.
CHANNEL_FILES = {"wire/channel.cc", "wire/admission.cc"}
CHANNEL_NAMES = re.compile(r"\b(Create(Custom)?Channel\w*|InsecureChannelCredentials|InsecureServerCredentials)\b")


def check_channels(name, text):
    """Channels and ports are made in one place each, so that none forgets the cluster's token. tests/ and test files may make others."""
    if name in CHANNEL_FILES or name.startswith("tests/") or is_test(name) or re.search(r"/(fake|test)_\w+\.(cc|h)$", name):
        return
    for number, line in enumerate(code_of(text).splitlines(), 1):
        match = CHANNEL_NAMES.search(line)
        if match:
            yield number, f"{match.group(0)}: make channels with OpenChannel of wire/channel.h, ports with ListenCredentials of wire/admission.h"


# Files that still use Abseil's waits with a limit, which depend on the machine's clock.
ABSEIL_WAIT_FILES = {
    "clocks/steady_condition.h",
    "mpi_group/issue_order/issue_order_pass.cc",
    "mpi_group/transport/in_process_transport.cc",
    "server/parameters/open_calls.cc",
    "server/parameters/parameter_store.cc",
    "server/parameters/parameter_store_attach.cc",
    "server/server_program.cc",
    "third_party/absl_mutex_for_tsan.cc",
    "worker/daemon/group_run_reports.cc",
    "worker/report/daemon_sink.cc",
}
ABSEIL_WAIT_NAMES = re.compile(r"\b((Await|Wait|LockWhen|WaitForNotification)With(Timeout|Deadline))\b")


def check_waits(name, text):
    """Waits with a limit are those of SteadyCondition, because a clock that is set back by an hour makes Abseil's an hour longer."""
    if name in ABSEIL_WAIT_FILES or name.startswith("tests/") or is_test(name) or re.search(r"/(fake|test|in_memory)_\w+\.(cc|h)$|_fixture\.h$", name):
        return
    for number, line in enumerate(code_of(text).splitlines(), 1):
        match = ABSEIL_WAIT_NAMES.search(line)
        if match:
            yield number, f"{match.group(0)}: wait with SteadyCondition of clocks/steady_condition.h"


# Headers that algorithms/ may include: values and computation. No I/O, clocks, threads, processes, RPC, MPI or
# LibTorch.
PURE_HEADERS = set(
    "algorithm any array bitset cassert cctype cfloat climits cmath complex cstddef cstdint cstring deque functional initializer_list"
    " iterator limits list map memory numeric optional ostream queue random ratio set stack stdexcept string string_view tuple"
    " type_traits typeinfo unordered_map unordered_set utility variant vector immintrin.h".split()
)
PURE_ABSL = ("algorithm", "base", "cleanup", "container", "functional", "hash", "memory", "meta", "numeric", "status", "strings", "types", "utility")
IMPURE_ABSL = ("absl/base/call_once.h",)
IMPURE_NAMES = re.compile(
    r"\babsl::(Now|SleepFor|Mutex|BitGen)\b|\bstd::(cout|cerr|clog|cin|thread|mutex|atomic|future|async|chrono|random_device|rand|time|clock)\b"
    r"|\b(f?printf|fopen|fwrite|fread|puts|gettimeofday|clock_gettime|srand|rand|usleep|nanosleep)\s*\("
)


def check_algorithms_pure(name, text):
    """Code of algorithms/ computes values from values: no I/O, clocks, threads or global state. Its tests and benchmarks are exempt."""
    if not name.startswith("algorithms/") or is_test(name):
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if not match:
            continue
        target = match.group(1)
        parts = target.split("/")
        absl = parts[0] == "absl" and (parts[1] in PURE_ABSL or target == "absl/time/time.h") and target not in IMPURE_ABSL
        if not absl and parts[0] != "algorithms" and target not in PURE_HEADERS:
            yield number, f"algorithms/ is pure and may not include {target}: no I/O, clocks, threads, RPC; pass values in"
    for number, line in enumerate(code_of(text).splitlines(), 1):
        match = IMPURE_NAMES.search(line)
        if match:
            yield number, f"algorithms/ is pure and may not use {match.group(0).rstrip('( ')}: pass values in"
    for number, statement, kind in Source(text).statements:
        if is_changing_variable(statement, kind):
            yield number, "algorithms/ is pure and keeps nothing between calls: no static, thread_local or global variable that changes"


def is_changing_variable(statement, kind):
    """True if a statement in a scope of `kind` declares a variable that outlives a call and is not constant."""
    declared = re.split(r"=|\{", re.sub(r"\boperator ?[^\w\s(]+", "operator", statement))[0]
    if re.search(r"\bconst(expr|init)?\b", declared):
        return False
    # Outside of functions, `static int F(int x)` declares a function. Inside, it declares a variable with an argument.
    calls = "(" in declared and kind in ("namespace", "class")
    if re.match(r"(inline )?(static|thread_local)\b", declared):
        return not calls
    other = r"(using|typedef|class|struct|enum|union|template|friend|extern|static_assert|namespace|return)\b"
    return kind == "namespace" and not calls and bool(declared.strip()) and not re.match(other, declared)


def check_unfinished(name, text):
    """No source has a note about unfinished work."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b|not (yet )?implemented", line, re.IGNORECASE):
            yield number, "unfinished: finish it or file it; the tree holds no notes to ourselves"


def check_include_guard(name, text):
    """A header's include guard is its path."""
    if not name.endswith(".h"):
        return
    guard = "HOOKE_" + re.sub(r"[/.\-]", "_", name).upper() + "_"
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        yield 1, f"include guard must be {guard}"


def types_of_two_headers(texts):
    """No two headers define types of one name: in one program the linker might take one type's functions for the other's.

    `texts` maps a header to its text. Findings are (header, line, text). Nested types, which clang-format indents, are not compared.
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


TEXT_RULES = [
    check_getenv,
    check_includes,
    check_room_includes,
    check_function_length,
    check_channels,
    check_waits,
    check_algorithms_pure,
    check_unfinished,
    check_include_guard,
]


def sources_in(folder):
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SOURCE_SUFFIXES and path.is_file()]


def unknown_folders(root):
    """Finds sources outside the folders of the table. The rules look at no other folder, so such sources are not allowed."""
    for path in sorted(root.iterdir()):
        if path.is_symlink() or MADE_FOLDERS.fullmatch(path.name) or path.name in MAY_INCLUDE:
            continue
        for source in sources_in(path) if path.is_dir() else [path] if path.suffix in SOURCE_SUFFIXES else []:
            yield f"{source.relative_to(root).as_posix()}:1: sources stand in the folders of the README's table; a new one belongs in it and in MAY_INCLUDE"


def findings(root):
    yield from unknown_folders(root)
    paths = [path for folder in sorted(MAY_INCLUDE) for path in sources_in(root / folder)]
    named, broken = build_files.files_of_targets(root)
    yield from broken
    headers = {}
    for path in paths:
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        if path.suffix == ".h":
            headers[name] = text
        for rule in TEXT_RULES:
            for number, what in rule(name, text):
                yield f"{name}:{number}: {what}"
        if name not in named:
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

#!/usr/bin/env python3
"""Tests that each house rule finds what it should, and that the tree breaks none of them."""

import pathlib
import re
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/house_rules"))
import house_rules  # noqa: E402


def lines(rule, name, text):
    return [number for number, _ in rule(name, text)]


class RulesFind(unittest.TestCase):
    def test_getenv_outside_main(self):
        self.assertEqual(lines(house_rules.check_getenv, "server/shard.cc", 'int x;\nstd::getenv("HOME");\n'), [2])
        self.assertEqual(lines(house_rules.check_getenv, "server/main.cc", 'getenv("HOME");\n'), [])
        self.assertEqual(lines(house_rules.check_getenv, "server/shard.cc", "// no getenv() here\n"), [])
        self.assertEqual(lines(house_rules.check_getenv, "server/shard.cc", "auto read = &secure_getenv;\n"), [1])
        self.assertEqual(lines(house_rules.check_getenv, "server/shard.cc", "for (char** v = environ; *v; ++v) {}\n"), [1])
        self.assertEqual(lines(house_rules.check_getenv, "server/shard.cc", 'Read("/proc/1/environ"); /* getenv(\n1) */\n'), [])
        self.assertEqual(lines(house_rules.check_getenv, "server/main.cc", "Pass(environ);\n"), [])
        # A test may pass its own environment to a program, but may not read it.
        self.assertEqual(lines(house_rules.check_getenv, "server/shard_test.cc", 'Spawn(environ);\ngetenv("HOME");\n'), [2])

    def test_include_against_the_direction(self):
        wrong = '#include "worker/model/arena.h"\n'
        self.assertEqual(lines(house_rules.check_includes, "server/parameters/shard.cc", wrong), [1])
        self.assertEqual(lines(house_rules.check_includes, "worker/rank/trainer.cc", wrong), [])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd.cc", '#include "proto/job.pb.h"\n'), [1])
        self.assertEqual(lines(house_rules.check_includes, "server/main.cc", "#include <mpi.h>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "worker/daemon/main.cc", "#include <torch/torch.h>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd.cc", "#include <torch/torch.h>\n"), [1])
        for parses_itself in ("client/commands/command.h", "server/options.cc", "mpi_group/groups/mpi_fault_rank.cc", "tests/benchmarks/wide/main.cc"):
            self.assertEqual(lines(house_rules.check_includes, parses_itself, "#include <CLI/CLI.hpp>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "flags/command_line.cc", "#include <CLI/CLI.hpp>\n"), [])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd_test.cc", "#include <torch/torch.h>\n"), [])

    def test_include_against_the_direction_inside_mpi_group(self):
        check = lambda name, header: lines(house_rules.check_room_includes, name, f'#include <vector>\n#include "{header}"\n')
        for name, header in (
            ("mpi_group/tuning.cc", "mpi_group/transport/transport.h"),
            ("mpi_group/transport/in_process_transport.cc", "mpi_group/groups/transport_group.h"),
            ("mpi_group/collectives/two_level.cc", "mpi_group/node/node_collectives.h"),
            ("mpi_group/collectives/collective_cases.h", "mpi_group/sockets/socket_ranks.h"),
            ("mpi_group/cuda/staging.cc", "mpi_group/groups/mpi_group.h"),
            ("mpi_group/mpi/mpi_wait.cc", "mpi_group/elsewhere/a.h"),
        ):
            with self.subTest(name=name, header=header):
                self.assertEqual(check(name, header), [2])
        for name, header in (
            ("mpi_group/two_level/two_level.cc", "mpi_group/collectives/ring_pass.h"),
            ("mpi_group/collectives/ring.cc", "mpi_group/collectives/ring_pass.h"),
            ("mpi_group/transport/faulty_transport_test.cc", "mpi_group/collectives/ring.h"),
            ("mpi_group/cuda/cuda_benchmark.cc", "mpi_group/groups/mpi_group.h"),
            ("worker/rank/main.cc", "mpi_group/groups/mpi_group.h"),
        ):
            with self.subTest(name=name, header=header):
                self.assertEqual(check(name, header), [])
        self.assertEqual(check("mpi_group/elsewhere/a.cc", "mpi_group/group.h"), [1])
        # Of these two rooms, only mpi_group/mpi may include MPI.
        mpi = "#include <mpi.h>\n"
        self.assertEqual(lines(house_rules.check_includes, "mpi_group/groups/mpi_group.cc", mpi), [1])
        self.assertEqual(lines(house_rules.check_includes, "mpi_group/mpi/mpi_session.cc", mpi), [])

    def test_rooms_go_in_no_circle(self):
        left = dict(house_rules.ROOMS_MAY_INCLUDE)
        while left:
            lowest = [folder for folder, below in left.items() if not below & set(left)]
            self.assertTrue(lowest, f"each of these includes another of them: {sorted(left)}")
            for folder in lowest:
                del left[folder]

    def test_channels_are_made_in_one_place(self):
        dial = "auto c = grpc::CreateChannel(a, grpc::InsecureChannelCredentials());\n"
        serve = "b.AddListeningPort(a, grpc::InsecureServerCredentials(), &port);\n"
        for text in (dial, serve):
            for name in ("client/a.cc", "server/parameters/service.cc", "worker/exchange/a.h", "wire/frame.cc"):
                self.assertEqual(lines(house_rules.check_channels, name, text), [1])
            for name in ("wire/channel.cc", "wire/admission.cc", "client/a_test.cc", "client/fake_servers.cc", "tests/benchmarks/a.cc"):
                self.assertEqual(lines(house_rules.check_channels, name, text), [])
        self.assertEqual(lines(house_rules.check_channels, "client/a.cc", "// Not grpc::CreateChannel.\nOpenChannel(a, b, c);\n"), [])

    def test_waits(self):
        text = "void F() {\n  mutex_.AwaitWithTimeout(absl::Condition(&ended_), limit);\n  cond_.WaitWithDeadline(&mutex_, at);\n  mutex_.Await(absl::Condition(&ended_));\n}\n"
        self.assertEqual(lines(house_rules.check_waits, "worker/a.cc", text), [2, 3])
        for name in ("worker/a_test.cc", "worker/fake_daemon.cc", "server/parameters/open_calls.cc", "tests/a.cc"):
            self.assertEqual(lines(house_rules.check_waits, name, text), [])

    def test_long_function(self):
        def function(body_lines):
            return "int F(\n    int x) {\n" + "  ++x;\n" * body_lines + "}\n"

        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", function(60)), [])
        self.assertEqual(len(lines(house_rules.check_function_length, "server/a.cc", function(80))), 1)
        constructor = "class A {\n  A()\n      : x_(F()) {\n    G();\n  }\n" + "  int x;\n" * 100 + "};\n"
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", constructor), [])
        branch = "int F() {\n  if (G()) {\n    H();\n  } else {\n    I();\n  }\n}\n" + "int x;\n" * 100
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", branch), [])
        namespace = "namespace hooke {\n" + "int x;\n" * 100 + "}  // namespace hooke\n"
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", namespace), [])

    # The signatures are spread over several lines. The last line of each is indented deeper than the closing brace of
    # the body.
    def test_long_function_with_a_broken_signature(self):
        signatures = [
            "int F(int x)\n    ABSL_LOCKS_EXCLUDED(mutex_) {\n",
            "auto F(int x)\n    -> absl::StatusOr<int> {\n",
            "void F(int x,\n       Map y = {\n           {1, 2}})\n    const {\n",
            "template <typename T>\nabsl::StatusOr<T>\nLong<T>::Name(\n    T x) {\n",
            "A::A(int x)\n    : x_(x),\n      y_{1} {\n",
            "A::A(int x)\n    : x_(x),\n      y_(F([&] { return 1; })) {\n",
            "bool A::operator==(\n    const A& a) const& {\n",
            "TEST_F(SomeTest,\n       SomeName)\n{\n",
        ]
        for signature in signatures:
            for indent in ("", "  "):
                begin, end = ("struct B {\n public:\n", "};\n") if indent else ("namespace hooke {\n", "}\n")
                text = lambda body: begin + indent + signature + "  ++x;\n" * (body - signature.count("\n") - 1) + indent + "}\n" + end
                with self.subTest(signature=signature, indent=indent):
                    first = begin.count("\n") + 1
                    self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", text(70)), [])
                    self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", text(71)), [first])

    def test_long_lambda(self):
        text = "int x = F(1, [&](int y)\n             -> int {\n" + "  ++y;\n" * 69 + "});\n"
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", text), [1])
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", text.replace("  ++y;\n", "", 2)), [])

    # Long tables, long classes and text that only looks like brackets are not functions.
    def test_what_is_no_function(self):
        long = "    {1, F(2)},\n" * 100
        for text in (
            "const std::vector<A> kTable = {\n" + long + "};\n",
            "A table{\n" + long + "};\n",
            'class ABSL_LOCKABLE("mutex") A : public B<C> {\n' + "  void F() const { return; }\n  int x = 1;\n" * 50 + "};\n",
            'int F() { return \'{\' + 1\'000; }\nconst char* kText = R"(\n{(' + "\n" * 100 + ')";  // {\n/* { */ int x;\n',
            "#define OPEN(x) \\\n  if (x) {\nint F() { return 1; }\n" + "int x;\n" * 100,
        ):
            with self.subTest(text=text[:30]):
                self.assertEqual(list(house_rules.check_function_length("server/a.cc", text)), [])

    def test_brackets_that_do_not_match(self):
        self.assertEqual(lines(house_rules.check_function_length, "server/a.cc", "int F() {\n#if A\n  if (x) {\n#else\n  {\n#endif\n}\n}\n"), [1])

    def test_algorithms_are_pure(self):
        bad = [
            *(f"#include {header}\n" for header in ("<iostream>", "<fstream>", "<cstdio>", "<chrono>", "<thread>", "<atomic>", "<mutex>", "<unistd.h>")),
            *(f"#include {header}\n" for header in ("<mpi.h>", "<grpcpp/grpcpp.h>", "<torch/torch.h>", "<spdlog/spdlog.h>", "<sys/time.h>")),
            *(f'#include "absl/{header}"\n' for header in ("time/clock.h", "synchronization/mutex.h", "base/call_once.h", "random/random.h")),
            "double F() { return G(absl::Now()); }\n",
            'void F() { printf("x"); }\n',
            "std::random_device seed() { return {}; }\n",
            "int F() { static int calls = 0; return ++calls; }\n",
            "int F() { static std::vector<int> cache(10); return 1; }\n",
            "struct A { static int count; };\n",
            "thread_local int depth;\n",
            "namespace hooke {\nnamespace { std::map<int, int> cache; }\n}\n",
            "int counter{0};\n",
        ]
        for text in bad:
            with self.subTest(text=text):
                self.assertEqual(len(lines(house_rules.check_algorithms_pure, "algorithms/sgd.cc", text)), 1)
                self.assertEqual(lines(house_rules.check_algorithms_pure, "algorithms/sgd_test.cc", text), [])
                self.assertEqual(lines(house_rules.check_algorithms_pure, "server/sgd.cc", text), [])
        good = [
            '#include <vector>\n#include "absl/types/span.h"\n#include "absl/time/time.h"\n#include "algorithms/sharding.h"\n',
            "namespace hooke {\nconstexpr int kMost = 3;\nstatic const char kName[] = {1};\nusing A = int;\nint F(int x = 3);\n}\n",
            "struct A {\n  static A Make(int x);\n  static constexpr int kMost = 127;\n  int count = 0;\n};\nbool operator==(const A&, const A&);\n",
            "int F() { static const auto* const kTable = new Table(); int calls = 0; return calls; }\n// std::cout, printf(x)\n",
            "template <typename T>\nclass A;\nstatic_assert(sizeof(int) == 4);\nint F() { return {static_cast<int>(1)}; }\n",
        ]
        for text in good:
            with self.subTest(text=text):
                self.assertEqual(list(house_rules.check_algorithms_pure("algorithms/sgd.cc", text)), [])

    def test_unfinished(self):
        self.assertEqual(lines(house_rules.check_unfinished, "server/a.cc", "// TO" + "DO: later\n"), [1])
        self.assertEqual(lines(house_rules.check_unfinished, "server/a.cc", 'Error("not imple' + 'mented")\n'), [1])

    def test_include_guard(self):
        good = "#ifndef HOOKE_SERVER_A_H_\n#define HOOKE_SERVER_A_H_\n#endif\n"
        self.assertEqual(lines(house_rules.check_include_guard, "server/a.h", good), [])
        self.assertEqual(lines(house_rules.check_include_guard, "server/b.h", good), [1])

    def test_type_of_two_headers(self):
        one = "class Folder;\nclass Folder final : public Base {\n  struct Part {\n  };\n};\nstruct Folder* Find();\n"
        other = "struct Part {\n};\nstruct Folder {\n};\nusing Id = int;\n"
        found = [finding[:2] for finding in house_rules.types_of_two_headers({"server/a.h": one, "worker/b.h": other, "worker/c.h": "enum class Id {\n"})]
        self.assertEqual(found, [("worker/b.h", 3), ("worker/c.h", 1)])
        self.assertEqual(list(house_rules.types_of_two_headers({"server/a.h": one, "worker/d.h": "class Folder;\n"})), [])


def findings_of(files):
    """Returns the findings in a tree of these files: {name: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(house_rules.findings(pathlib.Path(folder)))


class TreeRulesFind(unittest.TestCase):
    def test_sources_outside_the_table(self):
        what = ":1: sources stand in the folders of the README's table; a new one belongs in it and in MAY_INCLUDE"
        files = {"common/deep/a.cc": "", "b.cc": "", "docs/a.md": "", ".cache/c.cc": "", "bazel-out/d.cc": "", "common/notes.txt": ""}
        self.assertEqual(findings_of(files), ["b.cc" + what, "common/deep/a.cc" + what])
        # deploy/ is a folder like the others, so its sources are checked.
        self.assertEqual(len(findings_of({"deploy/a.cc": 'getenv("HOME");\n', "deploy/BUILD": 'cc_library(name = "a", srcs = ["a.cc"])\n'})), 1)

    def test_file_that_no_target_names(self):
        files = {"server/BUILD": 'cc_library(name = "a", srcs = ["a.cc"])\n', "server/a.cc": "int a;\n", "server/b.cc": "int b;\n"}
        unnamed = "server/b.cc:1: no target of its folder's BUILD file names this file"
        self.assertEqual(findings_of(files), [unnamed])
        # A comment, exports_files, another package or `deps` do not count as a target that names the file.
        for line in ('# "b.cc"', 'exports_files(["b.cc"])', 'cc_library(name = "b", deps = ["b.cc"])', 'cc_library(name = "b", srcs = ["//client:b.cc"])'):
            with self.subTest(line=line):
                self.assertEqual(findings_of({**files, "server/BUILD": files["server/BUILD"] + line + "\n"}), [unnamed])

    def test_ways_to_name_a_file(self):
        files = {"deploy/a/b.cc": "int b;\n", "client/BUILD": ""}
        for build, text in (
            ("deploy/a/BUILD", "cc_library(name = 'b', srcs = ['b.cc'])"),
            ("deploy/a/BUILD", 'load("//:x.bzl", "MORE", "cc_thing")\ncc_thing(name = "b", srcs = [":b.cc"] + MORE, copts = MORE)'),
            ("deploy/a/BUILD", 'cc_library(name = "b", srcs = glob(["*.cc"], exclude = ["c.cc"]))'),
            ("deploy/a/BUILD", '[cc_library(name = name, srcs = [name + ".cc"]) for name in ["b", "c"]]'),
            ("deploy/a/BUILD", 'cc_library(name = "b", srcs = ["c.cc"] + select({"//x": ["b.cc"], "//conditions:default": []}) + ["d.cc"])'),
            ("deploy/BUILD", 'cc_library(name = "b", srcs = ["a/b.cc"])'),
            ("client/BUILD", 'cc_library(name = "b", srcs = ["//deploy/a:b.cc"])'),
        ):
            with self.subTest(text=text):
                self.assertEqual(findings_of({**files, build: text + "\n"}), [])
        excluded = 'cc_library(name = "b", srcs = glob(["*.cc"], exclude = ["b.cc"]))\n'
        self.assertEqual(len(findings_of({**files, "deploy/a/BUILD": excluded})), 1)

    def test_build_file_that_cannot_be_read(self):
        self.assertEqual(findings_of({"server/BUILD": "cc_library(\n"})[0][:32], "server/BUILD:1: cannot be read: ")


class TreeKeepsThem(unittest.TestCase):
    def test_tree(self):
        self.assertEqual(list(house_rules.findings(ROOT)), [])

    def test_docs_have_the_rooms(self):
        table = {}
        for page, inside in (("docs/collectives.md", "mpi_group/"), ("docs/rooms.md", "")):
            rows = re.findall(r"^\| `([a-z_/]+)/` \|.*\| ([a-z_, /-]+) \|$", (ROOT / page).read_text(), re.MULTILINE)
            path = lambda name: name if name == "mpi_group" else inside + name
            table.update({path(room): {path(below) for below in cell.split(", ") if below != "-"} for room, cell in rows})
        self.assertEqual(table, house_rules.ROOMS_MAY_INCLUDE)
        for room in table:
            self.assertTrue((ROOT / room / "BUILD").exists(), room)


if __name__ == "__main__":
    unittest.main()

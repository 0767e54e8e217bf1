#!/usr/bin/env python3
"""Each house rule finds what it is there for, and the tree breaks none of them."""

import pathlib
import sys
import unittest

# Bazel runs a link to this file: the tree is where the file really is.
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

    def test_include_against_the_direction(self):
        wrong = '#include "worker/rank/arena.h"\n'
        self.assertEqual(lines(house_rules.check_includes, "server/parameters/shard.cc", wrong), [1])
        self.assertEqual(lines(house_rules.check_includes, "worker/rank/trainer.cc", wrong), [])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd.cc", '#include "proto/job.pb.h"\n'), [1])
        self.assertEqual(lines(house_rules.check_includes, "server/main.cc", "#include <mpi.h>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "worker/daemon/main.cc", "#include <torch/torch.h>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd.cc", "#include <torch/torch.h>\n"), [1])
        self.assertEqual(lines(house_rules.check_includes, "algorithms/sgd_test.cc", "#include <torch/torch.h>\n"), [])

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

    def test_file_that_no_target_names(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "server").mkdir()
            (root / "server/BUILD").write_text('cc_library(name = "a", srcs = ["a.cc"])\n')
            (root / "server/a.cc").write_text("int a;\n")
            (root / "server/b.cc").write_text("int b;\n")
            found = list(house_rules.findings(root))
            self.assertEqual(found, ["server/b.cc:1: no target of its folder's BUILD file names this file"])


class TreeKeepsThem(unittest.TestCase):
    def test_tree(self):
        self.assertEqual(list(house_rules.findings(ROOT)), [])


if __name__ == "__main__":
    unittest.main()

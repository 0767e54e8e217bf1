#!/usr/bin/python3
"""libhooke.so, worker/api/hooke.h, the package's view of it and its page in the docs say the same. Usage: interface_test.py MPIRUN..."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the source tree. Bazel has put libhooke.so into
# worker/api/ below the working folder.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(TREE / "deploy")]
from hooke import _native  # noqa: E402
import skips  # noqa: E402

LIBRARY = str(pathlib.Path("worker/api/libhooke.so").resolve())
HEADER = TREE / "worker/api/hooke.h"
FUNCTIONS = set(re.findall(r"^(?:const char\*|hooke_code|void) (hooke_\w+)\(", HEADER.read_text(), re.MULTILINE))
STRUCTS = {
    "hooke_place": _native._Place,
    "hooke_tensor": _native._Tensor,
    "hooke_share": _native._Share,
    "hooke_generation": _native._Generation,
    "hooke_plan": _native._Plan,
    "hooke_step": _native._Step,
    "hooke_metric": _native._Metric,
    "hooke_array": _native._Array,
}
MPIRUN = []
# One rank alone gives arrays that no collective takes, and then one that is right.
ARRAYS = """
import ctypes
from hooke import _native
rank = _native.Native()
values = (ctypes.c_float * 2)(3, 4)
def call(name, *rest, **fields):
    array = _native._array(ctypes.addressof(values), 2, "float32")
    for field, value in fields.items():
        setattr(array, field, value)
    code = getattr(rank._library, name)(rank._job, array, *rest)
    return f"{code} {rank._library.hooke_message().decode() if code else list(values)}"
for name, rest in ("hooke_all_reduce", [0]), ("hooke_broadcast", [0]), ("hooke_all_gather", []):
    for fields in {"device": 0, "stream": 1}, {"type": 6}, {"values": None}, {}:
        print(call(name, *rest, **fields))
print(call("hooke_all_reduce", 4))
print(call("hooke_broadcast", 1))
rank.leave()
"""
# Rank 1 comes to a collective only after all is over for rank 0.
LATE = """
import signal, numpy, hooke.numpy
job = hooke.numpy.init()
job.register({"w": numpy.zeros(3, numpy.float32)})
job.barrier()
if job.rank == 1:
    signal.pause()
job.barrier()
"""


def compile_c(program, *flags):
    """Compiles a C99 program that includes hooke.h, as strictly as a user may."""
    command = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", str(TREE), "-x", "c", "-", *flags]
    subprocess.run(command, input=f'#include "worker/api/hooke.h"\n{program}', text=True, check=True)


class Interface(unittest.TestCase):
    def test_the_library_exports_the_header_s_functions_and_nothing_else(self):
        lines = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        self.assertEqual({line.split()[-1].split("@")[0] for line in lines if " A " not in line}, FUNCTIONS)

    def test_the_page_names_every_function(self):
        page = (TREE / "docs/c-interface.md").read_text()
        # The page need not name hooke_message: the header's paragraph on errors does.
        self.assertEqual({name for name in FUNCTIONS - {"hooke_message"} if f"`{name}`" not in page}, set())

    def test_every_function_has_a_comment(self):
        text = HEADER.read_text()
        for name in FUNCTIONS:
            before = text[: re.search(rf"^\S.* {name}\(", text, re.MULTILINE).start()]
            self.assertTrue(before.endswith("*/\n"), name)

    def test_structs_and_codes_of_the_package(self):
        fields = [(name, field) for name, struct in STRUCTS.items() for field, _ in struct._fields_]
        print_all = "".join(f'printf("%zu ", offsetof({name}, {field}));' for name, field in fields)
        print_all += "".join(f'printf("%zu ", sizeof({name}));' for name in STRUCTS)
        with tempfile.TemporaryDirectory() as folder:
            compile_c(f"#include <stdio.h>\nint main(void) {{ {print_all} return HOOKE_API_VERSION; }}", "-o", f"{folder}/sizes")
            result = subprocess.run([f"{folder}/sizes"], stdout=subprocess.PIPE, text=True)
        expected = [getattr(STRUCTS[name], field).offset for name, field in fields] + [ctypes.sizeof(struct) for struct in STRUCTS.values()]
        self.assertEqual([int(word) for word in result.stdout.split()], expected)
        self.assertEqual(result.returncode, _native.API_VERSION)
        codes = re.search(r"typedef enum hooke_code \{(.*?)\} hooke_code;", HEADER.read_text(), re.DOTALL)[1]
        self.assertEqual({name: int(value) for name, value in re.findall(r"HOOKE_(\w+) = (\d+)", codes)}, {code.name: code.value for code in _native.Code})

    def test_a_program_is_compiled_as_the_page_says(self):
        (line,) = re.findall(r"^gcc .*$", (TREE / "docs/c-interface.md").read_text(), re.MULTILINE)
        with tempfile.TemporaryDirectory() as folder:
            line = line.replace("-o linear_regression", f"-o {folder}/linear_regression").replace("bazel-bin/bin", str(pathlib.Path(LIBRARY).parent))
            subprocess.run(["sh", "-c", line.replace("$PWD/", "")], cwd=TREE, check=True)
            printed = subprocess.run([f"{folder}/linear_regression"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("1 ranks, 1 groups, rule none", printed)

    def test_another_version_and_null(self):
        library = ctypes.CDLL(LIBRARY)
        library.hooke_message.restype = ctypes.c_char_p
        job = ctypes.c_void_p()
        self.assertEqual(library.hooke_join(_native.API_VERSION + 1, ctypes.byref(job)), _native.Code.FAILED_PRECONDITION)
        self.assertIn(f"wants version {_native.API_VERSION + 1} of libhooke's interface", library.hooke_message().decode())
        self.assertEqual(library.hooke_join(_native.API_VERSION, None), _native.Code.INVALID_ARGUMENT)
        for name in sorted(FUNCTIONS - {"hooke_message", "hooke_join", "hooke_fail"}):
            # More arguments than a function has do no harm.
            self.assertEqual(getattr(library, name)(None, *[ctypes.c_void_p()] * 6), _native.Code.INVALID_ARGUMENT, name)
            self.assertIn("call hooke_join first", library.hooke_message().decode(), name)


class Arrays(unittest.TestCase):
    def test_what_no_collective_takes(self):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1", "HOOKE_LIBRARY": LIBRARY}
        result = subprocess.run(
            ["/usr/bin/python3", "-c", ARRAYS], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        on_device = "the values are on device 0; this library combines values in host memory: copy them there before the call, and back after it"
        expected = []
        for name in ("hooke_all_reduce", "hooke_broadcast", "hooke_all_gather"):
            expected += [f"3 {name}: {on_device}", f"3 {name}: there is no hooke_type 6", f"3 {name}: `values` is NULL", "0 [3.0, 4.0]"]
        expected += ["3 hooke_all_reduce: there is no hooke_reduction 4", "3 hooke_broadcast: there is no rank 1; the group has 1"]
        self.assertEqual(result.stdout.splitlines(), expected)


class Time(unittest.TestCase):
    def run_late(self, timeout):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1", "HOOKE_LIBRARY": LIBRARY, "HOOKE_COLLECTIVE_TIMEOUT": timeout}
        command = [*MPIRUN, "-n", "2", "/usr/bin/python3", "-c", LATE]
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_a_rank_that_does_not_come_in_time_ends_the_group(self):
        self.assertRegex(self.run_late("500ms"), r"hooke: rank 0: DEADLINE_EXCEEDED: .*\(deadline 500ms\)")

    def test_no_time(self):
        for text in ("soon", "0s", "25h", "-1s"):
            self.assertIn(f"HOOKE_COLLECTIVE_TIMEOUT must be a duration from 1ms to 24h, like 10m, got {text}", self.run_late(text))


if __name__ == "__main__":
    MPIRUN += sys.argv[1:]
    skips.main(argv=sys.argv[:1])

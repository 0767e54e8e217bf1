#!/usr/bin/python3
"""The package on the real library: two ranks train as one process does with twice the batch. Usage: ranks_test.py MPIRUN... [-- UNITTEST_ARGUMENT...]."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the library into this test's
# folder.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "deploy")]
import rank_program  # noqa: E402
import torch  # noqa: E402
import skips  # noqa: E402

LIBRARY = os.environ.get("HOOKE_LIBRARY") or str(pathlib.Path("worker/api/libhooke.so").resolve())
MPIRUN = []
SECONDS = 120


def run(scenario, folder=".", ranks=2, devices="cpu"):
    """Runs the scenario on so many ranks; on 0 without mpirun. Returns (exit status, output and errors)."""
    return run_program([str(HERE / "rank_program.py"), scenario, str(folder), devices], ranks)


def run_program(arguments, ranks, **variables):
    environment = {**os.environ, **variables, "HOOKE_LIBRARY": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
    command = [*(MPIRUN + ["-n", str(ranks)] if ranks else []), sys.executable, *arguments]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    return result.returncode, result.stdout


def write_start(path, group, generations, first_step, ranks):
    """Writes the file with which a worker would start a group, of a job without servers whose groups have so many ranks."""
    earlier = "".join(
        f"earlier {{ first_step: {first} {' '.join(f'groups {{ ranks: {size} last_step: {last} }}' for size, last in groups)} }} " for first, groups in generations
    )
    kinds = " ".join(f"kinds {{ count: 1 ranks: {size} }}" for size in ranks)
    number = f"first_incarnation: {2 * len(generations)} incarnation: {2 * len(generations) + 1}" if generations else "incarnation: 1"
    job = f'name: "job" command {{ arguments: "program" directory: "/tmp" }} groups {{ {kinds} }}'
    text = f'job_id: "job-1" task: TRAIN group: {group} job {{ {job} }} {earlier} first_step: {first_step} {number}'
    command = ["protoc", "--encode=hooke.v1.GroupStart", "-I", str(HERE.parents[1]), "proto/worker.proto"]
    path.write_bytes(subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout)


class Trains(unittest.TestCase):
    def check(self, scenario, ranks, devices="cpu", tolerance=1e-5, apart=0.0):
        with tempfile.TemporaryDirectory() as folder:
            status, output = run(scenario, folder, ranks, devices)
            self.assertEqual(status, 0, output)
            states = [torch.load(f"{folder}/{rank}.pt") for rank in range(ranks or 1)]
        steps, seed, first = states[0]
        accumulate = rank_program.SCENARIOS[scenario][1].get("accumulate", 1)
        expected_steps = rank_program.EPOCHS * rank_program.SAMPLES // (rank_program.BATCH * (ranks or 1) * accumulate)
        self.assertEqual(steps, expected_steps)
        plain = rank_program.plain(scenario, ranks or 1, seed)
        self.assertEqual(set(plain), set(first))
        for name, value in plain.items():
            difference = (first[name] - value).abs().max().item()
            self.assertLess(difference, rank_program.SCENARIOS[scenario][1].get("tolerance", tolerance), f"{scenario}: {name}")
            self.assertEqual(first[name].dtype, value.dtype)
            for _, _, other in states[1:]:
                torch.testing.assert_close(other[name], first[name], rtol=0, atol=apart)


class Training(Trains):
    def test_alone(self):
        self.check("momentum", 0)

    def test_one_rank(self):
        self.check("sgd", 1)


for name, (_, options) in rank_program.SCENARIOS.items():
    old = ("compile" in options and not hasattr(torch, "compile")) or ("scaled" in options and not hasattr(torch.amp, "GradScaler"))
    test = unittest.skipIf(old, f"torch {torch.__version__} has no torch.compile, and no GradScaler for the CPU")
    setattr(Training, f"test_{name}", test(lambda self, name=name: self.check(name, 2)))


class Ranks(unittest.TestCase):
    def passes(self, scenario, *said):
        status, output = run(scenario)
        self.assertEqual(status, 0, output)
        for text in said:
            self.assertIn(text, output)

    def fails(self, scenario, *said):
        status, output = run(scenario)
        self.assertNotEqual(status, 0, output)
        for text in said:
            self.assertIn(text, output)

    def test_float16(self):
        for scenario in ("half", "half_arrays"):
            with self.subTest(scenario):
                self.passes(scenario)
        self.fails("other_types", "float32 parameter weight [3 x 3] on rank 0 and bfloat16 parameter weight [3 x 3] on rank 1")

    def test_collectives(self):
        for scenario in ("collectives", "staged_collectives"):
            self.passes(scenario, "caught 0", "caught 1")

    def test_buffers_of_every_type_are_rank_0s(self):
        self.passes("buffers", "shared 0", "shared 1")

    def test_processes_that_are_no_group_are_refused(self):
        status, output = run_program([str(HERE / "rank_program.py"), "sgd", ".", "cpu"], 0, RANK="0", WORLD_SIZE="2")
        self.assertNotEqual(status, 0, output)
        self.assertIn("WORLD_SIZE says that torchrun started 2 processes: each would train alone.", output)

    def test_overflow_on_one_rank_skips_the_step_on_all(self):
        for scenario in ("scaler_skip", "staged_scaler_skip"):
            self.passes(scenario)

    def test_processes_of_the_data_loader(self):
        self.passes("forks", "forked 0", "forked 1")

    def test_the_program_for_plain_arrays_in_the_docs(self):
        page = (HERE.parents[1] / "docs/your-own-script.md").read_text()
        (program,) = re.findall(r"^```python\n(import numpy, hooke.numpy.*?)^```", page, re.MULTILINE | re.DOTALL)
        # An epoch has 1000 samples, a step of both ranks 20.
        program += "assert abs(parameters['w'] - [1, -2, 3]).max() < 1e-4 and job.step == 250\nprint(f'done {job.rank}')\n"
        status, output = run_program(["-c", program], 2)
        self.assertEqual(status, 0, output)
        self.assertIn("done 1", output)

    def test_program_with_protocol_buffers_of_its_own(self):
        """As TensorFlow, which shows them to everybody."""
        program = (
            "import ctypes, ctypes.util\n"
            "name = ctypes.util.find_library('protobuf')\n"
            "ctypes.CDLL(name, ctypes.RTLD_GLOBAL)._ZTVN6google8protobuf7MessageE\n"
            "import hooke.numpy\n"
            "job = hooke.numpy.init()\n"
            "print(f'rank {job.rank} is alone: {job.all_reduce(job.rank) == job.rank}')\n"
        )
        status, output = run_program(["-c", program], 2)
        self.assertEqual(status, 0, output)
        self.assertIn("rank 0 is alone: False", output)

    def test_rank_that_raises_ends_the_group(self):
        self.fails("raises", "ValueError: rank 1 has had enough")

    def test_rank_that_exits_ends_the_group(self):
        for scenario in ("exits", "raises_system_exit"):
            self.fails(scenario, "hooke: rank 1: INVALID_ARGUMENT: the program exited with status 4")

    def test_exit_that_was_caught_and_exit_with_status_0(self):
        self.passes("ends_well_by_system_exit", "ends 0", "ends 1")

    def test_exit_after_an_error_has_the_code_of_the_error(self):
        """So that the group of a rank that lost another one is started again."""
        status, output = run("exits_after_an_error", ranks=0)
        self.assertEqual(status, 3, output)
        self.assertIn("hooke: rank 0: INTERNAL: the program exited with status 3; before that: the program's work on the center failed", output)

    def test_calls_after_leaving_has_failed(self):
        self.fails("cannot_leave", "not all 2 ranks came within 10s", "the rank has left the group already, but its end failed")

    def test_exit_status_of_a_rank_alone(self):
        self.assertEqual(run("exits_alone", ranks=0)[0], 3)

    def test_models_that_differ_are_named(self):
        self.fails("other_models", "said 0", "said 1")

    def test_collective_that_one_rank_leaves_out_is_named(self):
        self.fails("skips", "said 0", "said 1")

    def test_misuse_on_one_rank_ends_both(self):
        self.fails("moves", "said 0", "said 1", "hooke: rank 1: FAILED_PRECONDITION: hooke.Error: parameter 0.weight was moved after wrap()")

    def test_rank_that_ends_early_is_named(self):
        self.fails("ends_early", "combining the gradients: ", "hooke: rank 1: INVALID_ARGUMENT: leaving the job: ", "all ranks must call the same operations")

    def test_one_rank_stops_all(self):
        for scenario in ("stops", "stops_after_an_epoch"):
            self.passes(scenario, "stopped 0", "stopped 1")


class Generations(unittest.TestCase):
    def test_every_sample_once_while_groups_come_and_go(self):
        """1 -> 3 -> 2 groups of different size. In each generation they end after different steps."""
        generations, first, taken = [], 0, {}
        for ranks, last in (((2,), [20]), ((1, 2, 1), [23, 21, 26]), ((2, 1), [None, None])):
            for group, size in enumerate(ranks):
                with tempfile.TemporaryDirectory() as folder:
                    start = pathlib.Path(folder) / "start"
                    write_start(start, group, generations, first, ranks)
                    program = [str(HERE / "rank_program.py"), "takes", folder, str(last[group])]
                    status, output = run_program(program, size, HOOKE_START=str(start))
                    self.assertEqual(status, 0, output)
                    ended = [torch.load(f"{folder}/{rank}.pt") for rank in range(size)]
                for first_step, earlier, steps in ended:
                    self.assertEqual((first_step, earlier), (first, [tuple(groups) for _, groups in generations]))
                    for epoch, samples in steps:
                        taken.setdefault(epoch, []).extend(samples)
            generations.append((first, list(zip(ranks, last))))
            first = max(step or 0 for step in last)
        # 20 steps of 6 samples are epoch 0 and 3 steps of epoch 1. Of that, 85 samples are left: 7 steps of 12. The groups
        # do 3, 1 and 6 steps of these, so that 85 - (3 + 2 + 6) x 3 = 52 are left: 5 steps of 9. Then 11 are epoch 2.
        self.assertEqual({epoch: (len(samples), len(set(samples))) for epoch, samples in taken.items()}, {0: (102, 102), 1: (96, 96), 2: (99, 99)})


if __name__ == "__main__":
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    MPIRUN += arguments[:cut]
    skips.main(argv=[sys.argv[0], *arguments[cut + 1 :]])

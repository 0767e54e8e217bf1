#!/usr/bin/python3
"""The PyTorch examples run alone and on two ranks, on tiny sizes, and differ from their plain versions in few lines.
Usage: examples_test.py MPIRUN..."""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the library into this test's
# folder.
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = os.environ.get("HOOKE_LIBRARY") or str(pathlib.Path("worker/api/libhooke.so").resolve())
CHANGED_LINES_MAX = 8
SECONDS = 240
MPIRUN = []
# Example -> flags that make it tiny.
EXAMPLES = {
    "fashion_mnist_cnn": ["--samples=640", "--epochs=1"],
    "small_gpt": ["--letters=400", "--width=16", "--features=16", "--layers=1"],
    "resnet_cifar": ["--samples=128", "--epochs=2", "--blocks=1"],
    "amp_accumulate": ["--samples=256", "--epochs=2"],
    "gpt2": ["--samples=24", "--batch=4", "--width=16", "--tokens=50", "--features=16", "--heads=2", "--layers=1", "--unmeasured=2"],
    "resnet50": ["--steps=4", "--batch=2", "--size=32", "--blocks", "1", "1", "1", "1", "--unmeasured=1"],
}
# Example -> what it gives to job.state(), so that a restarted group goes on with it.
KEPT = {"amp_accumulate": ["scaler"]}
# Those on plain arrays have no plain version. They are in frameworks_test.py.
OTHERS = {"jax_network", "tensorflow_network"}


# Runs a program, and then prints what its job has done.
COUNTED = """
import runpy, sys, hooke.torch
init, jobs = hooke.torch.init, []
hooke.torch.init = lambda: jobs.append(init()) or jobs[0]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
# One write, so that the lines of two ranks do not mix.
print(f"{jobs[0].step} steps with {jobs[0].ranks} ranks, kept: {sorted(jobs[0]._objects.others())}\\n", end="", flush=True)
"""


def run(name, ranks=0, around=None):
    """Runs an example, by another program if one is given, and returns its output. On 0 ranks it runs without mpirun."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "HOOKE_LIBRARY": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.update({"OMP_NUM_THREADS": "1"} if ranks else {})
    command = [*([*MPIRUN, "-n", str(ranks)] if ranks else []), sys.executable, *(["-c", around] if around else []), str(PACKAGE / "examples" / f"{name}.py"), *EXAMPLES[name.replace("_plain", "")]]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        raise AssertionError(f"{name}: {result.stderr}")
    return result.stdout


class Examples(unittest.TestCase):
    def test_every_example_has_a_plain_version(self):
        names = {path.stem for path in (PACKAGE / "examples").glob("*.py")}
        self.assertEqual(names, set(EXAMPLES) | {f"{name}_plain" for name in EXAMPLES} | OTHERS)

    def test_few_lines_differ(self):
        for name in EXAMPLES:
            plain, own = ((PACKAGE / "examples" / f"{n}.py").read_text().splitlines() for n in (f"{name}_plain", name))
            diff = list(difflib.unified_diff(plain, own, n=0, lineterm=""))[2:]
            # The line that says which version this is, and blank lines, do not count.
            changed = [line for line in diff if re.match(r"\+.", line) and not line.startswith('+"""')]
            print(f"{name}: {len(changed)} lines", flush=True)
            self.assertLessEqual(len(changed), CHANGED_LINES_MAX, "\n".join(changed))

    def test_run_alone_and_on_two_ranks(self):
        for name in EXAMPLES:
            epochs = sum(int(flag.split("=")[1]) for flag in EXAMPLES[name] if "epochs" in flag) or 1
            steps = []
            for output, ranks in ((run(f"{name}_plain"), 0), (run(name, 0, COUNTED), 1), (run(name, 2, COUNTED), 2)):
                said = re.findall(r"^epoch \d+: (?:accuracy|loss) [0-9.]+$", output, re.MULTILINE)
                self.assertEqual(len(said), epochs * max(ranks, 1), output)
                steps.append(re.findall(r"^(\d+) steps with (\d) ranks, kept: (.*)$", output, re.MULTILINE))
            plain, alone, both = steps
            kept = str(KEPT.get(name, []))
            self.assertEqual((plain, len(alone), both), ([], 1, [(str(int(alone[0][0]) // 2), "2", kept)] * 2), name)
            self.assertEqual(alone[0][1:], ("1", kept), name)


if __name__ == "__main__":
    MPIRUN += sys.argv[1:]
    skips.main(argv=sys.argv[:1])

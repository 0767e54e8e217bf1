"""Tests whose ranks are processes."""

MPIRUN = select({
    "//third_party:use_mpich": ["mpirun.mpich"],
    "//conditions:default": ["mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none"],
})

def mpi_test(name, ranks, srcs, deps = [], tags = [], size = "medium"):
    """Declares a GoogleTest program that mpirun runs with several numbers of ranks: a Bazel test for each number, and a suite of all.

    Rank 0 writes the test cases' results for Bazel; a case fails if it fails on any rank (mpi_test_main.cc).

    Args:
      name: the suite's name; its tests are called <name>_<ranks>_ranks.
      ranks: list of numbers of ranks.
      srcs: the program's sources, without a main.
      deps: the program's libraries, with //mpi_group/mpi:mpi_test_main.
      tags: further tags; "mpi" is always there.
      size: the size attribute of each test.
    """
    program = name + "_program"
    native.cc_binary(
        name = program,
        testonly = True,
        srcs = srcs,
        deps = deps,
    )
    tests = [name + "_{}_ranks".format(count) for count in ranks]
    for count, test in zip(ranks, tests):
        native.sh_test(
            name = test,
            size = size,
            srcs = ["//mpi_group/mpi:run_mpi_test.sh"],
            args = [str(count), "$(location {})".format(program)] + MPIRUN,
            data = [program],
            tags = tags + ["mpi"],
        )
    native.test_suite(
        name = name,
        tests = tests,
    )

#!/usr/bin/python3
"""How many threads each rank of a group takes."""

import os
import pathlib
import socket
import sys
import unittest
from unittest import mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import torch  # noqa: E402

import hooke.torch  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from hooke._threads import place_of, threads_of  # noqa: E402


class Threads(unittest.TestCase):
    def test_ranks_that_may_use_the_same_cores_share_them(self):
        whole = range(16)
        table = [
            # (host, cores) of each rank -> threads of each rank.
            ([("a", whole)] * 2, [8, 8]),
            ([("a", range(8)), ("a", range(8, 16))], [8, 8]),  # mpirun --map-by slot:PE=8
            ([("a", range(8))] * 4, [2] * 4),  # All in a part of the machine, or a socket for several ranks.
            ([("a", whole)] * 2 + [("b", whole)], [8, 8, 16]),
            ([("a", range(8)), ("b", range(8))], [8, 8]),
            ([("a", [0])] * 3, [1] * 3),
        ]
        for ranks, expected in table:
            places = [place_of(host, cores) for host, cores in ranks]
            found = [threads_of(rank, len(cores), places) for rank, (_, cores) in enumerate(ranks)]
            self.assertEqual(found, expected, ranks)

    def test_the_order_of_the_cores_does_not_matter(self):
        self.assertEqual(place_of("a", {3, 1, 2}), place_of("a", [1, 2, 3]))

    def init(self, environment, ranks=2, cores=range(8), others=range(8, 16)):
        """Returns with how many threads init() lets rank 0 compute; None if it leaves that alone."""
        native = FakeNative(ranks=ranks)
        job = hooke.torch.Job(native)
        job.all_gather = lambda place: [place] + [place_of(socket.gethostname(), others)] * (ranks - 1)
        with mock.patch.object(hooke.torch, "Job", lambda: job), mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(
            os, "sched_getaffinity", lambda _: set(cores)
        ), mock.patch.object(torch, "set_num_threads") as told:
            self.assertIs(hooke.torch.init(), job)
        return told.call_args[0][0] if told.called else None

    def test_init(self):
        self.assertEqual(self.init({}), 8)
        self.assertEqual(self.init({}, others=range(8)), 4)
        self.assertEqual(self.init({}, ranks=4, others=range(8)), 2)
        self.assertIsNone(self.init({"OMP_NUM_THREADS": "3"}))
        self.assertIsNone(self.init({}, ranks=1))


if __name__ == "__main__":
    unittest.main()

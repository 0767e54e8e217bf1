#!/usr/bin/env python3
"""Tests how `allreduce`, `broadcast` and `reduce` judge given results, without running them."""

import contextlib
import io
import pathlib
import sys
import unittest
import unittest.mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import collectives  # noqa: E402
import summary  # noqa: E402


class Collectives(unittest.TestCase):
    """Tests each requirement on all-reduce, broadcast and reduce, with made-up times that just meet it and times that just miss it."""

    def rows(self, size, times, operation="allreduce", ranks=2, hosts=1, limit=None):
        return [
            {"benchmark": operation, "impl": impl.replace("_", "-"), "ranks": ranks, "hosts": hosts, "bytes": size, "median_us": us, "correct": True, "limit_us": limit}
            for impl, us in times.items()
        ]

    def check(self, met, missed, said, cores=2):
        """Checks that `met` gives no miss and `missed` gives one. Both are rows; `said` is the end of the only line about the miss."""
        self.assertTrue(any(summary.judged(met, cores)))
        self.assertEqual(summary.missed(met, cores), [])
        lines = summary.missed(missed, cores)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].endswith(said), lines[0])

    def test_two_ranks_in_the_arena(self):
        for size, least in ((4, 1.5), ((16 << 10) - 4, 1.5), (16 << 10, 3), ((64 << 10) - 4, 3), (64 << 10, 4), (64 << 20, 4)):
            said = f"allreduce, 2 ranks on 1 host, {size} bytes: hooke is {least - 0.1:.3f} times as fast as gloo; asked is at least {least}"
            # A slower rival makes no difference. A rival with wrong results does not count.
            met, missed = (self.rows(size, {"hooke": 10.0, "gloo": 10.0 * ratio, "openmpi": 90.0}) for ratio in (least, least - 0.1))
            wrong = {**met[1], "impl": "mpich", "median_us": 1.0, "correct": False}
            self.check([*met, wrong], missed, said)

    def test_two_ranks_in_private_memory(self):
        for size, most in ((4, 1.1), (32 << 10, 1.1)):
            met, missed = (self.rows(size, {"hooke_private": us, "mpich": 10.0}) for us in (10.0 * most, 11.1))
            self.check(met, missed, "hooke-private takes 1.110 times the time of mpich; asked is at most 1.1")
        for size in (64 << 10, 256 << 20):
            met, missed = (self.rows(size, {"hooke_private": 10.0, "mpich": us}) for us in (15.0, 14.9))
            self.check(met, missed, "hooke-private is 1.490 times as fast as mpich; asked is at least 1.5")

    def test_two_ranks_beside_named_libraries(self):
        for size, least in ((4, 1), ((16 << 10) - 4, 1), (16 << 10, 2.5), (64 << 20, 2.5), (256 << 20, 2.5)):
            met, missed = (
                self.rows(size, {"hooke": 10.0, "openmpi": 90.0, "intelmpi_2021.18.1": 10.0 * ratio, "mpich_5.0.2": 90.0}) for ratio in (least, least - 0.1)
            )
            self.check(met, missed, f"hooke is {least - 0.1:.3f} times as fast as intelmpi-2021.18.1; asked is at least {least}")
        # Private values are not compared with named libraries. More is asked against a library of Debian.
        self.assertEqual(summary.missed(self.rows(1 << 20, {"hooke_private": 11.0, "intelmpi_2021.18.1": 10.0}), 2), [])
        self.assertEqual(summary.missed(self.rows(1 << 20, {"hooke": 10.0, "openmpi_tuned": 41.0, "intelmpi_2021.18.1": 25.0}), 2), [])

    def test_share_of_the_memory_limit(self):
        for size in (1 << 20, 64 << 20):
            met, missed = (self.rows(size, {"hooke": 10.0, "gloo": 50.0}, limit=limit) for limit in (7.0, 6.9))
            self.check(met, missed, "hooke has 0.690 of the limit; asked is at least 0.7")
        self.assertEqual(summary.missed(self.rows(512 << 10, {"hooke": 10.0}, limit=1.0), 2), [])

    def test_more_ranks_than_cores(self):
        for impl in summary.OWN:
            for size in (4, 1 << 20):
                met, missed = (self.rows(size, {impl: us, "openmpi": 10.0}, ranks=4, limit=1.0) for us in (11.0, 11.1))
                self.check(met, missed, f"allreduce, 4 ranks on 1 host, {size} bytes: {impl} takes 1.110 times the time of openmpi; asked is at most 1.1")
        # Two ranks on one core count as more ranks than cores, too.
        met, missed = (self.rows(1 << 20, {"hooke": us, "openmpi": 10.0}) for us in (11.0, 11.1))
        self.check(met, missed, "asked is at most 1.1", cores=1)

    def test_hosts(self):
        for ranks, hosts in ((2, 2), (4, 2), (4, 4)):
            met, missed = (self.rows(1 << 20, {"hooke": 100.0}, ranks=ranks, hosts=hosts, limit=limit) for limit in (97.0, 96.9))
            self.check(met, missed, f"{ranks} ranks on {hosts} hosts, 1048576 bytes: hooke has 0.969 of the limit; asked is at least 0.97")
        met, missed = (self.rows(1 << 26, {"hooke": us, "openmpi_tuned": 100.0}, hosts=2, limit=99.5) for us in (102.0, 102.1))
        self.check(met, missed, "hooke takes 1.021 times the time of openmpi-tuned; asked is at most 1.02")
        self.assertFalse(any(summary.judged(self.rows(1 << 19, {"hooke": 9.0, "gloo": 1.0}, hosts=2, limit=1.0), 2)))

    def test_what_defaults_waste_between_hosts_is_told(self):
        rows = self.rows(1 << 20, {"hooke": 100.0, "openmpi": 150.0, "gloo": 101.0}, hosts=2) + self.rows(1 << 22, {"hooke": 100.0, "openmpi": 210.0}, hosts=2)
        self.assertEqual(list(summary.wasted(rows)), ["openmpi takes 1.50 to 2.10 times hooke's time from 1 MiB"])
        self.assertEqual(summary.lines(rows)[-1], "openmpi takes 1.50 to 2.10 times hooke's time from 1 MiB")
        self.assertEqual(list(summary.wasted(self.rows(1 << 20, {"hooke": 100.0, "openmpi": 150.0}))), [])

    def test_every_power_of_two_of_the_tables_has_a_neighbour(self):
        powers = [size for size in collectives.SIZES if size >= 4096 and size & (size - 1) == 0]
        judged = {summary.next_power_of_two(size) for size in collectives.SIZES if size & (size - 1)}
        self.assertEqual([size for size in powers if size not in judged], [1 << 26])

    def test_no_cliff(self):
        for operation in ("allreduce", "broadcast", "reduce"):
            for ranks, hosts in ((2, 1), (8, 1), (4, 4)):
                def pair(us, layout=(operation, ranks, hosts)):
                    return self.rows(4000012, {"hooke": us}, *layout) + self.rows(4 << 20, {"hooke": 10.0}, *layout)

                self.check(pair(13.0), pair(13.1), "hooke takes 1.310 times the time of 4194304 bytes; asked is at most 1.3")

    def test_broadcast_and_reduce_are_ahead_of_mpi(self):
        for operation in ("broadcast", "reduce"):
            for ranks, hosts in ((2, 1), (8, 1), (2, 2)):
                met, missed = (
                    self.rows(64 << 10, {"hooke_private": us, "mpich": 10.0, "gloo": 1.0}, operation, ranks, hosts, limit=0.1) for us in (9.99, 10.0)
                )
                self.check(met, missed, "hooke-private takes 1.000 times the time of mpich; asked is to be ahead")
            self.assertFalse(any(summary.judged(self.rows(32 << 10, {"hooke": 9.0, "mpich": 1.0}, operation), 2)))
            # If our time is at the limit of the links, it need only be about as fast as the rival.
            met, missed = (self.rows(1 << 20, {"hooke": 10.1, "mpich": 10.0}, operation, hosts=2, limit=limit) for limit in (9.9, 9.7))
            self.check(met, missed, "asked is to be ahead")

    def test_nothing_is_asked_without_ours_or_a_rival(self):
        self.assertFalse(any(summary.judged(self.rows(1 << 16, {"gloo": 1.0, "mpich": 1.0}), 2)))
        self.assertFalse(any(summary.judged(self.rows(1 << 16, {"hooke": 1.0}), 2)))


class Main(unittest.TestCase):
    def run_main(self, *options, rows=(), skipped=(), failed=()):
        """Returns the output and exit code of an `allreduce` in which every layout gives these results."""
        said, arguments = io.StringIO(), ["allreduce", "--programs=x", *options]
        with unittest.mock.patch.object(collectives, "run_layout", return_value=(list(failed), list(rows), list(skipped))):
            with unittest.mock.patch.object(sys, "argv", arguments), unittest.mock.patch.object(collectives.hosts, "missing", return_value="no root"):
                with contextlib.redirect_stdout(said):
                    try:
                        collectives.main("allreduce")
                    except SystemExit as end:
                        return said.getvalue(), end.code
        return said.getvalue(), 0

    def rows(self, us, rival):
        return [
            {"benchmark": "allreduce", "impl": impl, "ranks": 4, "hosts": 2, "bytes": 1 << 20, "median_us": time, "correct": True, "limit_us": None}
            for impl, time in (("hooke", us), ("gloo", rival))
        ]

    def test_it_judges_what_ran(self):
        self.assertEqual(self.run_main("--hosts=1", rows=self.rows(1.0, 1.0)), ("met: all that is asked of what ran\n", 0))
        said, code = self.run_main("--hosts=1", "--ranks=2", rows=self.rows(1.5, 1.0))
        self.assertEqual((said.count("MISSED: allreduce, 4 ranks on 2 hosts, 1048576 bytes: hooke takes 1.500 times"), code), (1, 1))
        self.assertEqual(self.run_main("--hosts=1"), ("nothing is asked of what ran\n", 0))

    def test_what_was_left_out_is_named_last(self):
        said, code = self.run_main("--quick", rows=self.rows(1.0, 1.0), skipped=[4, 64])
        last = said.splitlines()[-1]
        self.assertEqual(code, 0)
        self.assertEqual(
            last,
            "not judged: allreduce, 2 ranks on 1 host: no time for 4, 64 bytes; allreduce, 2 ranks on 2 hosts: no root; nothing else was missed",
        )
        self.assertNotIn("not judged", self.run_main("--quick", "--impls=gloo", skipped=[4])[0])

    def test_what_failed_is_no_result(self):
        self.assertEqual(self.run_main("--hosts=1", "--ranks=2", failed=["gloo: a rank ended"]), ("", "1 failures:\ngloo: a rank ended"))


if __name__ == "__main__":
    unittest.main()

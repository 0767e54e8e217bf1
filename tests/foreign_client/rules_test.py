#!/usr/bin/python3
"""The Python client against a real server, under elastic and rules that answer with the center. The expected numbers are computed in plain Python.

Some tests use halves, quarters and eighths, whose sums are exact, so the expected values are exact, too. The tests named bit_for_bit use other
numbers: the formulas of docs/wire.md, rounded as that page says, must give the server's bits.
"""

import array
import concurrent.futures
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True  # Keeps __pycache__ out of the tree.

from real_server import BLOCK_VALUES, ServerTest, VALUES, initial  # noqa: E402
import wire_client  # noqa: E402
import wire_codec  # noqa: E402
from wire_rules import Distances, Elastic, Gradients, Sgd, elastic_difference, mean, minus  # noqa: E402
# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

PARAMETERS = VALUES - 300  # The border lies within a block; the values from it on are buffers.
RATE = 0.5


def gradient(group):
    return array.array("f", (0.5 * ((i * (group + 3)) % 33) - 8 for i in range(PARAMETERS)))


def odd(factor, count=VALUES):
    """Returns values whose sums and products are rarely exact in float32."""
    return array.array("f", (factor * ((i * 7919) % 1013 - 500) / 3 for i in range(count)))


def moved(values, by):
    return array.array("f", (x + by for x in values))


def together(members, *arguments):
    with concurrent.futures.ThreadPoolExecutor(len(members)) as threads:
        for done in [threads.submit(member.exchange, *arguments) for member in members]:
            done.result(60)


class Rules(ServerTest):
    def groups(self, job_id, make_job, count=2):
        """Attaches `count` groups. `make_job` makes a new description for each of them."""
        return self.attached(*(wire_client.Group(self.address, job_id, make_job(), VALUES, group=index) for index in range(count)))

    def by_gradients(self, job_id, make_job, count=2, way=wire_client.TCP):
        groups = self.groups(job_id, make_job, count)
        return groups, [Gradients(wire_client.Exchanges(group, way), group.pull(), PARAMETERS) for group in groups]

    def by_distances(self, job_id, make_job, way=wire_client.GRPC):
        groups = self.groups(job_id, make_job)
        return groups, [Distances(wire_client.Exchanges(group, way), group.pull()) for group in groups]

    def close(self, members):
        for member in members:
            member.exchanges.close()

    def test_async(self):
        """Each group steps the center at once with the mean of its own gradients, and gets the new center. Each group moves the buffers by 1 / groups
        of its distance."""
        groups, members = self.by_gradients("async", lambda: wire_client.stepped(wire_client.ASYNC, 2, 4, PARAMETERS, RATE))
        center = initial()
        for index, sequence in ((0, 4), (1, 4), (0, 6)):
            member, steps = members[index], sequence - (4 if sequence == 6 else 0)
            for _ in range(steps):
                member.step(gradient(index))
            member.x[PARAMETERS:] = moved(member.x[PARAMETERS:], 2 * index + 2)
            expected_buffers = [c + (x - b) / 2 for c, x, b in zip(center[PARAMETERS:], member.x[PARAMETERS:], member.base[PARAMETERS:])]
            expected = [c - RATE * g for c, g in zip(center, gradient(index))] + expected_buffers
            center = array.array("f", expected)
            member.exchange(sequence)
            self.assertEqual(member.x, center)
            self.assertFalse(any(member.sum))
            self.assertEqual(groups[1 - index].pull(), center)
        self.close(members)

    def test_elastic_bit_for_bit(self):
        """First alpha is rounded to float32, then the result of each operation."""
        alpha = 0.3
        (group,) = self.attached(wire_client.Group(self.address, "elastic", wire_client.elastic(alpha), VALUES))
        member, center = Elastic(wire_client.Exchanges(group, wire_client.TCP), odd(0.1)), initial()
        for sequence in (1, 2, 3):
            difference = elastic_difference(alpha, member.x, center)
            expected = minus(member.x, difference)
            center = array.array("f", (c + d for c, d in zip(center, difference)))
            member.exchange(sequence)
            self.assertEqual(member.x.tobytes(), expected.tobytes())
            self.assertEqual(group.pull().tobytes(), center.tobytes())
        self.close([member])

    def test_momentum_bit_for_bit(self):
        """SGD with momentum, Nesterov's momentum, and weight decay. A group sends 3 steps, then 1, then 7. The center steps by the mean of each
        contribution's gradients."""
        for name, momentum, nesterov, decay in (("plain", 0, False, 0.01), ("heavy", 0.9, False, 0.001), ("nesterov", 0.7, True, 0.0003)):
            with self.subTest(name):

                def make_job(momentum=momentum, nesterov=nesterov, decay=decay):
                    job = wire_client.stepped(wire_client.ASYNC, 1, 1, PARAMETERS, 0.05)
                    job.optimizer.momentum, job.optimizer.nesterov, job.optimizer.weight_decay = momentum, nesterov, decay
                    return job

                (group,), (member,) = self.by_gradients(name, make_job, 1)
                sgd, parameters = Sgd(make_job().optimizer, PARAMETERS), initial()[:PARAMETERS]
                sequence = 0
                for steps in (3, 1, 7):
                    sequence += steps
                    gradient = odd(0.01 * sequence, PARAMETERS)
                    gradient[0] = 1e-39  # This makes a subnormal velocity, and the parameter there is 0.
                    member.step(gradient)
                    parameters = sgd.step(mean([1 / steps], [member.sum]), parameters)
                    member.exchange(sequence)
                    self.assertEqual(member.x[:PARAMETERS].tobytes(), parameters.tobytes())
                self.close([member])

    def test_sync_bit_for_bit(self):
        """Three groups send 1, 2 and 4 steps. Each gradient is weighted by 1 / (sum of steps), and each buffer distance by its group's share of the
        steps. Terms are added in the order of the groups."""

        def make_job():
            job = wire_client.stepped(wire_client.SYNC, 3, 1, PARAMETERS, 0.05)
            job.optimizer.momentum = 0.9
            return job

        _, members = self.by_gradients("sync-bits", make_job, 3)
        sgd, center = Sgd(make_job().optimizer, PARAMETERS), initial()
        before = [0, 0, 0]
        for sequences in ((1, 2, 4), (5, 3, 6)):
            steps = [now - then for now, then in zip(sequences, before)]
            before = sequences
            for index, member in enumerate(members):
                member.step(odd(0.1 + index, PARAMETERS))
                member.x[PARAMETERS:] = array.array("f", (x + 0.1 * index - i / 7 for i, x in enumerate(member.x[PARAMETERS:])))
            gradient = mean([1 / sum(steps)] * 3, [member.sum for member in members])
            buffers = mean([each / sum(steps) for each in steps], [minus(m.base[PARAMETERS:], m.x[PARAMETERS:]) for m in members])
            center = sgd.step(gradient, center[:PARAMETERS]) + minus(center[PARAMETERS:], buffers)
            with concurrent.futures.ThreadPoolExecutor(3) as threads:
                for done in [threads.submit(member.exchange, sequence) for member, sequence in zip(members, sequences)]:
                    done.result(60)
            self.assertEqual([member.x.tobytes() for member in members], [center.tobytes()] * 3)
        self.close(members)

    def test_async_buffers_bit_for_bit(self):
        """Each group moves the center's buffers by a third of how far it moved its own. Its number of steps does not matter. The learning rate is
        divided by (1 + staleness) ** 0.5."""

        def make_job():
            job = wire_client.stepped(wire_client.ASYNC, 3, 1, PARAMETERS, 0.05)
            job.staleness_power = 0.5
            return job

        _, members = self.by_gradients("async-bits", make_job, 3)
        center = initial()
        for member in members:
            member.exchange(1)  # Does not change the center, but tells the server which center each group has.
        optimizer = make_job().optimizer
        optimizer.learning_rate *= (1 + 2) ** -0.5  # Each group has missed the updates of the two others.
        for member in members:
            member.step(odd(0.3, PARAMETERS))
            member.x[PARAMETERS:] = array.array("f", (x - i / 7 for i, x in enumerate(member.x[PARAMETERS:])))
            parameters = Sgd(optimizer, PARAMETERS).step(mean([1 / 5], [member.sum]), center[:PARAMETERS])
            distance = mean([1 / 3], [minus(member.base[PARAMETERS:], member.x[PARAMETERS:])])
            center = parameters + minus(center[PARAMETERS:], distance)
            member.exchange(6)
            self.assertEqual(member.x.tobytes(), center.tobytes())
        self.close(members)

    def test_average_bit_for_bit(self):
        """Three groups send 16, 5 and 11 steps. The mean of distances weights each by its group's steps. The center
        makes 2/3 of a step with momentum (Sgd.part_of_a_step), then a whole one."""
        for momentum, nesterov in ((0, False), (0.9, False), (0.9, True)):
            with self.subTest(momentum=momentum, nesterov=nesterov):
                rule = wire_client.AVERAGE if momentum == 0 else wire_client.BMUF

                def make_job(momentum=momentum, nesterov=nesterov, rule=rule):
                    job = wire_client.stepped(rule, 3, 16, PARAMETERS, 0.7)
                    job.optimizer.momentum, job.optimizer.nesterov = momentum, nesterov
                    return job

                groups = self.groups(f"distances-{momentum}-{nesterov}".replace(".", "-").lower(), make_job, 3)
                members = [Distances(wire_client.Exchanges(group), group.pull()) for group in groups]
                sgd, center = Sgd(make_job().optimizer, PARAMETERS), initial()
                before = [0, 0, 0]
                for sequences in ((16, 5, 11), (32, 21, 27)):  # First 2/3 of an interval on average, then a whole one for each group.
                    steps = [now - then for now, then in zip(sequences, before)]
                    before = sequences
                    for index, member in enumerate(members):
                        member.x = array.array("f", (x + d for x, d in zip(member.x, odd(0.01 + 0.1 * index))))
                    distance = mean([each / sum(steps) for each in steps], [minus(m.base, m.x) for m in members])
                    parameters = sgd.part_of_a_step(min(1, sum(steps) / 3 / 16), distance[:PARAMETERS], center[:PARAMETERS])
                    center = parameters + minus(center[PARAMETERS:], distance[PARAMETERS:])
                    with concurrent.futures.ThreadPoolExecutor(3) as threads:
                        for done in [threads.submit(member.exchange, sequence) for member, sequence in zip(members, sequences)]:
                            done.result(60)
                    self.assertEqual(groups[0].pull().tobytes(), center.tobytes())
                self.close(members)

    def test_a_killed_server_takes_back_what_it_answered(self):
        """After a kill, last_sequence and the center are those of the snapshot. The group continues with its next sequence, or restarts from there as
        a new incarnation."""
        for rule, job_id in ((wire_client.ELASTIC, "back-elastic"), (wire_client.AVERAGE, "back-average")):
            with self.subTest(job_id):

                def make_job(rule=rule):
                    return wire_client.elastic(0.25) if rule == wire_client.ELASTIC else wire_client.stepped(rule, 1, 8, VALUES)

                (group,) = self.attached(wire_client.Group(self.address, job_id, make_job(), VALUES))
                Member = Elastic if rule == wire_client.ELASTIC else Distances
                member = Member(wire_client.Exchanges(group), group.pull())
                for sequence in (8, 16):
                    member.x = moved(member.x, 1)
                    member.exchange(sequence)
                group.save()
                snapshot = group.pull()
                for sequence in (24, 32):  # These are answered, but not in the snapshot.
                    member.x = moved(member.x, 1)
                    member.exchange(sequence)
                self.assertEqual(group.attach().last_sequence, 32)
                self.assertNotEqual(group.pull(), snapshot)

                self.kill_server()
                self.start_server()
                again = wire_client.Group(self.address, job_id, make_job(), VALUES)
                answer = again.attach()
                self.assertEqual(answer.state, wire_client.messages.AttachResponse.READY)
                self.assertEqual(answer.last_sequence, 16)
                self.assertEqual(again.pull(), snapshot)

                member.exchanges.stream.close()
                member.exchanges = wire_client.Exchanges(again)
                member.x = moved(member.x, 1)
                if rule == wire_client.ELASTIC:
                    difference = elastic_difference(0.25, member.x, snapshot)
                    center = array.array("f", (c + d for c, d in zip(snapshot, difference)))
                else:  # The distance counts from the last answer, and the server no longer has that center.
                    center = minus(snapshot, minus(member.base, member.x))
                member.exchange(40)
                self.assertEqual(again.attach().last_sequence, 40)
                self.assertEqual(again.pull(), center)

                next_start = wire_client.Group(self.address, job_id, make_job(), VALUES, incarnation=2)
                self.assertEqual(next_start.attach().last_sequence, 40)
                self.close([member])

    def test_sync_in_rounds(self):
        """The center makes one step with the mean of all gradients, and moves its buffers by the mean of all distances. All groups get the same
        center."""
        groups, members = self.by_gradients("sync", lambda: wire_client.stepped(wire_client.SYNC, 2, 2, PARAMETERS, RATE), way=wire_client.LOCAL)
        center = initial()
        for sequence in (2, 4):
            for index, member in enumerate(members):
                member.step(gradient(index))
                member.step(gradient(2))
                member.x[PARAMETERS:] = moved(member.x[PARAMETERS:], (1, 4)[index])
            together(members, sequence)
            mean = [(a + b + 2 * c) / 4 for a, b, c in zip(gradient(0), gradient(1), gradient(2))]
            center = array.array("f", [c - RATE * g for c, g in zip(center, mean)] + [c + 2.5 for c in center[PARAMETERS:]])
            self.assertEqual([member.x for member in members], [center] * 2)
        self.assertEqual(groups[0].pull(), center)
        self.close(members)

    def test_sync_drops_what_is_late(self):
        """Each round has one group. If the center has moved since a gradient was computed, the server drops the gradient and answers with the
        center."""
        _, (late, first) = self.by_gradients("late", lambda: wire_client.stepped(wire_client.SYNC, 2, 1, PARAMETERS, RATE, quorum=1))
        late.exchange(1)  # Does not change the center, but tells the server which center the group has.
        first.step(gradient(0))
        first.exchange(1)
        center = array.array("f", [c - RATE * g for c, g in zip(initial(), gradient(0))] + list(initial()[PARAMETERS:]))
        self.assertEqual(first.x, center)
        late.step(gradient(1))
        late.exchange(2)
        self.assertEqual(late.x, center)
        self.assertFalse(any(late.sum))
        late.step(gradient(1))  # Computed on the present center.
        late.exchange(3)
        self.assertEqual(late.x[:PARAMETERS], array.array("f", [c - RATE * g for c, g in zip(center, gradient(1))]))
        self.close([late, first])

    def test_top_k_sends_the_largest_and_keeps_the_rest(self):
        """Under async, the center steps by the values that were sent. Answers are the center as float16. Values that were left out go with the next
        exchange."""

        def make_job():
            return wire_client.compressed(wire_client.stepped(wire_client.ASYNC, 1, 1, PARAMETERS, RATE), wire_codec.TOP_K, 0.125)

        (group,), (member,) = self.by_gradients("top-k", make_job, 1)
        total = array.array("f", (0.1 * ((i * 7) % 1009) - 50 for i in range(PARAMETERS)))
        member.step(total)
        taken = array.array("f", bytes(4 * PARAMETERS))
        center = initial()[:PARAMETERS]
        for sequence in (1, 2):
            before = member.sum[:]
            member.exchange(sequence)
            sent = [a - b for a, b in zip(before, member.sum)]
            self.assertLess(0.1 * PARAMETERS, sum(s != 0 for s in sent))
            self.assertLess(sum(s != 0 for s in sent), 0.126 * PARAMETERS)
            taken = [a + b for a, b in zip(taken, sent)]
            center = [c - RATE * s for c, s in zip(center, sent)]
            pulled = group.pull()
            self.assertLess(max(abs(a - b) for a, b in zip(pulled, center)), 1e-4)
            self.assertEqual(member.x, wire_codec.rounded(wire_codec.FLOAT16, 0, pulled))
            # The largest values were sent, so only their rounding errors to bfloat16 are left.
            self.assertLess(max(map(abs, member.sum)), max(map(abs, before)))
        self.assertLess(max(abs(t - s - left) for t, s, left in zip(total, taken, member.sum)), 1e-4)
        self.close([member])

    def test_compressed_answers_are_the_center_rounded(self):
        """Under average, with types whose answers have the same type, and with int4, whose answers are int8. All groups get the same bits. Pull
        returns the exact center."""
        answers = {wire_codec.BFLOAT16: wire_codec.BFLOAT16, wire_codec.INT8: wire_codec.INT8, wire_codec.INT4: wire_codec.INT8}
        for value_type, answered in answers.items():

            def make_job(value_type=value_type):
                return wire_client.compressed(wire_client.stepped(wire_client.AVERAGE, 2, 16, VALUES), value_type)

            with self.subTest(value_type=value_type):
                groups, members = self.by_distances(f"average-{value_type}", make_job, wire_client.LOCAL)
                center = initial()
                for sequence in (16, 32):
                    for index, member in enumerate(members):
                        member.x = array.array("f", (x + 0.01 * ((i * (index + 2)) % 101) for i, x in enumerate(member.x)))
                    sent = [wire_codec.rounded(value_type, 0, array.array("f", (b - x for b, x in zip(m.base, m.x)))) for m in members]
                    center = [c - (a + b) / 2 for c, a, b in zip(center, *sent)]
                    together(members, sequence)
                    pulled = groups[0].pull()
                    self.assertLess(max(abs(a - b) for a, b in zip(pulled, center)), 1e-4)
                    for member in members:
                        self.assertEqual(member.base.tobytes(), wire_codec.rounded(answered, 0, pulled).tobytes())
                    self.assertNotEqual(members[0].base.tobytes(), pulled.tobytes())
                self.close(members)

    def test_average_in_rounds(self):
        """In rounds of two groups, the center moves to the mean of the groups. The result is exact, because the numbers are. Both groups get the
        center and continue from it."""
        groups, members = self.by_distances("average", lambda: wire_client.stepped(wire_client.AVERAGE, 2, 16, VALUES))
        expected = initial()
        for sequence, moves in ((16, (1.0, 3.0)), (32, (-0.5, 2.0))):
            for member, move in zip(members, moves):
                member.x = moved(member.x, move)
            together(members, sequence)
            expected = moved(expected, sum(moves) / 2)
            self.assertEqual([member.x.tobytes() for member in members], [expected.tobytes()] * 2)
        self.close(members)
        self.assertEqual(groups[1].pull().tobytes(), expected.tobytes())

    def test_average_by_fragments_as_pace_says(self):
        groups, members = self.by_distances("fragments", lambda: wire_client.stepped(wire_client.AVERAGE, 2, 16, VALUES, fragments=2))
        border = 2 * BLOCK_VALUES  # The first fragment has two of the four blocks.
        expected = initial()
        for turn, sequence in ((0, 8), (1, 16), (0, 24)):
            paces = [group.pace(speed) for group, speed in zip(groups, (10, 4))]
            self.assertEqual([pace.next_fragment for pace in paces], [turn, turn])
            self.assertEqual(paces[1].fastest_steps_per_second, 10)
            part = slice(border, VALUES) if turn else slice(0, border)
            members[0].x = moved(members[0].x, 1)
            before = [member.x[part] for member in members]
            together(members, sequence, turn, 2)
            expected[part] = array.array("f", (sum(both) / 2 for both in zip(*before)))
            self.assertEqual([member.x[part].tobytes() for member in members], [expected[part].tobytes()] * 2)
            self.assertEqual(groups[0].pull().tobytes(), expected.tobytes())
        self.close(members)


if __name__ == "__main__":
    skips.main()

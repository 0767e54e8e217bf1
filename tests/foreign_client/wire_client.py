"""A group of one rank in Python, written from docs/wire.md: creates a center on one server, exchanges with it, reads it.

Debian's python3-grpcio and python3-protobuf. Calls of Protocol Buffers messages take those generated from parameter_server.proto; the
streams of tensors take bytes as they are.
"""

import array
import queue
import struct

import grpc

from proto import parameter_server_pb2 as messages

SERVICE = "/hooke.v1.ParameterServer/"
OPENING, VALUES = 1, 2
VERSION = 1
FLOAT32, FLOAT16, INT8 = 1, 2, 4
INT8_RUN = 256
FLOAT16_MAX = 65504.0
SECONDS = 30


def opening(sender):
    job_id = sender.job_id.encode()
    return struct.pack("<BBHIII", OPENING, VERSION, len(job_id), sender.group, sender.rank, sender.incarnation) + job_id


def scale_of(run):
    """The scale of a run of int8: the largest magnitude / 127 as a float32, cut to 17 significant bits."""
    bits = struct.unpack("<I", struct.pack("<f", max(map(abs, run)) / 127))[0] & 0xFFFFFF80
    scale = struct.unpack("<f", struct.pack("<I", bits))[0]
    return scale if scale >= 2.0**-126 else 0.0


def encode(value_type, values):
    if value_type == FLOAT32:
        return values.tobytes()
    if value_type == FLOAT16:
        return struct.pack(f"<{len(values)}e", *(max(-FLOAT16_MAX, min(FLOAT16_MAX, v)) for v in values))
    payload = b""
    for start in range(0, len(values), INT8_RUN):
        run = values[start : start + INT8_RUN]
        scale = scale_of(run)
        quotients = array.array("f", (v / scale for v in run)) if scale > 0 else [0] * len(run)
        payload += struct.pack("<f", scale) + array.array("b", map(round, quotients)).tobytes()
    return payload


def decode(value_type, count, payload):
    if value_type == FLOAT32:
        return array.array("f", payload)
    if value_type == FLOAT16:
        return array.array("f", struct.unpack(f"<{count}e", payload))
    values = array.array("f")
    while len(values) < count:
        codes = array.array("b", payload[4 : 4 + min(INT8_RUN, count - len(values))])
        scale = struct.unpack_from("<f", payload)[0]
        values.extend(scale * code for code in codes)
        payload = payload[4 + len(codes) :]
    return values


def values_message(sequence, first, values, value_type=FLOAT32):
    return struct.pack("<BBHIQQ", VALUES, value_type, 0, len(values), sequence, first) + encode(value_type, values)


def read_values(message):
    """(sequence, first, values) of a message."""
    kind, value_type, zero, count, sequence, first = struct.unpack_from("<BBHIQQ", message)
    if (kind, zero) != (VALUES, 0) or value_type not in (FLOAT32, FLOAT16, INT8):
        raise ValueError(f"no message of values: {message[:24].hex()}")
    values = decode(value_type, count, message[24:])
    if len(values) != count:
        raise ValueError(f"{count} values announced, {len(values)} there")
    return sequence, first, values


def part(count, index, parts):
    """Of `count` blocks those of part `index`: the first count mod parts have one more."""
    begin = index * (count // parts) + min(index, count % parts)
    return range(begin, begin + count // parts + (index < count % parts))


def elastic(alpha):
    """A job of one group of one rank on one server."""
    return messages.JobSpecForShard(rule=1, alpha=alpha, groups=1, ranks=1, shard_index=0, shard_count=1)


def average(groups, interval, parameters, fragments=1):
    """A job of so many groups of one rank on one server, whose center moves to the mean of all."""
    job = messages.JobSpecForShard(rule=7, groups=groups, ranks=1, shard_index=0, shard_count=1, interval=interval, parameters=parameters)
    job.optimizer.name, job.optimizer.learning_rate, job.schedule.name = 1, 1, 1
    job.epochs, job.steps_per_epoch, job.fragments = 1, 1000, fragments
    job.quorum, job.grace_seconds = groups, 10
    return job


class Stream:
    """Exchanges of a group, one after another, on one stream."""

    def __init__(self, group, count, block_values, window_blocks):
        self.value_type, self.block_values, self.window_blocks = group.value_type, block_values, window_blocks
        self.blocks = -(-count // block_values)
        self.outgoing = queue.SimpleQueue()
        self.outgoing.put(opening(group.sender))
        self.answers = group.channel.stream_stream(SERVICE + "Exchange")(iter(self.outgoing.get, None), timeout=SECONDS)

    def exchange(self, sequence, values, fragment=0, fragments=1):
        """Sends the fragment's blocks of `values`; yields (first, values) of each answer. Values that were answered may be changed meanwhile."""
        blocks = part(self.blocks, fragment, fragments)
        sent = 0
        for done, block in enumerate(blocks):
            while sent < len(blocks) and sent < done + self.window_blocks:
                first = blocks[sent] * self.block_values
                self.outgoing.put(values_message(sequence, first, values[first : first + self.block_values], self.value_type))
                sent += 1
            answered, first, answer = read_values(next(self.answers))
            if (answered, first) != (sequence, block * self.block_values):
                raise ValueError(f"an answer to exchange {answered}, value {first}, where {sequence}, block {block} was due")
            yield first, answer

    def close(self):
        self.outgoing.put(None)
        if (more := next(self.answers, None)) is not None:
            raise ValueError(f"an answer that was not asked for: {more[:24].hex()}")


class Averaged:
    """A group's values x by the rule average, without compression: call exchange() after every so many steps on x."""

    def __init__(self, stream, center):
        self.stream, self.x, self.base = stream, array.array("f", center), array.array("f", center)

    def exchange(self, sequence, fragment=0, fragments=1):
        distance = array.array("f", (b - x for b, x in zip(self.base, self.x)))
        for first, center in self.stream.exchange(sequence, distance, fragment, fragments):
            # The group has waited: nothing has come to what it sent.
            self.x[first : first + len(center)] = self.base[first : first + len(center)] = center


class Group:
    def __init__(self, address, job_id, value_type=FLOAT32, group=0):
        self.channel = grpc.insecure_channel(address)
        self.value_type = value_type
        self.sender = messages.Sender(job_id=job_id, group=group, rank=0, incarnation=1)

    def attach(self, count, job):
        """The server's answer to a center of `count` values; `job` as elastic() or average() has it."""
        if self.value_type != FLOAT32:
            job.compression = self.value_type
        request = messages.AttachRequest(
            sender=self.sender,
            job=job,
            layout=messages.Layout(parameters=[messages.Parameter(name="w", type=messages.Parameter.FLOAT32, shape=[count])]),
        )
        call = self.channel.unary_unary(
            SERVICE + "Attach",
            request_serializer=messages.AttachRequest.SerializeToString,
            response_deserializer=messages.AttachResponse.FromString,
        )
        return call(request, timeout=SECONDS)

    def initialize(self, values, block_values):
        def stream():
            yield opening(self.sender)
            for first in range(0, len(values), block_values):
                yield values_message(0, first, values[first : first + block_values])

        call = self.channel.stream_unary(SERVICE + "Initialize", response_deserializer=messages.InitializeResponse.FromString)
        call(stream(), timeout=SECONDS)

    def exchanges(self, x, sequences, block_values, window_blocks):
        """One exchange for each sequence by the elastic rule, on one stream; changes x."""
        stream = Stream(self, len(x), block_values, window_blocks)
        for sequence in sequences:
            for first, difference in stream.exchange(sequence, x):
                for i, d in enumerate(difference, first):
                    x[i] -= d  # Rounded to float32 by the array.
        stream.close()

    def pace(self, steps_per_second):
        call = self.channel.unary_unary(
            SERVICE + "Pace",
            request_serializer=messages.PaceRequest.SerializeToString,
            response_deserializer=messages.PaceResponse.FromString,
        )
        return call(messages.PaceRequest(sender=self.sender, steps_per_second=steps_per_second), timeout=SECONDS)

    def pull(self):
        call = self.channel.unary_stream(
            SERVICE + "Pull",
            request_serializer=messages.PullRequest.SerializeToString,
            response_deserializer=messages.PullResponse.FromString,
        )
        center = array.array("f")
        for response in call(messages.PullRequest(job_id=self.sender.job_id), timeout=SECONDS):
            center.frombytes(response.block.values)
        return center

    def send_raw(self, *stream):
        """The status with which the server ends an Exchange of these messages."""
        call = self.channel.stream_stream(SERVICE + "Exchange")(iter(stream), timeout=SECONDS)
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

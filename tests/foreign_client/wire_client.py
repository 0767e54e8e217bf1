"""A group of one rank in Python, written from docs/wire.md. It creates a center on one server, exchanges with it, and reads it.

Needs Debian's python3-grpcio and python3-protobuf. Calls with Protocol Buffers messages use classes generated from parameter_server.proto. The
streams of tensors, and connections without gRPC, carry messages without Protocol Buffers. wire_codec.py has messages and encodings;
wire_rules.py has the group's half of the rules.
"""

import array
import collections
import queue
import socket
import threading

import grpc
import wire_codec
from proto import parameter_server_pb2 as messages

SERVICE = "/hooke.v1.ParameterServer/"
ELASTIC, NONE, SYNC, ASYNC, AVERAGE, BMUF = 1, 2, 3, 4, 7, 8
GRPC, TCP, LOCAL = WAYS = ("grpc", "tcp", "local")
UNAVAILABLE = 14
SECONDS = 30


class Refused(Exception):
    """A server has ended a call or a stream with an error: gRPC's status number, and a text."""

    def __init__(self, status, text):
        super().__init__(f"status {status}: {text}")
        self.status, self.text = status, text


def refused(error):
    return Refused(error.code().value[0], error.details())


JOB_KEY = "of these tests"


def elastic(alpha):
    """Returns a job under elastic, of one group of one rank on one server."""
    return messages.JobSpecForShard(rule=ELASTIC, alpha=alpha, groups=1, ranks=1, shard_index=0, shard_count=1, job_key=JOB_KEY)


def stepped(rule, groups, interval, parameters, learning_rate=1, quorum=None, fragments=1):
    """Returns a job of `groups` groups of one rank on one server; plain SGD steps its center. Without a `quorum` a round needs all groups."""
    job = messages.JobSpecForShard(rule=rule, groups=groups, ranks=1, shard_index=0, shard_count=1, job_key=JOB_KEY)
    job.interval, job.parameters = interval, parameters
    job.optimizer.name, job.optimizer.learning_rate, job.schedule.name = 1, learning_rate, 1
    job.epochs, job.steps_per_epoch, job.fragments = 1, 1000, fragments
    if rule != ASYNC:
        job.quorum, job.grace_seconds = quorum or groups, 0 if quorum else 10
    return job


def compressed(job, value_type, top_k=0):
    """Returns the job with another type of values."""
    if value_type != wire_codec.FLOAT32:
        job.compression, job.top_k = value_type, top_k
    return job


class GrpcStream:
    """Sends and receives the messages of an Exchange stream over gRPC."""

    def __init__(self, channel):
        self.outgoing = queue.SimpleQueue()
        self.incoming = channel.stream_stream(SERVICE + "Exchange")(iter(self.outgoing.get, None), timeout=SECONDS)

    def send(self, message):
        self.outgoing.put(message)

    def receive(self):
        """Returns the next message, or None if the server has ended the stream after the client did. Raises Refused."""
        try:
            return next(self.incoming, None)
        except grpc.RpcError as error:
            self.end()
            raise refused(error) from error

    def end(self):
        """Closes the sending half of the stream."""
        self.outgoing.put(None)

    def close(self):
        self.end()
        self.incoming.cancel()


class PlainStream:
    """Sends and receives the same messages as GrpcStream, one after another, on a connected socket."""

    def __init__(self, connected):
        self.socket, self.incoming = connected, connected.makefile("rb")
        self.ended = False
        self.outgoing = queue.SimpleQueue()
        self.writer = threading.Thread(target=self.write, daemon=True)  # A thread writes, so that this one can read meanwhile.
        self.writer.start()

    def write(self):
        try:
            for message in iter(self.outgoing.get, None):
                self.socket.sendall(message)
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The reading thread gets the error.

    def send(self, message):
        self.outgoing.put(message)

    def receive(self):
        header = self.read(wire_codec.HEADER_BYTES)
        if not header and self.ended:
            return None
        message = header + (self.read(wire_codec.bytes_behind(header)) if len(header) == wire_codec.HEADER_BYTES else b"")
        if len(header) < wire_codec.HEADER_BYTES or len(message) < len(header) + wire_codec.bytes_behind(header):
            raise Refused(UNAVAILABLE, "the connection has ended")
        if message[0] != wire_codec.REFUSAL:
            return message
        self.end()
        if self.read(1):
            raise ValueError("a refusal was not the last message")
        raise Refused(*wire_codec.read_refusal(message))

    def read(self, count):
        """Returns `count` bytes, or fewer if the connection ends."""
        try:
            return self.incoming.read(count)
        except ConnectionError:
            return b""

    def end(self):
        self.ended = True
        self.outgoing.put(None)

    def close(self):
        self.end()
        self.writer.join(SECONDS)
        self.incoming.close()
        self.socket.close()


class Exchanges:
    """A group's exchanges, one after another, on one stream."""

    def __init__(self, group, way=GRPC):
        self.group, self.stream = group, group.open(way)
        self.blocks = -(-group.count // group.block_values)
        self.answered = wire_codec.answer_encoding(*group.encoding, group.job.rule not in (ELASTIC, NONE))

    def exchange(self, sequence, values, fragment=0, fragments=1):
        """Sends the fragment's blocks of `values`. For each answer, yields (index of the block's first value, the sent values as the server decodes
        them, the answer)."""
        blocks = wire_codec.part(self.blocks, fragment, fragments)
        unanswered = collections.deque()
        left = iter(blocks)
        for _ in blocks:
            while len(unanswered) < self.group.window_blocks and (block := next(left, None)) is not None:
                first = block * self.group.block_values
                message = wire_codec.values_message(sequence, first, values[first : first + self.group.block_values], *self.group.encoding)
                unanswered.append(wire_codec.read_values(message))
                self.stream.send(message)
            answer, sent = wire_codec.read_values(self.stream.receive()), unanswered.popleft()
            due = (*self.answered, sequence, sent.first, len(sent.values))
            if (*answer[:4], len(answer.values)) != due:
                raise ValueError(f"an answer {answer[:4]} with {len(answer.values)} values where {due} was due")
            yield sent.first, sent.values, answer.values

    def close(self):
        self.stream.end()
        if (more := self.stream.receive()) is not None:
            raise ValueError(f"an answer that was not asked for: {more[:24].hex()}")
        self.stream.close()


class Group:
    """A group. `job` comes from elastic() or stepped(); the center has `count` values. Call attach() first."""

    def __init__(self, address, job_id, job, count, group=0, incarnation=1):
        self.address, self.channel = address, grpc.insecure_channel(address)
        self.job, self.count = job, count
        value_type = job.compression or wire_codec.FLOAT32
        self.encoding = value_type, wire_codec.entries_of_whole_run(job.top_k) if value_type == wire_codec.TOP_K else 0
        self.sender = messages.Sender(job_id=job_id, group=group, rank=0, incarnation=incarnation, job_key=job.job_key)

    def call(self, name, request, response):
        call = self.channel.unary_unary(
            SERVICE + name, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        try:
            return call(request, timeout=SECONDS)
        except grpc.RpcError as error:
            raise refused(error) from error

    def attach(self):
        layout = messages.Layout(parameters=[messages.Parameter(name="w", type=messages.Parameter.FLOAT32, shape=[self.count])])
        request = messages.AttachRequest(sender=self.sender, job=self.job, layout=layout)
        answer = self.call("Attach", request, messages.AttachResponse)
        self.block_values, self.window_blocks = answer.block_values, answer.window_blocks
        return answer

    def initialize(self, values):
        blocks = range(0, len(values), self.block_values)
        self.send_initial([wire_codec.values_message(0, first, values[first : first + self.block_values]) for first in blocks])

    def send_initial(self, values_messages):
        call = self.channel.stream_unary(SERVICE + "Initialize", response_deserializer=messages.InitializeResponse.FromString)
        try:
            call(iter([self.opening(), *values_messages]), timeout=SECONDS)
        except grpc.RpcError as error:
            raise refused(error) from error

    def opening(self):
        return wire_codec.opening(self.sender.job_id, self.sender.group, self.sender.rank, self.sender.incarnation, self.sender.job_key)

    def connect(self, way):
        """Returns a new stream for messages of Exchange. `way` is the kind of connection."""
        if way == GRPC:
            return GrpcStream(self.channel)
        located = self.call("Locate", messages.LocateRequest(), messages.LocateResponse)
        if way == TCP:
            connected = socket.create_connection((self.address.rsplit(":", 1)[0], located.port), timeout=1)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.connect(b"\0" + located.local_name.encode())
        connected.settimeout(SECONDS)
        return PlainStream(connected)

    def open(self, way):
        stream = self.connect(way)
        stream.send(self.opening())
        return stream

    def pace(self, steps_per_second):
        return self.call("Pace", messages.PaceRequest(sender=self.sender, steps_per_second=steps_per_second), messages.PaceResponse)

    def save(self):
        self.call("Save", messages.SaveRequest(sender=self.sender), messages.SaveResponse)

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

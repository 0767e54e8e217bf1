"""The messages of docs/wire.md as bytes, and the encodings of their values. Written from that page, with the standard library alone."""

import array
import collections
import math
import struct

OPENING, VALUES, REFUSAL = 1, 2, 3
VERSION = 2
FLOAT32, FLOAT16, BFLOAT16, INT8, INT4, TOP_K = range(1, 7)
HEADER_BYTES = 24  # The header of values or of a refusal.
FLOAT16_MAX = 65504.0
BFLOAT16_MAX = 0x7F7F
RUNS = {INT8: 256, INT4: 128, TOP_K: 16384}
MOST = {INT8: 127, INT4: 7}  # The largest magnitude of a code.

# A decoded message of values.
Values = collections.namedtuple("Values", "type k sequence first values")


def opening(job_id, group=0, rank=0, incarnation=1, job_key="", version=VERSION):
    name, key = job_id.encode(), job_key.encode()
    return struct.pack("<BBBBIII", OPENING, version, len(name), len(key), group, rank, incarnation) + name + key


def entries_of_whole_run(fraction):
    """Returns k, the number of values kept of a whole run, for a job's `top_k`."""
    return math.ceil(RUNS[TOP_K] * fraction)


def entries(k, count):
    """Returns the number of values that top_k sends of a run of `count` values."""
    return -(-k * count // RUNS[TOP_K])


def payload_bytes(value_type, k, count):
    if value_type == FLOAT32:
        return 4 * count
    if value_type in (FLOAT16, BFLOAT16):
        return 2 * count
    of_run = {INT8: lambda n: 4 + n, INT4: lambda n: 4 + -(-n // 2), TOP_K: lambda n: 4 * entries(k, n)}[value_type]
    whole, rest = divmod(count, RUNS[value_type])
    return whole * of_run(RUNS[value_type]) + (of_run(rest) if rest > 0 else 0)


def to_bfloat16(values):
    """Returns the upper halves of float32 values, rounded to nearest, ties to even. A value that would round to infinity becomes the largest
    finite one."""
    codes = []
    for bits in struct.unpack(f"<{len(values)}I", values.tobytes()):
        upper, lower = bits >> 16 & 0x7FFF, bits & 0xFFFF
        up = lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)
        codes.append(bits >> 16 & 0x8000 | min(upper + up, BFLOAT16_MAX))
    return codes


def from_bfloat16(codes):
    return array.array("f", struct.pack(f"<{len(codes)}I", *(code << 16 for code in codes)))


def scale_of(run, most):
    """Returns the largest magnitude / `most` as a float32 with its lowest 7 bits cleared."""
    bits = struct.unpack("<I", struct.pack("<f", max(map(abs, run)) / most))[0] & 0xFFFFFF80
    scale = struct.unpack("<f", struct.pack("<I", bits))[0]
    return scale if scale >= 2.0**-126 else 0.0


def encode_run(value_type, k, run):
    if value_type == TOP_K:
        # The sort is stable: of equal values the first are kept.
        largest = sorted(range(len(run)), key=lambda i: -abs(run[i]))[: entries(k, len(run))]
        kept = sorted(largest)
        codes = to_bfloat16(array.array("f", (run[i] for i in kept)))
        return b"".join(struct.pack("<HH", *entry) for entry in zip(kept, codes))
    scale = scale_of(run, MOST[value_type])
    quotients = array.array("f", (v / scale for v in run)) if scale > 0 else [0] * len(run)
    codes = [round(quotient) for quotient in quotients]  # round() rounds ties to even.
    if value_type == INT4:
        nibbles = [code & 15 for code in codes] + [0] * (len(codes) % 2)
        return struct.pack("<f", scale) + bytes(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2]))
    return struct.pack("<f", scale) + array.array("b", codes).tobytes()


def decode_run(value_type, count, payload):
    if value_type == TOP_K:
        run = array.array("f", bytes(4 * count))
        for index, code in struct.iter_unpack("<HH", payload):
            run[index] = from_bfloat16([code])[0]
        return run
    if value_type == INT4:
        nibbles = [nibble for byte in payload[4:] for nibble in (byte & 15, byte >> 4)][:count]
        codes = [nibble - 16 if nibble > 7 else nibble for nibble in nibbles]
    else:
        codes = array.array("b", payload[4:])
    scale = struct.unpack_from("<f", payload)[0]
    return array.array("f", (scale * code for code in codes))


def encode(value_type, k, values):
    """Returns the encoded values. `values` is an array of float32."""
    if value_type == FLOAT32:
        return values.tobytes()
    if value_type == FLOAT16:
        return struct.pack(f"<{len(values)}e", *(max(-FLOAT16_MAX, min(FLOAT16_MAX, v)) for v in values))
    if value_type == BFLOAT16:
        return struct.pack(f"<{len(values)}H", *to_bfloat16(values))
    starts = range(0, len(values), RUNS[value_type])
    return b"".join(encode_run(value_type, k, values[start : start + RUNS[value_type]]) for start in starts)


def decode(value_type, k, count, payload):
    if len(payload) != payload_bytes(value_type, k, count):
        raise ValueError(f"{count} values of type {value_type} in {len(payload)} bytes")
    if value_type == FLOAT32:
        return array.array("f", payload)
    if value_type == FLOAT16:
        return array.array("f", struct.unpack(f"<{count}e", payload))
    if value_type == BFLOAT16:
        return from_bfloat16(struct.unpack(f"<{count}H", payload))
    values, at = array.array("f"), 0
    while len(values) < count:
        run = min(RUNS[value_type], count - len(values))
        run_bytes = payload_bytes(value_type, k, run)
        values.extend(decode_run(value_type, run, payload[at : at + run_bytes]))
        at += run_bytes
    return values


def rounded(value_type, k, values):
    """Returns the values as a receiver decodes them."""
    return decode(value_type, k, len(values), encode(value_type, k, values))


def answer_encoding(value_type, k, answers_center):
    """Returns the (type, k) of the answers to messages of this type and k."""
    if answers_center and value_type == INT4:
        return INT8, 0
    if answers_center and value_type == TOP_K:
        return FLOAT16, 0
    return value_type, k


def values_message(sequence, first, values, value_type=FLOAT32, k=0):
    header = struct.pack("<BBHIQQ", VALUES, value_type, k, len(values), sequence, first)
    return header + encode(value_type, k, values)


def read_values(message):
    kind, value_type, k, count, sequence, first = struct.unpack_from("<BBHIQQ", message)
    if kind != VALUES or not FLOAT32 <= value_type <= TOP_K or (k > 0) != (value_type == TOP_K):
        raise ValueError(f"no message of values: {message[:HEADER_BYTES].hex()}")
    return Values(value_type, k, sequence, first, decode(value_type, k, count, message[HEADER_BYTES:]))


def bytes_behind(header):
    """Returns the number of bytes after a message's first HEADER_BYTES: values, or the text of a refusal."""
    kind, value_type, short, count = struct.unpack_from("<BBHI", header)
    return short if kind == REFUSAL else payload_bytes(value_type, short, count)


def read_refusal(message):
    """Returns (gRPC's status number, text)."""
    return message[1], message[HEADER_BYTES:].decode()


def part(count, index, parts):
    """Returns the range of part `index` of `count` blocks. The first `count` mod `parts` parts have one block more."""
    begin = index * (count // parts) + min(index, count % parts)
    return range(begin, begin + count // parts + (index < count % parts))

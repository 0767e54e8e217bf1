"""Condenses a table of a collective. For each range of sizes it takes the worst result relative to the best rival, to the limit, and to the next
power of two. It also has the requirements, which docs/collectives.md lists as a table.
"""

OWN = ("hooke", "hooke-private")
# The libraries that our broadcast and reduction are compared with.
MPI = ("openmpi", "openmpi-tuned", "mpich")
SMALL, FULL, NETWORK, LARGE = 1 << 14, 1 << 16, 1 << 20, 1 << 26
ANY = float("inf")
# Requirements for all-reduce by two ranks of one host with a core each: (impl, least size, largest size, least speed
# relative to the best rival).
TIMES_AS_FAST = [("hooke", 0, SMALL - 1, 1.5), ("hooke", SMALL, FULL - 1, 3), ("hooke", FULL, LARGE, 4), ("hooke-private", FULL, ANY, 1.5)]
# Requirements like TIMES_AS_FAST, but relative to the fastest MPI library given with --mpi. Only values in the arena (impl "hooke") have such
# requirements. The names of these libraries end in a version.
TIMES_AS_FAST_AS_NAMED = [("hooke", 0, SMALL - 1, 1), ("hooke", SMALL, ANY, 2.5)]
# The least share of the limit for values in the arena, from NETWORK to LARGE bytes.
MEMORY_SHARE = 0.7
# The most time relative to the best rival, on one host. It holds for private values of two ranks, and for all values of
# other numbers of ranks or of more ranks than cores.
SLOWER = 1.1
# Between hosts, from NETWORK bytes on: the least share of the limit, and the most time relative to the best rival.
NETWORK_SHARE, NETWORK_SLOWER = 0.97, 1.02
# Libraries with default settings. The summary gives their time relative to ours, between hosts from NETWORK bytes on.
DEFAULTS = ("openmpi", "gloo-default")
# The most time relative to the next larger power of two.
CLIFF = 1.3


def next_power_of_two(size):
    return 1 << size.bit_length()


def worst(pairs, pick=min):
    """Returns the worst of (value, size) pairs as text; None if there are none."""
    pairs = list(pairs)
    if not pairs:
        return None
    value, size = pick(pairs)
    return f"{value:.2f} at {size} bytes"


def lines(rows):
    """Returns the summary's lines. `rows` are those of collectives.Table for one layout."""
    text = []
    for impl in OWN:
        own = {row["bytes"]: row for row in rows if row["impl"] == impl and row["correct"]}
        rivals = {}
        for row in rows:
            if row["impl"] not in OWN and row["correct"]:
                rivals[row["bytes"]] = min(row["median_us"], rivals.get(row["bytes"], row["median_us"]))

        def ratio(low, high, own=own, rivals=rivals):
            return worst((rivals[size] / own[size]["median_us"], size) for size in own if low <= size < high and size in rivals)

        def share(low, own=own):
            return worst((row["limit_us"] / row["median_us"], size) for size, row in own.items() if size >= low and row["limit_us"])

        def cliff(own=own):
            after = {size: own.get(next_power_of_two(size)) for size in own}
            return worst(((own[size]["median_us"] / row["median_us"], size) for size, row in after.items() if row), max)

        found = {
            "best rival/this, least below 16 KiB": ratio(0, SMALL),
            "from 16 KiB": ratio(SMALL, FULL),
            "from 64 KiB": ratio(FULL, float("inf")),
            "of limit, least from 1 MiB": share(NETWORK),
            "time/that of the next power of two, most": cliff(),
        }
        found = [f"{what} {value}" for what, value in found.items() if value]
        if found:
            text.append(f"{impl}: " + "; ".join(found))
    return text + list(wasted(rows))


def wasted(rows):
    """Returns one line for each library with default settings: its time between hosts, relative to ours."""
    times = {(row["impl"], row["bytes"]): row["median_us"] for row in rows if row["hosts"] > 1 and row["bytes"] >= NETWORK and row["correct"]}
    for default in DEFAULTS:
        ratios = [us / times["hooke", size] for (impl, size), us in times.items() if impl == default and ("hooke", size) in times]
        if ratios:
            yield f"{default} takes {min(ratios):.2f} to {max(ratios):.2f} times hooke's time from 1 MiB"


def where(operation, ranks, hosts):
    return f"{operation}, {ranks} ranks on {hosts} host{'s' * (hosts > 1)}"


# Each generator below yields (met, text) for each of its requirements. The text describes a miss.


def faster(row, rival, least):
    ratio = rival["median_us"] / row["median_us"]
    yield ratio >= least, f"is {ratio:.3f} times as fast as {rival['impl']}; asked is at least {least}"


def not_slower(row, rival, most):
    ratio = row["median_us"] / rival["median_us"]
    yield ratio <= most, f"takes {ratio:.3f} times the time of {rival['impl']}; asked is at most {most}"


def near_limit(row, least):
    if row["limit_us"]:
        share = row["limit_us"] / row["median_us"]
        yield share >= least, f"has {share:.3f} of the limit; asked is at least {least}"


def ahead(row, rival):
    """Requires our row to be faster than the rival's. If our time is at the limit of the links, about the same time is enough."""
    share = row["limit_us"] / row["median_us"] if row["hosts"] > 1 and row["bytes"] >= NETWORK and row["limit_us"] else 0
    most = NETWORK_SLOWER if share >= NETWORK_SHARE else 1
    ratio = row["median_us"] / rival["median_us"]
    yield ratio < most, f"takes {ratio:.3f} times the time of {rival['impl']}; asked is to be ahead"


def named(impl):
    """True for a library of --mpi: its name ends with a version (mpi_libraries.py)."""
    return impl.rpartition("-")[2][:1].isdigit()


def times_as_fast(table, row, rival):
    for impl, low, high, least in table:
        if rival and row["impl"] == impl and low <= row["bytes"] <= high:
            yield from faster(row, rival, least)


def asked_of_two(row, rival):
    yield from times_as_fast(TIMES_AS_FAST, row, rival)
    if rival and row["impl"] == "hooke-private":
        yield from not_slower(row, rival, SLOWER)
    if row["impl"] == "hooke" and NETWORK <= row["bytes"] <= LARGE:
        yield from near_limit(row, MEMORY_SHARE)


def asked_of(row, rival, cores):
    """Yields the requirements for one of our rows. `rival` is the best rival's row, or None if no rival ran."""
    if row["benchmark"] != "allreduce":
        if rival and row["bytes"] >= FULL:
            yield from ahead(row, rival)
    elif row["hosts"] > 1:
        if row["bytes"] >= NETWORK:
            yield from near_limit(row, NETWORK_SHARE)
            yield from not_slower(row, rival, NETWORK_SLOWER) if rival else ()
    elif row["ranks"] == 2 <= cores:
        yield from asked_of_two(row, rival)
    elif rival:
        yield from not_slower(row, rival, SLOWER)


def judged(rows, cores):
    """Yields (met, line) for each requirement on the rows. The rows may be of several layouts, and ran on `cores` cores. The line describes a
    miss."""
    right = {(row["benchmark"], row["ranks"], row["hosts"], row["bytes"], row["impl"]): row for row in rows if row["correct"]}
    best, best_named = {}, {}
    for (operation, *layout, size, impl), row in right.items():
        key = (operation, *layout, size)
        if impl in OWN or (operation != "allreduce" and impl not in MPI):
            continue
        of_its_kind = best_named if named(impl) else best
        if key not in of_its_kind or row["median_us"] < of_its_kind[key]["median_us"]:
            of_its_kind[key] = row
    for (operation, ranks, hosts, size, impl), row in right.items():
        if impl not in OWN:
            continue
        said = f"{where(operation, ranks, hosts)}, {size} bytes: {impl}"
        for met, what in asked_of(row, best.get((operation, ranks, hosts, size)), cores):
            yield met, f"{said} {what}"
        if ranks == 2 <= cores:
            for met, what in times_as_fast(TIMES_AS_FAST_AS_NAMED, row, best_named.get((operation, ranks, hosts, size))):
                yield met, f"{said} {what}"
        after = right.get((operation, ranks, hosts, next_power_of_two(size), impl))
        if after:
            ratio = row["median_us"] / after["median_us"]
            yield ratio <= CLIFF, f"{said} takes {ratio:.3f} times the time of {after['bytes']} bytes; asked is at most {CLIFF}"


def missed(rows, cores):
    """Returns one line for each requirement that was missed."""
    return [line for met, line in judged(rows, cores) if not met]

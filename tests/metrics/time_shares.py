"""Where the time of groups went, worked out from the rows of `hooke metrics --csv`."""

PARTS = ("compute", "collective", "exchange")
REST_LEAST_MS = 1000  # A rest of less than this is not lost time, because a report may be half a second on its way.


def shares_of(rows):
    """Returns for each row of one group its step and the fractions {compute, collective, exchange, rest} since the row before it."""
    shares = []
    before, before_ms = [0, 0, 0], None
    for row in rows:
        if not row["compute_s"]:  # The point has no times.
            continue
        now = [round(1000 * float(row[f"{part}_s"])) for part in PARTS]
        unix_ms = int(row["time_unix_ms"])
        spent = now if any(a < b for a, b in zip(now, before)) else [a - b for a, b in zip(now, before)]
        rest = 0 if before_ms is None else unix_ms - before_ms - sum(spent)
        spent.append(0 if rest < REST_LEAST_MS else rest)
        if sum(spent) > 0:
            shares.append((int(row["step"]), {name: value / sum(spent) for name, value in zip((*PARTS, "rest"), spent)}))
        before, before_ms = now, unix_ms
    return shares

"""A table of a collective in a few lines: the worst of each range of sizes, against the best rival, the limit, and the next power of two."""

OWN = ("hooke", "hooke-private")
SMALL, FULL, NETWORK = 1 << 14, 1 << 16, 1 << 20


def next_power_of_two(size):
    return 1 << size.bit_length()


def worst(pairs, pick=min):
    """Of (value, size) pairs as text; None if there are none."""
    pairs = list(pairs)
    if not pairs:
        return None
    value, size = pick(pairs)
    return f"{value:.2f} at {size} bytes"


def lines(rows):
    """`rows` as they are written to the JSON file, all of one layout."""
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
    return text

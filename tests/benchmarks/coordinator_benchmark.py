#!/usr/bin/env python3
"""The coordinator's CPU time while 300 simulated workers report on 5000 ranks.

One hooke-server process, and one program (coordinator/) with all workers, each with a connection of its own over loopback TCP. Groups of
--group-ranks ranks run in jobs of --job-groups groups. They report as hooke-rank and hooke-worker do:

- Each rank makes a progress report every 0.5 s. Its worker passes on those of rank 0.
- Each rank sends a profile every 30 s, as in all but its first minute: 1024 events, 25 KiB. The measurement begins when each rank has sent
  one, because only the first one makes a file. With `--warm-up=4` it has first profiles.
- Each worker sends a heartbeat every second. Its messages share writes as hooke-worker's do.

--watchers users each watch a job, and a user lists all jobs every --list-every seconds. Afterwards each event must be acknowledged, and the
coordinator must show the last step of each group. CPU time is that of the coordinator's process, user and system, as percent of one core.

Before that, its page of metrics is read SCRAPES times in a row. The CPU time of one reading is what the coordinator takes more than without them.

With --page-seconds, the page of the newest job is then open for so long, as in a browser: open_page.py asks for what is new every two seconds.

Asked: less than 20 % of a core; and less than 2 % for the page of metrics, read every 5 s. Otherwise the exit code is 1.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
import urllib.request

import open_page
import report
import wide_benchmark as wide

CPU_PERCENT = 20
SCRAPES = 50
SCRAPE_EVERY_SECONDS = 5
SCRAPE_PERCENT = 2
# Decimals of a row's values in a file.
DIGITS = {
    "cpu_percent": 2, "user_percent": 2, "mib": 1, "list_median_ms": 3, "list_p99_ms": 3, "late_ms": 1,
    "scrape_percent": 4, "page_kib": 1, "open_page_percent": 2, "open_page_kib_per_s": 1,
    "progress_per_s": 1, "profiles_per_s": 1, "heartbeats_per_s": 1, "writes_per_s": 1, "statuses_per_s": 1,
}  # fmt: skip
START_SECONDS = 150


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run coordinator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--workers", type=int, default=300, help="default 300")
    parser.add_argument("--ranks", type=int, default=5000, help="of all groups together (default 5000)")
    parser.add_argument("--group-ranks", type=int, default=4, help="ranks of a group (default 4)")
    parser.add_argument("--job-groups", type=int, default=50, help="groups of a job (default 50)")
    parser.add_argument("--watchers", type=int, default=5, help="users who watch a job each (default 5)")
    parser.add_argument("--list-every", type=float, default=0.2, help="seconds between two lists of all jobs (default 0.2)")
    parser.add_argument("--warm-up", type=float, default=34, help="seconds from when all groups run to the measurement (default 34)")
    parser.add_argument("--seconds", type=float, default=20, help="of the measurement (default 20)")
    parser.add_argument("--page-seconds", type=float, default=0, help="a job's page is open for so long before it (default 0: none is)")
    return parser.parse_args()


def cpu_seconds(pid):
    """Returns a process's CPU seconds: in total, to the nanosecond, and in user mode, to a tick of the clock."""
    with open(f"/proc/{pid}/stat") as file:
        user_ticks = int(file.read().rpartition(")")[2].split()[11])
    # How Linux numbers the CPU clock of another process: clock_getcpuclockid(3), which Python does not have.
    cpu_clock = (~pid << 3) | 2
    return time.clock_gettime(cpu_clock), user_ticks / wide.TICKS_PER_SECOND


def scrape(pid, address):
    """Returns the CPU percent that the process takes for a reading of its page of metrics every 5 s, and the page's KiB."""
    begin, before = time.monotonic(), cpu_seconds(pid)[0]
    time.sleep(2)
    rate = (cpu_seconds(pid)[0] - before) / (time.monotonic() - begin)
    begin, before = time.monotonic(), cpu_seconds(pid)[0]
    for _ in range(SCRAPES):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=START_SECONDS) as answer:
            page = answer.read()
    each = (cpu_seconds(pid)[0] - before - rate * (time.monotonic() - begin)) / SCRAPES
    return 100 * each / SCRAPE_EVERY_SECONDS, len(page) / 1024


def open_job_page(pid, address, seconds):
    """Returns the CPU percent of the process while the newest job's page is open in one browser, and the KiB a second that the page gets."""
    page = open_page.OpenPage(address)
    page.look()  # The first look gets all points. The later ones get only new points.
    begin, before, loaded, points = time.monotonic(), cpu_seconds(pid)[0], page.bytes, page.points
    looks = max(1, round(seconds / open_page.EVERY_SECONDS))
    for look in range(1, looks + 1):
        time.sleep(max(0, begin + look * open_page.EVERY_SECONDS - time.monotonic()))
        page.look()
    wall = time.monotonic() - begin
    if page.points == points:
        raise SystemExit(f"the page of {page.job} got no new points in {wall:.0f} s")
    return 100 * (cpu_seconds(pid)[0] - before) / wall, (page.bytes - loaded) / 1024 / wall


def measure(arguments, folder):
    """Returns the load program's result, and the coordinator's CPU seconds, threads and memory."""
    ready = os.path.join(folder, "ready")
    server = [os.path.join(arguments.programs, "hooke-server"), "--listen=127.0.0.1:0", f"--state-dir={folder}/server", f"--ready-file={ready}"]
    server += ["--metrics=127.0.0.1:0", "--dashboard=127.0.0.1:0"]
    load = [os.path.join(arguments.programs, "coordinator_load"), f"--workers={arguments.workers}", f"--ranks={arguments.ranks}"]
    load += [f"--group-ranks={arguments.group_ranks}", f"--job-groups={arguments.job_groups}", f"--watchers={arguments.watchers}"]
    load += [f"--warm-up={arguments.warm_up}", f"--seconds={arguments.seconds}", f"--list-every={arguments.list_every}"]
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(report.started([*server, "--log-level=warning"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        address, *pages = report.wait_for_file(ready, process).splitlines()
        pages = dict(line.split() for line in pages)
        log = stack.enter_context(open(os.path.join(folder, "load.log"), "w+b"))
        client = stack.enter_context(
            report.started([*load, f"--coordinator={address}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        )
        wide.read_line(client, log, arguments.warm_up + START_SECONDS)
        scrape_percent, page_kib = scrape(process.pid, pages["metrics"])
        opened = open_job_page(process.pid, pages["dashboard"], arguments.page_seconds) if arguments.page_seconds else None
        before, begin = cpu_seconds(process.pid), time.monotonic()
        client.stdin.write(b"go\n")
        client.stdin.flush()
        wide.read_line(client, log, arguments.seconds + START_SECONDS)
        after, wall = cpu_seconds(process.pid), time.monotonic() - begin
        threads, memory = wide.status(process.pid, "Threads"), wide.status(process.pid, "VmRSS")
        result = json.loads(wide.read_line(client, log, START_SECONDS))
    result.update(scrape_percent=scrape_percent, page_kib=page_kib, opened=opened)
    return {**result, "cpu_s": after[0] - before[0], "user_s": after[1] - before[1], "wall_s": wall, "threads": int(threads), "mib": int(memory) / 1024}


def row_of(arguments, result):
    """A row of the table; `result` comes from measure()."""
    wall = result["wall_s"]
    open_page_percent, open_page_kib_per_s = result["opened"] or (None, None)
    return {
        "benchmark": "coordinator", "impl": "hooke", "workers": arguments.workers, "ranks": arguments.ranks, "group_ranks": arguments.group_ranks,
        "job_groups": arguments.job_groups, "watchers": arguments.watchers, "seconds": arguments.seconds,
        "cpu_percent": 100 * result["cpu_s"] / wall, "user_percent": 100 * result["user_s"] / wall,
        "scrape_percent": result["scrape_percent"], "page_kib": result["page_kib"],
        "open_page_percent": open_page_percent, "open_page_kib_per_s": open_page_kib_per_s,
        "mib": result["mib"], "threads": result["threads"], "list_median_ms": statistics.median(result["list_ms"]),
        "list_p99_ms": wide.percentile(result["list_ms"], 99), "progress_per_s": result["progress"] / wall, "profiles_per_s": result["profiles"] / wall,
        "heartbeats_per_s": result["heartbeats"] / wall, "writes_per_s": result["writes"] / wall, "statuses_per_s": result["statuses"] / wall, "late_ms": result["late_ms"],
    }  # fmt: skip


def missed(row):
    """One line for each requirement that was missed."""
    lines = []
    if row["cpu_percent"] >= CPU_PERCENT:
        lines.append(f"the coordinator takes {report.text(row['cpu_percent'], CPU_PERCENT, 1)} % of a core; asked is less than {CPU_PERCENT} %")
    if row["scrape_percent"] >= SCRAPE_PERCENT:
        percent = report.text(row["scrape_percent"], SCRAPE_PERCENT, 2)
        lines.append(f"its metrics, read every {SCRAPE_EVERY_SECONDS} s, take {percent} % of a core; asked is less than {SCRAPE_PERCENT} %")
    return lines


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        row = row_of(arguments, measure(arguments, folder))
    print(f"coordinator: {row['workers']} workers, {row['ranks']} ranks in groups of {row['group_ranks']}, {row['watchers']} watchers, {os.cpu_count()} cores")
    print(f"a second: {row['progress_per_s']:.0f} progress reports, {row['profiles_per_s']:.0f} profiles, {row['heartbeats_per_s']:.0f} heartbeats in {row['writes_per_s']:.0f} writes, "
          f"{row['statuses_per_s']:.0f} statuses to watchers; at most {row['late_ms']:.0f} ms late")
    print(f"{'CPU':>8} {'user':>8} {'MiB':>6} {'threads':>7} {'list p50 ms':>11} {'list p99 ms':>11}")
    print(f"{row['cpu_percent']:6.1f} % {row['user_percent']:6.1f} % {row['mib']:6.0f} {row['threads']:7} {row['list_median_ms']:11.2f} {row['list_p99_ms']:11.2f}")
    if row["open_page_percent"] is not None:
        print(f"with a job's page open: {row['open_page_percent']:.2f} % of a core, {row['open_page_kib_per_s']:.1f} KiB/s")
    print(f"metrics: {row['page_kib']:.0f} KiB, read every {SCRAPE_EVERY_SECONDS} s: {row['scrape_percent']:.3f} % of a core")
    report.write_json(arguments.json, [row], DIGITS)
    report.judge(missed(row))


if __name__ == "__main__":
    report.run(main)

#!/usr/bin/env python3
"""A cluster that trains is scraped: its pages are well formed and documented, and a real Prometheus stores and answers what they say."""

import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from xml.sax import saxutils

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

PROGRAMS = pathlib.Path("bin").resolve()
GRAFANA = pathlib.Path("deploy/grafana").resolve()
PAGE = pathlib.Path("docs/metrics.md").resolve()
# Where deploy/install-deps unpacks the package, which would start a service if it were installed.
UNPACKED = "/usr/local/lib/hooke-tests/prometheus/usr/bin"
PROMETHEUS = shutil.which("prometheus", path=f"{os.environ['PATH']}:{UNPACKED}")
PROMTOOL = shutil.which("promtool", path=f"{os.environ['PATH']}:{UNPACKED}")
SOON_SECONDS = 90
SIDE = 28
# Prometheus asks each daemon every five seconds, and waits as long for its page, as deploy/grafana has it. The scrapes of a
# minute must be whole. A busy machine may delay one.
SCRAPE_SECONDS = 60
GAP_SECONDS_MAX = 9
DAEMONS = ["server-1", "server-2", "worker-1", "worker-2"]
# Rule downpour fills all metrics but those of rounds.
JOB = """name: bars
model: small-mlp
data: {{format: idx, train: {folder}/train, test: {folder}/test}}
train: {{epochs: 100000, batch_size: 16, optimizer: {{name: sgd, learning_rate: 0.001}}, seed: 1}}
groups: {{count: 2, ranks: 1}}
averaging: {{rule: downpour, interval: 4}}
"""
METRIC = re.compile(r"\b(?:hooke|process)_[a-z_]+")


def write_bars(prefix, samples, seed):
    """Writes images of ten classes. Each has a bright bar, whose place depends on its class."""
    noise = random.Random(seed)
    images, labels = bytearray(struct.pack(">4I", 0x803, samples, SIDE, SIDE)), bytearray(struct.pack(">2I", 0x801, samples))
    for _ in range(samples):
        label = noise.randrange(10)
        labels.append(label)
        for pixel in range(SIDE * SIDE):
            bar = pixel // SIDE // 5 == label if label < 5 else pixel % SIDE // 5 == label - 5
            images.append(60 * bar + noise.randrange(190))
    for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
        pathlib.Path(f"{prefix}-{kind}-ubyte.gz").write_bytes(gzip.compress(bytes(content), 1))


def wait_for(what, condition, seconds=SOON_SECONDS):
    """Returns the condition's first true value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")


def read(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=SOON_SECONDS) as answer:
        return answer.read().decode()


def value_of(page, sample):
    """Returns the value of the sample, which is written with its labels; None: it is not there."""
    match = re.search(rf"^{re.escape(sample)} (.*)$", page, re.MULTILINE)
    return float(match.group(1)) if match else None


def families_with_samples(page):
    """Returns type by name of the families of which a sample is there."""
    sampled = {re.match(r"\w+", line).group(0) for line in page.splitlines() if line and not line.startswith("#")}
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    return {name: kind for name, kind in types.items() if (name if kind != "histogram" else name + "_count") in sampled}


def family_of(name):
    return re.sub(r"_(bucket|count|sum)$", "", name)


def stop(process, number=signal.SIGINT):
    process.send_signal(number)
    try:
        process.wait(SOON_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hooke-metrics-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = dict(os.environ, HOME=folder.name)
        for name in ("HOOKE_COORDINATOR", "HOOKE_TOKEN_FILE"):
            cls.environment.pop(name, None)
        write_bars(cls.folder / "train", 1000, 1)
        write_bars(cls.folder / "test", 100, 2)
        cls.start("up.log", PROGRAMS / "hooke", "up", "--metrics", "--workers", "2", "--slots", "1")
        targets = cls.folder / ".hooke/up/metrics.json"
        wait_for("a cluster", lambda: (cls.folder / ".hooke/up/coordinator").exists())
        cls.daemons = {each["labels"]["daemon"]: each["targets"][0] for each in json.loads(targets.read_text())}
        (cls.folder / "job.yaml").write_text(JOB.format(folder=cls.folder))
        cls.job = re.match(r"submitted (\S+);", cls.hooke("submit", cls.folder / "job.yaml")).group(1)
        cls.start_prometheus(targets)
        wait_for("the staleness of both groups", lambda: read(cls.daemons["server-1"]).count("hooke_group_staleness_changes{") == 2)
        wait_for("an evaluation of the center", lambda: value_of(read(cls.daemons["server-1"]), f'hooke_job_center_accuracy_ratio{{job="{cls.job}"}}') is not None)

    @classmethod
    def start(cls, log, *command):
        output = open(cls.folder / log, "wb")
        cls.addClassCleanup(output.close)
        process = subprocess.Popen(list(map(str, command)), env=cls.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cls.folder)
        cls.addClassCleanup(stop, process)
        return process

    @classmethod
    def start_prometheus(cls, targets):
        """Starts Prometheus with the configuration of deploy/grafana, but quicker, on a free port, and with these targets."""
        text = (GRAFANA / "prometheus.yml").read_text()
        static = '    static_configs:\n      - targets: ["127.0.0.1:7490"]\n'
        assert static in text
        text = text.replace(static, f"    file_sd_configs:\n      - files: [{targets}]\n")
        text = text.replace("evaluation_interval: 15s", "evaluation_interval: 1s")
        (cls.folder / "prometheus.yml").write_text(text)
        shutil.copy(GRAFANA / "alerts.yml", cls.folder)
        flags = [f"--config.file={cls.folder}/prometheus.yml", f"--storage.tsdb.path={cls.folder}/tsdb", "--web.listen-address=127.0.0.1:0"]
        process = cls.start("prometheus.log", PROMETHEUS, *flags)
        # Prometheus does not log which port it got for port 0, so we ask the kernel.
        cls.prometheus = wait_for("Prometheus", lambda: listening_port(process.pid))

    @classmethod
    def hooke(cls, *arguments):
        command = [PROGRAMS / "hooke", *map(str, arguments)]
        result = subprocess.run(command, env=cls.environment, capture_output=True, text=True, timeout=SOON_SECONDS)
        assert result.returncode == 0, result
        return result.stdout

    @classmethod
    def query(cls, expression):
        """Returns the answer of Prometheus: a list of samples, each with `metric` and `value`."""
        url = f"http://127.0.0.1:{cls.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=SOON_SECONDS) as answer:
            return json.load(answer)["data"]["result"]

    @classmethod
    def stored(cls, name):
        """Returns all samples of a metric that Prometheus itself makes: pairs [time, value as text] by daemon."""
        return {one["metric"]["daemon"]: one["values"] for one in cls.query(f"{name}[10m]")}

    @classmethod
    def pages(cls):
        return {name: read(address) for name, address in cls.daemons.items()}

    @classmethod
    def served(cls):
        """Returns type by name of all families that the cluster serves."""
        return {name: kind for page in cls.pages().values() for name, kind in families_with_samples(page).items()}

    def test_promtool_finds_no_fault_with_the_pages(self):
        for name, page in self.pages().items():
            result = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, text=True, timeout=SOON_SECONDS)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), name)

    def test_promtool_finds_no_fault_with_the_rules(self):
        for command in (["check", "rules", "alerts.yml"], ["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]):
            result = subprocess.run([PROMTOOL, *command], cwd=GRAFANA, capture_output=True, text=True, timeout=SOON_SECONDS)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_table_of_the_docs_is_what_is_served(self):
        table = dict(re.findall(r"^\| `(\w+)` \| (gauge|counter|histogram) \|", PAGE.read_text(), re.MULTILINE))
        self.assertEqual(self.served(), table)

    def test_dashboard_and_alerts_name_only_what_is_served(self):
        served = self.served()
        texts = {"alerts.yml": re.sub(r"#.*", "", (GRAFANA / "alerts.yml").read_text()), "hooke.json": (GRAFANA / "hooke.json").read_text()}
        for file, text in texts.items():
            names = set(METRIC.findall(text))
            self.assertGreater(len(names), 10)
            self.assertEqual({name for name in names if family_of(name) not in served}, set(), file)

    def test_prometheus_answers_with_the_right_step(self):
        sample = f'hooke_group_step{{job="{self.job}",group="0"}}'
        before = value_of(read(self.daemons["server-1"]), sample)
        self.assertGreater(before, 0)
        # The scrape may be from before the page above. So a later one is awaited.
        asked = time.time()
        answer = wait_for("a scrape", lambda: next((one for one in self.query(f"timestamp({sample}) > {asked}")), None))
        self.assertEqual(answer["metric"]["job"], self.job)
        (stored,) = self.query(sample)
        after = value_of(read(self.daemons["server-1"]), sample)
        self.assertEqual(stored["metric"]["daemon"], "server-1")
        self.assertLessEqual(before, float(stored["value"][1]))
        self.assertLessEqual(float(stored["value"][1]), after)
        shown = json.loads(self.hooke("jobs", self.job, "--output", "json"))["groups"][0]["progress"]["step"]
        self.assertGreaterEqual(shown, after)
        self.assertEqual(sorted(one["value"][1] for one in self.query("up")), ["1"] * 4)

    def test_every_panel_of_the_dashboard_shows_something(self):
        dashboard = json.loads((GRAFANA / "hooke.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 20)
        # These metrics show faults and waits in the queue. Here there are none, so they have no samples.
        empty = ("hooke_group_exchange_failures_total", "hooke_job_queued_seconds")
        for expression in expressions:
            asked = expression.replace("$job", self.job)
            if any(name in expression for name in empty):
                self.query(asked)
            else:
                wait_for(asked, lambda: self.query(asked))
        variable = dashboard["templating"]["list"][1]["definition"]
        self.assertEqual(variable, "label_values(hooke_job_step, job)")

    def test_nothing_alarms_while_nothing_is_wrong(self):
        wait_for("a scrape of all daemons", lambda: len(self.query("up == 1")) == 4)
        self.assertEqual(self.query('ALERTS{alertstate="firing"}'), [])

    def test_y_a_minute_of_scrapes_is_whole(self):
        """The last test but one, so the minute has gone by in the others: Prometheus has got each page every five seconds or so, and stored all of it."""
        def is_a_minute(up):
            return all(scrapes[-1][0] - scrapes[0][0] >= SCRAPE_SECONDS for scrapes in up.values()) and up

        up = wait_for("a minute of scrapes", lambda: is_a_minute(self.stored("up")))
        self.assertEqual(scrape_faults(up, self.stored("scrape_samples_scraped")), [])
        self.assertEqual({one["value"][1] for one in self.query("resets(process_cpu_seconds_total[10m])")}, {"0"})
        # It warns of samples that come twice with two values, or too late.
        said = (self.folder / "prometheus.log").read_text()
        self.assertIn("level=info", said)
        self.assertEqual(re.findall(r"(?i).*(?:out.of.order|different value|duplicate|too old|out of bounds|append failed).*", said), [])

    def test_z_the_end_of_a_job(self):
        """The last test by its name: servers forget the job at once, the coordinator shows how it ended, and a stopped worker is silent."""
        self.hooke("cancel", self.job)
        page = wait_for("shards that vanish", lambda: (text := read(self.daemons["server-1"])) and "hooke_shard_memory_bytes{" not in text and text)
        self.assertEqual(value_of(page, f'hooke_job_state{{job="{self.job}",state="cancelled"}}'), 1)
        self.assertIsNotNone(value_of(page, f'hooke_job_center_accuracy_ratio{{job="{self.job}"}}'))
        worker = int((self.folder / ".hooke/up/worker-2.ready").read_text().split()[0])
        os.kill(worker, signal.SIGSTOP)
        self.addCleanup(os.kill, worker, signal.SIGCONT)
        silent = 'hooke_worker_alive{worker="worker-2",site="local"}'
        wait_for("a silent worker", lambda: value_of(read(self.daemons["server-1"]), silent) == 0)
        wait_for("Prometheus to know", lambda: self.query(f"{silent} == 0"))
        wait_for("a pending alert", lambda: self.query('ALERTS{alertname="HookeWorkerSilent", worker="worker-2"}'))

    def test_the_page_and_the_job_agree(self):
        page = read(self.daemons["server-1"])
        self.assertEqual(value_of(page, 'hooke_jobs{state="running"}'), 1)
        self.assertEqual(value_of(page, 'hooke_groups{state="running"}'), 2)
        self.assertEqual(value_of(page, 'hooke_workers{state="alive"}'), 2)
        self.assertEqual(value_of(page, 'hooke_slots{state="used"}'), 2)
        self.assertEqual(value_of(page, f'hooke_job_state{{job="{self.job}",state="running"}}'), 1)
        for worker in ("worker-1", "worker-2"):
            node = read(self.daemons[worker])
            self.assertEqual(value_of(node, "hooke_node_slots_used"), 1)
            self.assertEqual(value_of(node, "hooke_node_connected"), 1)
            self.assertLess(value_of(node, "hooke_node_heartbeat_age_seconds"), 30)
        # Each server holds half of the vector, and answers as many bytes as it gets.
        for server in ("server-1", "server-2"):
            shards = read(self.daemons[server])
            received = value_of(shards, f'hooke_shard_received_bytes_total{{job="{self.job}"}}')
            self.assertGreater(received, 0)
            self.assertEqual(value_of(shards, f'hooke_shard_sent_bytes_total{{job="{self.job}"}}'), received)
        self.assertIsNone(value_of(read(self.daemons["server-2"]), 'hooke_jobs{state="running"}'))


def scrape_faults(up, samples):
    """Returns what is wrong with scrapes: lines that name the daemon. Both arguments map a daemon to pairs [time, value as text], in order of time:
    of `up`, and of `scrape_samples_scraped`."""
    faults = [f"{daemon}: no scrapes" for daemon in DAEMONS if not up.get(daemon)]
    for daemon, scrapes in up.items():
        faults += [f"{daemon}: the scrape at {at} failed" for at, value in scrapes if value != "1"]
        faults += [f"{daemon}: no scrape from {one[0]} to {other[0]}" for one, other in zip(scrapes, scrapes[1:]) if other[0] - one[0] > GAP_SECONDS_MAX]
        taken = dict(map(tuple, samples.get(daemon, [])))
        faults += [f"{daemon}: no samples at {at}" for at, value in scrapes if value == "1" and float(taken.get(at, 0)) <= 0]
    return faults


class ScrapeFaults(unittest.TestCase):
    """The check of a minute of scrapes sees each fault."""

    GOOD = [[10.0, "1"], [15.0, "1"], [20.0, "1"]]
    SAMPLES = [[10.0, "7"], [15.0, "7"], [20.0, "7"]]

    def faults(self, scrapes, samples):
        others = DAEMONS[1:]
        return scrape_faults({DAEMONS[0]: scrapes, **dict.fromkeys(others, self.GOOD)}, {DAEMONS[0]: samples, **dict.fromkeys(others, self.SAMPLES)})

    def test_whole_scrapes_have_none(self):
        self.assertEqual(self.faults(self.GOOD, self.SAMPLES), [])

    def test_each_fault_is_named(self):
        self.assertEqual(self.faults([], []), ["server-1: no scrapes"])
        self.assertEqual(self.faults([[10.0, "1"], [15.0, "0"], [20.0, "1"]], self.SAMPLES), ["server-1: the scrape at 15.0 failed"])
        self.assertEqual(self.faults([[10.0, "1"], [20.0, "1"]], self.SAMPLES), ["server-1: no scrape from 10.0 to 20.0"])
        self.assertEqual(self.faults(self.GOOD, [[10.0, "7"], [15.0, "0"]]), ["server-1: no samples at 15.0", "server-1: no samples at 20.0"])


def listening_port(pid):
    """Returns the port of 127.0.0.1 where this process listens; None: it does not yet."""
    try:
        inodes = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return None
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            return int(fields[1].split(":")[1], 16)
    return None


def skip(reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="Metrics" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="Metrics" tests="1">{case}</testsuite></testsuites>\n')


if __name__ == "__main__":
    if PROMETHEUS is None or PROMTOOL is None:
        skip("no Prometheus: run deploy/install-deps")
    else:
        skips.main()

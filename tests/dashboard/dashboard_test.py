#!/usr/bin/env python3
"""The web page of a cluster that trains, as a real browser shows it: its tables and charts say what `hooke` says, and texts of jobs stay texts.

dashboard_test.py --pictures FOLDER: writes pictures of the pages, light and dark, instead.
"""

import csv
import html
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "deploy")]
import polling  # noqa: E402
import skips  # noqa: E402

HOOKE = pathlib.Path("bin/hooke").resolve()
CHROMIUM = shutil.which("chromium")
PICTURES = pathlib.Path(sys.argv.pop()) if sys.argv[1:2] == ["--pictures"] and len(sys.argv) == 3 else None
SECONDS = 200
DATA = "/usr/share/datasets/fashion-mnist"
JOB = f"""name: two-sizes
model: mlp
data: {{train: {DATA}/train, test: {DATA}/t10k}}
train: {{epochs: 2, optimizer: {{name: sgd, learning_rate: 0.1, momentum: 0.9}}}}
groups:
  - {{ranks: 2}}
  - {{batch_size: 32}}
averaging: {{rule: elastic, interval: 16}}
"""
# Would change the page if it ran, wherever it came from.
SCRIPT = "</script><script>document.title='run'</script><img src=x onerror=document.title='run'>"


@unittest.skipIf(CHROMIUM is None, "no chromium: run deploy/install-deps --ci")
class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hooke-dashboard-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = dict(os.environ, HOME=folder.name, TZ="UTC")
        for name in ("HOOKE_COORDINATOR", "HOOKE_TOKEN_FILE"):
            cls.environment.pop(name, None)
        log = cls.folder / "up.log"
        with log.open("wb") as output:
            up = subprocess.Popen([HOOKE, "up", "--workers=1", "--slots=3"], env=cls.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        cls.addClassCleanup(up.wait, SECONDS)
        cls.addClassCleanup(up.send_signal, signal.SIGINT)
        polling.wait_for("a cluster", lambda: "Ctrl-C here" in log.read_text(), SECONDS, lambda: "\n" + log.read_text())
        cls.address = re.search(r"^dashboard +http://(\S+)/$", log.read_text(), re.MULTILINE).group(1)
        (cls.folder / "job.yaml").write_text(JOB)
        cls.hooke("submit", "job.yaml", "--watch")
        if PICTURES is None:
            # A job whose command and output have markup in them, and that fails.
            program = f"import sys; print({SCRIPT!r}); sys.exit({SCRIPT!r})"
            cls.hooke("run", "--", "python3", "-c", program, fails=True)
        else:
            cls.hooke("submit", "job.yaml")
            polling.wait_for("a second job that trains", lambda: "running" in cls.hooke("jobs"), SECONDS, lambda: "")

    @classmethod
    def hooke(cls, *arguments, fails=False):
        result = subprocess.run([HOOKE, *arguments], env=cls.environment, capture_output=True, text=True, timeout=SECONDS, cwd=cls.folder)
        assert (result.returncode != 0) == fails, result
        return result.stdout

    @classmethod
    def browse(cls, page, *flags):
        """Opens a page of the dashboard in the browser, and returns what the flags ask for."""
        # The browser's clock goes on as fast as the page allows, until the page has had a second look at its data.
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={cls.folder}/chromium"]
        command += ["--virtual-time-budget=4000", *flags, f"http://{cls.address}/{page}"]
        result = subprocess.run(command, env=cls.environment, capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == 0, result
        return result.stdout

    def dom(self, page):
        return self.browse(page, "--dump-dom")

    def get(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=headers or {})
        return connection.getresponse()

    def rows(self, dom):
        """Returns the cells' texts of each row of a table's body."""
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", dom, re.DOTALL)
        return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows]

    def test_jobs(self):
        rows = [row for row in self.rows(self.dom("#/")) if row]
        by_name = {row[1]: row for row in rows}
        listed = {job["job_id"]: job for job in json.loads(self.hooke("jobs", "--output", "json"))["jobs"]}
        self.assertEqual(by_name.keys(), listed.keys())
        job = by_name["two-sizes-1"]
        self.assertEqual(job[2:4] + job[7:8], ["succeeded", " 100 %", "mlp, 1 group x 2 ranks, 1 group x 1 rank (batch 32), elastic"])
        self.assertEqual(job[6], f"{100 * listed['two-sizes-1']['center']['accuracy']:.2f} %")

    def test_charts_have_the_values_of_the_history(self):
        dom = self.dom("#/jobs/two-sizes-1")
        history = list(csv.DictReader(io.StringIO(self.hooke("metrics", "two-sizes-1", "--csv"))))
        for chart, column, series, factor in (("loss", "loss", "group", 1), ("rate", "samples_per_s", "group", 1), ("accuracy", "accuracy_fraction", "center", 100)):
            section = re.search(rf'<section class="chart" id="chart-{chart}">.*?</section>', dom, re.DOTALL).group(0)
            shown = {name: float(value) for name, value in re.findall(r'data-series="([^"]+)" data-value="([^"]+)"', section)}
            last = {f"group {row['group']}" if row["group"] else "center": factor * float(row[column]) for row in history if row["series"] == series}
            self.assertEqual(shown.keys(), last.keys(), chart)
            for name, value in last.items():
                self.assertAlmostEqual(shown[name], value, places=9, msg=f"{chart} {name}")
            # The chart itself was drawn: Chart.js sets the size of its canvas.
            self.assertRegex(section, r"<canvas[^>]* height=\"\d{3}")
        groups = [row for row in self.rows(dom) if row and row[0].startswith("group ") and len(row) == 10]
        self.assertEqual([row[:4] for row in groups], [[f"group {n}", "finished", "worker-1 (local)", "1"] for n in range(2)])
        self.assertIn("job submitted: mlp, 1 group x 2 ranks, 1 group x 1 rank (batch 32)", html.unescape(dom))

    def test_compares_jobs(self):
        self.hooke("submit", "job.yaml", "--watch")
        other = json.loads(self.hooke("jobs", "--output", "json"))["jobs"][0]["job_id"]
        dom = self.dom(f"#/compare/two-sizes-1,{other}")
        section = re.search(r'<section class="chart" id="chart-loss">.*?</section>', dom, re.DOTALL).group(0)
        self.assertEqual(re.findall(r'data-series="([^"]+)"', section), [f"{job} group {n}" for job in ("two-sizes-1", other) for n in range(2)])

    def test_cancels_a_job(self):
        (self.folder / "long.yaml").write_text(JOB.replace("epochs: 2", "epochs: 100000").replace("two-sizes", "long"))
        job = re.match(r"submitted (\S+);", self.hooke("submit", "long.yaml")).group(1)
        self.assertIn("Cancel the job", self.dom(f"#/jobs/{job}"))
        self.assertEqual(self.get(f"/api/cancel/{job}", {"X-Hooke-Action": "1"}).status, 405)
        self.assertEqual(self.get(f"/api/cancel/{job}", method="POST").status, 405)
        self.assertNotEqual(json.loads(self.hooke("jobs", job, "--output", "json"))["state"], "cancelled")
        answer = self.get(f"/api/cancel/{job}", {"X-Hooke-Action": "1"}, "POST")
        self.assertEqual((answer.status, json.load(answer)["state"]), (200, "JOB_STATE_CANCELLED"))
        self.assertEqual(json.loads(self.hooke("jobs", job, "--output", "json"))["state"], "cancelled")
        self.assertRegex(self.dom(f"#/jobs/{job}"), r"<button[^>]* hidden=[^>]*>Cancel the job")

    def test_nodes(self):
        rows = [row for row in self.rows(self.dom("#/nodes")) if row]
        self.assertEqual(rows[0][:4], ["worker-1", "alive", "local", "0/3"])
        self.assertEqual(sorted(row[0] for row in rows[1:3]), sorted(node["name"] for node in json.loads(self.hooke("nodes", "--output", "json"))["nodes"] if node["kind"] == "server"))
        self.assertEqual(rows[3], ["No group has run on several workers."])

    def test_texts_of_jobs_stay_texts(self):
        bad = next(job["job_id"] for job in json.loads(self.hooke("jobs", "--output", "json"))["jobs"] if job["state"] == "failed")
        for page in ("#/", f"#/jobs/{bad}"):
            dom = self.dom(page)
            self.assertIn("</script>", html.unescape(re.sub(r"<script src[^>]*></script>", "", dom)))
            self.assertNotIn("<img", dom)
            self.assertRegex(dom, r"<title>(Jobs|python3-\d+|\S+) - Hooke</title>")
        self.assertIn("failed", dom)

    def test_nothing_comes_from_elsewhere(self):
        for path in ("/", "/app.js", "/api/jobs", "/api/jobs/none", "/none"):
            answer = self.get(path)
            policy = answer.headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'; script-src 'self';", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
            answer.read()
        self.assertEqual(self.get("/api/jobs", {"Host": "evil.example"}).status, 421)
        page = self.get("/").read().decode()
        self.assertEqual(re.findall(r"(?:src|href)=\"(?!#|data:,|[a-z.]+\")[^\"]*", page), [])

    def test_errors_say_what_is_wrong(self):
        answer = self.get("/api/jobs/none-7")
        self.assertEqual((answer.status, json.load(answer)), (404, {"error": "no job none-7: `hooke jobs` lists them"}))
        answer = self.get("/api/log/two-sizes-1?offset=x")
        self.assertEqual((answer.status, json.load(answer)), (400, {"error": "offset is no number; give one of at least 0"}))
        self.assertIn("no job none-7", self.dom("#/jobs/none-7"))


class Token(unittest.TestCase):
    """A page that other machines reach asks for the cluster's token."""

    def test_data_needs_the_token(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-dashboard-")
        self.addCleanup(folder.cleanup)
        token = pathlib.Path(folder.name, "token")
        token.write_text("0123456789abcdef")
        token.chmod(0o600)
        ready = pathlib.Path(folder.name, "ready")
        command = [HOOKE.parent / "hooke-server", "--listen=127.0.0.1:0", "--dashboard=0.0.0.0:0", f"--token-file={token}"]
        command += [f"--state-dir={folder.name}/state", f"--ready-file={ready}"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, SECONDS)
        self.addCleanup(server.terminate)
        polling.wait_for("a server", lambda: ready.exists() and "dashboard" in ready.read_text(), SECONDS, lambda: "")
        port = ready.read_text().rsplit(":", 1)[1].strip()
        for path, headers, status in (
            ("/", {}, 200),
            ("/app.js", {}, 200),
            ("/api/jobs", {}, 401),
            ("/api/jobs", {"Authorization": "Bearer 0123456789abcdeg"}, 401),
            ("/api/jobs", {"Authorization": "Bearer 0123456789abcdef"}, 200),
        ):
            connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=SECONDS)
            self.addCleanup(connection.close)
            connection.request("GET", path, headers=headers)
            self.assertEqual(connection.getresponse().status, status, (path, headers))


def take_pictures(folder):
    """Writes the pictures of docs/see.md."""
    Dashboard.setUpClass()
    try:
        for name, page, height in (("jobs", "#/", 330), ("job", "#/jobs/two-sizes-1", 1420)):
            for scheme, flags in (("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])):
                Dashboard.browse(page, f"--window-size=1280,{height}", f"--screenshot={folder.resolve()}/dashboard-{name}-{scheme}.png", *flags)
    finally:
        Dashboard.doClassCleanups()


if __name__ == "__main__":
    if PICTURES is not None:
        take_pictures(PICTURES)
    else:
        skips.main()

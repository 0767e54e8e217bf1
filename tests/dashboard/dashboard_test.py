#!/usr/bin/python3
"""The web page of a cluster that trains, as a real browser shows it: its tables and charts say what `hooke` says, and texts of jobs stay texts.

dashboard_test.py --pictures FOLDER: writes pictures of the pages, light and dark, instead.
"""

import csv
import html
import http.client
import http.server
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "deploy"), str(TREE / "tests/dashboard"), str(TREE / "tests/metrics")]
import browser  # noqa: E402
import cluster  # noqa: E402
import polling  # noqa: E402
import skips  # noqa: E402
import time_shares  # noqa: E402
from cluster import HOOKE, JOB, SCRIPT, SECONDS, endless, fixed  # noqa: E402

PICTURES = pathlib.Path(sys.argv.pop()) if sys.argv[1:2] == ["--pictures"] and len(sys.argv) == 3 else None


@unittest.skipIf(browser.MISSING, browser.MISSING)
class Dashboard(cluster.Cluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if PICTURES is None:
            # A job whose command and output have markup in them, and that fails.
            program = f"import sys; print({SCRIPT!r}); sys.exit({SCRIPT!r})"
            cls.hooke("run", "--", "python3", "-c", program, fails=True)
        else:
            # The second job trains for as long as the test takes pictures.
            (cls.folder / "job.yaml").write_text(JOB.replace("small-mlp", "mlp").replace("epochs: 2", "epochs: 20"))
            cls.hooke("submit", "job.yaml")
            polling.wait_for("a second job that trains", lambda: "running" in cls.hooke("jobs"), SECONDS, lambda: "")

    @classmethod
    def browse(cls, page, *flags):
        """Opens a page of the dashboard in the browser, and returns what the flags ask for."""
        # The browser's clock goes on as fast as the page allows, until the page has had a second look at its data.
        command = [browser.CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={cls.folder}/chromium"]
        command += ["--virtual-time-budget=4000", *flags, f"http://{cls.address}/{page}"]
        result = subprocess.run(command, env=cls.environment, capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == 0, result
        return result.stdout

    def dom(self, page):
        return self.browse(page, "--dump-dom")

    def get(self, path, headers=None, method="GET", body=None):
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers or {})
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
        self.assertEqual(job[2:4] + job[7:9], ["succeeded", " 100 %", "small-mlp, 1 group x 2 ranks, 1 group x 1 rank (batch 32), elastic", "lovelace"])
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
        groups = [row for row in self.rows(dom) if row and row[0].startswith("group ") and len(row) == 12]
        self.assertEqual([row[:4] for row in groups], [[f"group {n}", "finished", "worker-1 (local)", "1"] for n in range(2)])
        self.assertIn("job submitted: small-mlp, 1 group x 2 ranks, 1 group x 1 rank (batch 32)", html.unescape(dom))

    def test_charts_draw_all_points_of_the_csv(self):
        driver = self.open("#/jobs/two-sizes-1")
        drawn = "const c = Chart.getChart(document.querySelector('#chart-%s canvas')); return c && c.data.datasets.length ? c.data.datasets.map((set) => [set.label, set.data.map((p) => [p.x, p.y])]) : null"
        history = list(csv.DictReader(io.StringIO(self.hooke("metrics", "two-sizes-1", "--csv"))))
        for chart, column, series, factor in (("loss", "loss", "group", 1), ("rate", "samples_per_s", "group", 1), ("exchange", "exchange_ms", "group", 1), ("accuracy", "accuracy_fraction", "center", 100)):
            shown = dict(self.wait_for(driver, f"the chart {chart}", drawn % chart))
            expected = {}
            for row in history:
                if row["series"] == series and row[column] not in ("", "nan"):
                    expected.setdefault(f"group {row['group']}" if row["group"] else "center", []).append([float(row["step"]), factor * float(row[column])])
            self.assertEqual(shown, expected, chart)

    def test_the_chart_of_time_has_the_shares_of_the_csv(self):
        history = list(csv.DictReader(io.StringIO(self.hooke("metrics", "two-sizes-1", "--csv"))))
        driver = self.open("#/jobs/two-sizes-1")
        drawn = "const c = Chart.getChart(document.querySelector('#chart-time canvas')); return c && c.data.datasets[0].data.length ? c.data.datasets.map((set) => [set.label, set.data.map((p) => [p.x, p.y])]) : null"
        names = [*time_shares.PARTS, "rest"]
        together = self.wait_for(driver, "the chart", drawn)
        self.assertEqual([label for label, _ in together], names)
        for column in zip(*(points for _, points in together)):
            self.assertAlmostEqual(sum(y for _, y in column), 100, places=6)
            self.assertEqual(len({x for x, _ in column}), 1)
        for group in ("0", "1"):
            driver.execute_script("const c = document.getElementById('time-group'); c.value = arguments[0]; c.dispatchEvent(new Event('change'))", group)
            expected = time_shares.shares_of([row for row in history if row["group"] == group])
            self.assertGreater(len(expected), 1)
            shown = dict(driver.execute_script(drawn))
            for name in names:
                self.assertEqual([x for x, _ in shown[name]], [step for step, _ in expected], name)
                for (_, y), (_, shares) in zip(shown[name], expected):
                    self.assertAlmostEqual(y, 100 * shares[name], places=6, msg=f"group {group} {name}")
            rows = driver.execute_script("return [...document.querySelectorAll('#chart-time tbody tr')].map((row) => [row.dataset.series, Number(row.dataset.value)])")
            self.assertEqual([name for name, _ in rows], names)
            for name, value in rows:
                self.assertAlmostEqual(value, 100 * expected[-1][1][name], places=6, msg=name)
            self.assertRegex(driver.execute_script("return document.querySelector('#chart-time canvas').getAttribute('aria-label')"), r"compute \d+ %, collective \d+ %, exchange \d+ %")
        # In a job on one machine, hardly any of a step's time is lost.
        self.assertGreater(sum(shares["compute"] for _, shares in expected) / len(expected), 0.2)
        # Drawn over time, the same points have other x values.
        driver.execute_script("[...document.querySelectorAll('h2 button')].find((b) => b.textContent === 'Draw over time').click()")
        over_time = dict(driver.execute_script(drawn))
        first = min(int(row["time_unix_ms"]) for row in history)
        minutes = {int(row["step"]): (int(row["time_unix_ms"]) - first) / 60000 for row in history if row["group"] == "1"}
        for (x, _), (step, _) in zip(over_time["compute"], expected):
            self.assertAlmostEqual(x, minutes[step], places=6)
        self.assertEqual([y for _, y in over_time["compute"]], [y for _, y in shown["compute"]])

    def test_time_of_groups_that_start_again_or_have_old_points(self):
        """The functions behind the chart, with plain values."""
        driver = self.open("#/jobs/two-sizes-1")
        self.wait_for(driver, "the page", "return typeof timeSpans === 'function' && document.querySelector('h1')")

        def spans(steps, seconds, *columns):
            series = {"step": steps, "unix_ms": [1000 * s for s in seconds], **dict(zip(("computing_ms", "collectives_ms", "exchanging_ms"), columns))}
            return driver.execute_script("const s = arguments[0]; return timeSpans(s, (i) => s.step[i]).map(({ from, to, parts }) => [from, to, ...parts])", series)

        self.assertEqual(spans([1, 5], [0, 1], [100, 700], [0, 200], [0, 100]), [[1, 1, 100, 0, 0, 0], [1, 5, 600, 200, 100, 0]])
        # A second and more that is none of the three is the rest.
        self.assertEqual(spans([1, 5], [0, 3], [100, 900], [0, 0], [0, 50]), [[1, 1, 100, 0, 0, 0], [1, 5, 800, 0, 50, 2150]])
        # A group that starts again counts from zero, and the steps that it repeats are not drawn over.
        self.assertEqual(spans([1, 5, 3], [0, 3, 13], [100, 900, 500], [0, 0, 0], [0, 50, 0]), [[1, 1, 100, 0, 0, 0], [3, 3, 500, 0, 0, 9500]])
        # Points of an older coordinator are no zeros. The first one after them says nothing of the time before it.
        self.assertEqual(spans([1, 2, 3, 4], [0, 1, 2, 3], [None, None, 900, 1900], [None, None, 0, 0], [None, None, 0, 0]), [[3, 4, 1000, 0, 0, 0]])
        self.assertEqual(spans([1, 2], [0, 1], [None, None], [None, None], [None, None]), [])
        # With two groups, each part of the axis shows the mean of both.
        groups = [[[0, 4, [400, 0, 0, 0]], [4, 8, [0, 400, 0, 0]]], [[0, 8, [0, 0, 800, 0]]]]
        mean = driver.execute_script("return sharesOfAll(arguments[0].map((group) => group.map(([from, to, parts]) => ({ from, to, step: to, parts })))).map(({ x, shares }) => [x, ...shares])", groups)
        self.assertEqual(mean, [[0, 50, 0, 50, 0], [8, 0, 50, 50, 0]])

    def test_downloads_the_csv(self):
        expected = subprocess.run([HOOKE, "metrics", "two-sizes-1", "--csv"], env=self.environment, capture_output=True, check=True, timeout=SECONDS).stdout
        self.assertEqual(self.get("/api/csv/two-sizes-1").read(), expected)
        driver = self.open("#/jobs/two-sizes-1")
        self.wait_for(driver, "the button", "return [...document.querySelectorAll('button')].some((b) => b.textContent === 'Points as CSV')")
        driver.execute_script("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Points as CSV').click()")
        found = lambda: list(self.folder.glob("*/two-sizes-1.csv"))
        polling.wait_for("the file", found, SECONDS, lambda: "")
        self.assertEqual(found()[0].read_bytes(), expected)
        self.assertIn("hooke export two-sizes-1 two-sizes-1.safetensors --coordinator 127.0.0.1:", driver.page_source)

    def test_downloads_the_trace(self):
        self.hooke("profile", "two-sizes-1", "--trace", "expected.json")
        driver = self.open("#/jobs/two-sizes-1")
        self.wait_for(driver, "the button", "return [...document.querySelectorAll('button')].some((b) => b.textContent.startsWith('Trace'))")
        driver.execute_script("[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith('Trace')).click()")
        found = lambda: list(self.folder.glob("*/two-sizes-1-trace.json"))
        polling.wait_for("the file", found, SECONDS, lambda: driver.execute_script("return document.body.innerText"))
        shown, expected = (json.loads(path.read_text()) for path in (found()[0], self.folder / "expected.json"))
        # The machine's clock is measured again and again, so all times may have moved together.
        moved = lambda trace: [{key: value for key, value in event.items() if key != "ts"} for event in trace["traceEvents"]]
        self.assertEqual(moved(shown), moved(expected))
        self.assertEqual(shown["otherData"]["notes"], [])
        processes = {event["pid"]: event["args"]["name"] for event in shown["traceEvents"] if event["name"] == "process_name"}
        at_servers = {processes[event["pid"]] for event in shown["traceEvents"] if event.get("cat") == "server" and event["ph"] == "X"}
        servers = json.loads(self.hooke("jobs", "two-sizes-1", "--output", "json"))["servers"]
        self.assertEqual(at_servers, {f"server {address}" for address in servers})
        self.assertEqual(self.get("/api/trace/none-1").status, 404)

    def test_the_profile_is_that_of_the_command(self):
        expected = json.loads(self.hooke("profile", "two-sizes-1", "--steps", "--output", "json"))
        self.assertEqual(json.load(self.get("/api/profile/two-sizes-1")), expected)
        driver = self.open("#/jobs/two-sizes-1")
        shown = "return [...document.querySelectorAll('table[aria-label=\"%s\"] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        percent = lambda share: f"{fixed(100 * share, 1)} %"
        steps = [
            [f"group {one['group']}", fixed(one["seconds"], 1), *(percent(one[f"{part}_share"]) for part in ("compute", "waiting", "collective", "exchange")), f"rank {one['last_rank']}, {percent(one['last_share'])}" if one["ranks"] > 1 else "-"]
            for one in expected["steps"]
        ]
        self.assertEqual([row[0] for row in steps], ["group 0", "group 1"])
        self.assertEqual(self.wait_for(driver, "the last steps", shown % "Time of the last steps"), steps)
        # `hooke profile` prints the same texts, but rounds halves to even digits and joins sizes by a hyphen.
        table = [re.split(r"  +", line) for line in self.hooke("profile", "two-sizes-1").splitlines()[2:]]
        self.assertGreater(len(table), 3)
        sizes = [[cell.replace("\u2013", "-") for cell in row] for row in driver.execute_script(shown % "Collectives by size")]
        for row, said, one in zip(sizes, table, expected["all"]["collectives"], strict=True):
            self.assertEqual([row[0], row[2], row[9]], [said[0], said[2], said[9]])
            self.assertEqual(["0" if row[1] == "0 B" else row[1], row[10].replace(", ", ",")], [said[1], said[10] if len(said) > 10 else ""])
            times = [one[f"{name}_us"] for name in ("min", "median", "p99")]
            self.assertEqual((row[4:7], said[4:7]), ([fixed(us, 1) for us in times], [f"{us:.1f}" for us in times]))
            self.assertEqual((row[8], said[8]), (percent(one["step_share"]), f"{100 * one['step_share']:.1f} %"))
            (page_size, page_unit), (said_size, said_unit) = row[3].split(), said[3].split()
            self.assertEqual(page_unit, said_unit)
            self.assertAlmostEqual(float(page_size), float(said_size), delta=0.11)
            self.assertEqual("-" if row[7] == "-" else float(row[7]), "-" if said[7] == "-" else float(said[7]))
        self.assertIn(f"3 ranks of 2 groups, together {expected['all']['step_seconds']:.3g} s in steps", driver.execute_script("return document.getElementById('profile-about').textContent"))
        self.assertEqual(driver.execute_script("return document.querySelector('#profile').previousElementSibling.innerText.replace(/\\s+/g, ' ').trim()"), "Profile Trace (ui.perfetto.dev)")

        # A job whose program trains nothing has no profile.
        none = next(job["job_id"] for job in json.loads(self.hooke("jobs", "--output", "json"))["jobs"] if job["state"] == "failed")
        driver.get(f"http://{self.address}/#/jobs/{none}")
        self.wait_for(driver, "the reason", f"return document.getElementById('profile-about')?.textContent.startsWith('job {none} has no profile: it ended before its first steps')")
        self.assertEqual(driver.execute_script("return document.querySelectorAll('#profile table').length - [...document.querySelectorAll('#profile table')].filter((t) => t.offsetParent === null).length"), 0)

    def test_downloads_the_model(self):
        self.hooke("export", "two-sizes-1", "expected.safetensors")
        expected = (self.folder / "expected.safetensors").read_bytes()
        driver = self.open("#/jobs/two-sizes-1")
        self.wait_for(driver, "the button", "return document.getElementById('model')")
        driver.execute_script("document.getElementById('model').click()")
        found = lambda: list(self.folder.glob("*/two-sizes-1.safetensors"))
        said = "return document.getElementById('model-said').textContent"
        polling.wait_for("the file", found, SECONDS, lambda: driver.execute_script(said))
        self.assertEqual(found()[0].read_bytes(), expected)
        self.assertRegex(driver.execute_script(said), r"the browser downloads two-sizes-1.safetensors, 398\.4 KiB")

        # The same requests without the page. A ticket is good once. A link, or a page of another site, gets none.
        action = {"X-Hooke-Action": json.load(self.get("/api/page"))["action_key"]}
        self.assertEqual(self.get("/api/export/two-sizes-1", action).status, 405)
        self.assertEqual(self.get("/api/export/two-sizes-1", {**action, "Origin": "http://evil.example"}, "POST").status, 403)
        prepared = json.load(self.get("/api/export/two-sizes-1", action, "POST"))
        self.assertEqual((prepared["bytes"], prepared["file"], prepared["notes"]), (len(expected), "two-sizes-1.safetensors", []))
        path = f"/api/download/{prepared['ticket']}"
        answer = self.get(path, {"Range": "bytes=10-"})
        self.assertEqual((answer.status, answer.headers["Content-Disposition"]), (200, 'attachment; filename="two-sizes-1.safetensors"'))
        self.assertEqual(answer.read(), expected)
        again = self.get(path)
        self.assertEqual((again.status, json.load(again)["error"].split(",")[0]), (404, "this download was begun already"))

        # A job has no center while it waits because another one has all slots.
        for name in ("fills", "waits"):
            waits = self.submit(endless(name))
            self.addCleanup(self.hooke, "cancel", waits)
        driver.get(f"http://{self.address}/#/jobs/{waits}")
        self.wait_for(driver, "the page", "return document.querySelector('h1')?.textContent === arguments[0]".replace("arguments[0]", json.dumps(waits)))
        driver.execute_script("document.getElementById('model').click()")
        self.assertIn(f"job {waits} (queued) has no center yet", self.wait_for(driver, "the reason", "return document.querySelector('#model-said.bad')?.textContent"))

    def type_job(self, driver, text):
        self.wait_for(driver, "the page", "return document.getElementById('job')")
        driver.execute_script("const t = document.getElementById('job'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))", text)

    def test_submits_a_job_file(self):
        before = self.jobs()
        driver = self.open("#/submit")
        faulty = JOB.replace("model: small-mlp", f"modle: {json.dumps(SCRIPT)}").replace("epochs: 2", f"epochs: {json.dumps(SCRIPT)}")
        self.type_job(driver, faulty)
        driver.execute_script("document.getElementById('submit').click()")
        faults = "return [...document.querySelectorAll('#faults .fault')].map((f) => [Number(f.dataset.line), f.textContent])"
        shown = self.wait_for(driver, "the faults", f"const all = (() => {{ {faults} }})(); return all.length ? all : null")
        (self.folder / "faulty.yaml").write_text(faulty)
        said = subprocess.run([HOOKE, "submit", "faulty.yaml"], env=self.environment, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder).stderr
        expected = [[int(line), text] for line, text in re.findall(r"^faulty.yaml:(\d+): (.*)$", said, re.MULTILINE)]
        self.assertGreaterEqual(len(expected), 2, said)
        self.assertEqual(shown, expected)
        self.assertEqual(driver.title, "Submit a job - Hooke")
        self.assertEqual(driver.execute_script("return document.querySelectorAll('main img, main script').length"), 0)
        self.assertEqual(self.jobs(), before)

        self.type_job(driver, JOB.replace("two-sizes", "from-page"))
        driver.execute_script("document.getElementById('check').click()")
        spec = json.loads(self.wait_for(driver, "the defaults", "return document.getElementById('spec')?.textContent"))
        self.assertEqual((spec["train"]["batch_size"], spec["averaging"]["rule"], self.jobs()), (64, "ELASTIC", before))
        driver.execute_script("document.getElementById('submit').click()")
        job = self.wait_for(driver, "the job", "return location.hash.startsWith('#/jobs/from-page-') && document.querySelector('h1')?.textContent")
        self.assertEqual(self.jobs()[0], job)
        self.hooke("watch", job)
        listed = {one["job_id"]: one for one in json.loads(self.hooke("jobs", "--output", "json"))["jobs"]}
        self.assertEqual(listed[job]["state"], "succeeded")

        for text, fault in (("files: [train.py]\n", "which the web page cannot send"), ("", "this job comes from no folder"), ("directory: relative\n", "is a relative path")):
            driver.get("about:blank")
            driver.get(f"http://{self.address}/#/submit")
            self.type_job(driver, f"name: own\ncommand: [python3, train.py]\n{text}")
            driver.execute_script("document.getElementById('submit').click()")
            self.assertIn(fault, self.wait_for(driver, "the fault", "return document.querySelector('#faults .fault')?.textContent"))

    def test_pages_of_other_sites_do_nothing(self):
        before = self.jobs()
        job_file = JOB.replace("two-sizes", "forged")
        # The page of another site, of the same host even, that tries what a browser lets it.
        page = f"""<form method="post" enctype="text/plain" action="http://{self.address}/api/submit?submission=a"><input name="{html.escape(job_file)}"></form><script>
          const at = "http://{self.address}/api/", tries = [];
          const attempt = (what, path, options) => tries.push(fetch(at + path, options).then((r) => r.text()).then((text) => [what, text], (error) => [what, null]));
          attempt("read", "page");
          attempt("simple", "submit?submission=b", {{method: "POST", mode: "no-cors", body: {json.dumps(job_file)}}});
          attempt("header", "submit?submission=c", {{method: "POST", headers: {{"X-Hooke-Action": "1"}}, body: {json.dumps(job_file)}}});
          Promise.all(tries).then((all) => (window.tried = all));
        </script>"""

        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_):
                pass

        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=other.serve_forever).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        driver = self.open("#/")
        driver.get(f"http://127.0.0.1:{other.server_port}/")
        tried = dict(self.wait_for(driver, "the tries", "return window.tried"))
        self.assertEqual(tried, {"read": None, "simple": None, "header": None})
        driver.execute_script("document.forms[0].submit()")
        self.wait_for(driver, "the form's answer", "return document.body.innerText.includes('this is done with POST and the header')")
        self.assertEqual(self.jobs(), before)

    def test_a_held_group_shows_its_last_lines_and_is_resumed(self):
        mended = str(self.folder / "mended")
        program = f"import os, sys; print('tried', flush=True); print({SCRIPT!r}, flush=True); os.path.exists({mended!r}) or os.kill(os.getpid(), 9)"
        (self.folder / "held.yaml").write_text(f"name: held\ncommand: [python3, -c, {json.dumps(program)}]\n")
        job = re.match(r"submitted (\S+);", self.hooke("submit", "held.yaml")).group(1)
        driver = self.open(f"#/jobs/{job}")
        lines = self.wait_for(driver, "the held group", "return document.querySelector('tr.held pre.last')?.textContent")
        self.assertIn(f"rank 0: tried\ngroup 0 rank 0: {SCRIPT}", lines)
        self.assertEqual(driver.execute_script("return [document.querySelectorAll('main img').length, document.querySelector('tr.held .badge').className]"), [0, "badge held"])
        action = {"X-Hooke-Action": json.load(self.get("/api/page"))["action_key"]}
        for headers, method in ((action, "GET"), ({}, "POST")):
            self.assertEqual(self.get(f"/api/resume/{job}", headers, method).status, 405)
        self.assertEqual(self.get(f"/api/resume/{job}", {**action, "Origin": "http://evil.example"}, "POST").status, 403)
        pathlib.Path(mended).write_text("")
        driver.execute_script("document.getElementById('resume').click()")
        self.wait_for(driver, "the end", "return document.querySelector('dl.facts .badge')?.textContent === 'succeeded'")
        self.assertTrue(driver.execute_script("return document.getElementById('resume').hidden"))

    def test_scales_a_job(self):
        job = self.submit(endless("scaled").replace("  - {ranks: 2}\n  - {batch_size: 32}", "  {count: 1, ranks: 1}"))
        self.addCleanup(self.hooke, "cancel", job)
        driver = self.open(f"#/jobs/{job}")
        running = "return [...document.querySelectorAll('.scroll .badge')].filter((b) => b.textContent === 'running').length"
        self.wait_for(driver, "a group that trains", f"return (() => {{ {running} }})() === 1")
        self.assertEqual(driver.execute_script("return document.getElementById('scale-groups').value"), "1")
        driver.execute_script("window.confirm = () => true; document.getElementById('scale-groups').value = '0'; document.getElementById('scale').click()")
        self.assertIn("not scaled: ", self.wait_for(driver, "the refusal", "return document.querySelector('.actions > .bad').textContent"))
        driver.execute_script("document.getElementById('scale-groups').value = '2'; document.getElementById('scale').click()")
        self.wait_for(driver, "two groups that train", f"return (() => {{ {running} }})() === 2")
        # The page has the distance and the staleness that groups report, with the values of the history.
        self.wait_for(driver, "the distance and the staleness", "return ['distance', 'staleness'].every((name) => document.querySelectorAll(`#chart-${name} tbody tr`).length === 2)")
        history = list(csv.DictReader(io.StringIO(self.hooke("metrics", job, "--csv"))))
        distances = [float(row["center_distance"]) for row in history if row["center_distance"]]
        self.assertTrue(distances and all(0 < distance < 1 for distance in distances), distances)
        staleness = [float(row["staleness"]) for row in history if row["staleness"]]
        self.assertTrue(staleness and all(0 <= changes < 50 for changes in staleness), staleness)
        self.assertTrue(all(row["center_distance"] == row["staleness"] == "" for row in history if row["series"] == "center"))

    def test_compares_jobs(self):
        self.hooke("submit", "job.yaml", "--watch")
        other = json.loads(self.hooke("jobs", "--output", "json"))["jobs"][0]["job_id"]
        dom = self.dom(f"#/compare/two-sizes-1,{other}")
        section = re.search(r'<section class="chart" id="chart-loss">.*?</section>', dom, re.DOTALL).group(0)
        self.assertEqual(re.findall(r'data-series="([^"]+)"', section), [f"{job} group {n}" for job in ("two-sizes-1", other) for n in range(2)])

    def test_cancels_a_job(self):
        job = self.submit(endless("long"))
        self.assertIn("Cancel the job", self.dom(f"#/jobs/{job}"))
        action = {"X-Hooke-Action": json.load(self.get("/api/page"))["action_key"]}
        self.assertEqual(self.get(f"/api/cancel/{job}", action).status, 405)
        self.assertEqual(self.get(f"/api/cancel/{job}", method="POST").status, 405)
        self.assertNotEqual(json.loads(self.hooke("jobs", job, "--output", "json"))["state"], "cancelled")
        for forged in ({"X-Hooke-Action": "1"}, {**action, "Origin": "http://evil.example"}, {**action, "Sec-Fetch-Site": "same-site"}):
            self.assertEqual(self.get(f"/api/cancel/{job}", forged, "POST").status, 403)
        self.assertNotEqual(json.loads(self.hooke("jobs", job, "--output", "json"))["state"], "cancelled")
        answer = self.get(f"/api/cancel/{job}", action, "POST")
        self.assertEqual((answer.status, json.load(answer)["state"]), (200, "JOB_STATE_CANCELLED"))
        self.assertEqual(json.loads(self.hooke("jobs", job, "--output", "json"))["state"], "cancelled")
        self.assertRegex(self.dom(f"#/jobs/{job}"), r"<button[^>]* hidden=[^>]*>Cancel the job")

    def test_nodes(self):
        rows = [row for row in self.rows(self.dom("#/nodes")) if row]
        self.assertEqual(rows[0][:4], ["worker-1", "alive", "local", "0/3"])
        self.assertEqual(sorted(row[0] for row in rows[1:3]), sorted(node["name"] for node in json.loads(self.hooke("nodes", "--output", "json"))["nodes"] if node["kind"] == "server"))
        self.assertEqual(rows[3], ["No group has run on several workers."])

    def test_servers_say_how_fast_they_answer(self):
        driver = self.open("#/nodes")
        table = "return [...document.querySelectorAll('[aria-label=Servers] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        columns = {name: index for index, name in enumerate(self.wait_for(driver, "the table", "return [...document.querySelectorAll('[aria-label=Servers] th')].map((cell) => cell.textContent)"))}
        answers = ["messages/s", "MB/s in", "MB/s out", "p50", "p99"]
        cells = lambda: [[row[columns[name]] for name in answers] for row in driver.execute_script(table) if len(row) == len(columns)]
        polling.wait_for("idle servers", lambda: cells() == [["-"] * 5] * 2, SECONDS, lambda: str(cells()))
        self.assertNotIn(" answers ", self.hooke("nodes"))
        job = self.submit(endless("busy"))
        self.addCleanup(self.hooke, "cancel", job)
        polling.wait_for("servers that answer", lambda: all("-" not in row for row in cells()), SECONDS, lambda: str(cells()))
        for row in cells():
            self.assertTrue(all(float(number) > 0 for number in row[:3]), row)
            p50, p99 = (float(re.fullmatch(r"(?:< )?([\d.]+) ms", text).group(1)) for text in row[3:])
            self.assertTrue(0 < p50 <= p99 < 60000, row)
        print("servers of a running job:", cells())
        runs = "return [...document.querySelectorAll('[aria-label=Workers] tbody td:nth-child(6)')].map((cell) => cell.innerText)"
        expected = [f"{job}: groups 0–1 (3 ranks)"]
        polling.wait_for("what the worker runs", lambda: driver.execute_script(runs) == expected, SECONDS, lambda: str(driver.execute_script(runs)))
        said = self.hooke("nodes")
        self.assertEqual(len(re.findall(r"^server \S+ answers [\d.]+ messages/s, [\d.]+ MB/s in, [\d.]+ MB/s out, p50 <?[\d.]+ ms, p99 <?[\d.]+ ms$", said, re.MULTILINE)), 2, said)
        servers = [node for node in json.loads(self.hooke("nodes", "--output", "json"))["nodes"] if node["kind"] == "server"]
        self.assertTrue(all(0 < node["exchanges"]["median_ms"] <= node["exchanges"]["p99_ms"] for node in servers), servers)
        self.assertRegex(self.hooke("top", "--count", "1"), r"(?m)^SERVER .* P50 .* P99 ")
        # No worker here has a GPU, so there is no column of them.
        self.assertEqual(driver.execute_script("return [...document.querySelectorAll('[aria-label=Workers] th')].filter((cell) => cell.textContent === 'GPUs' && cell.offsetParent !== null).length"), 0)

    def test_workers_with_gpus_show_them(self):
        """With the coordinator's answer changed on its way: this machine has none."""
        driver = self.open("#/nodes")
        self.wait_for(driver, "the workers", "return document.querySelector('[aria-label=Workers] tbody td.number')")
        driver.execute_script("const real = get; get = async (path) => { const answer = await real(path); for (const node of answer.nodes ?? []) if (node.kind === 'WORKER') node.gpus = 8; return answer; }")
        shown = "return [...document.querySelectorAll('[aria-label=Workers] :is(th, td):nth-child(5)')].filter((cell) => cell.offsetParent !== null).map((cell) => cell.textContent)"
        polling.wait_for("the column", lambda: driver.execute_script(shown) == ["GPUs", "8"], SECONDS, lambda: str(driver.execute_script(shown)))
        # In a narrow window its texts stay wide enough to be read. The table scrolls.
        driver.set_window_size(600, 1000)
        self.assertGreaterEqual(min(driver.execute_script("return [...document.querySelectorAll('[aria-label=Workers] td.text')].map((cell) => cell.offsetWidth)")), 130)

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


class ReadOnly(unittest.TestCase):
    """A page that other machines reach, of a coordinator that they do not reach, only shows."""

    def start(self, folder):
        ready = pathlib.Path(folder, "ready")
        command = [HOOKE.parent / "hooke-server", "--listen=127.0.0.1:0", "--dashboard=0.0.0.0:0", f"--state-dir={folder}/state", f"--ready-file={ready}"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, SECONDS)
        self.addCleanup(server.terminate)
        polling.wait_for("a server", lambda: ready.exists() and "dashboard" in ready.read_text(), SECONDS, lambda: "")
        coordinator, dashboard = ready.read_text().split("\n")[:2]
        return coordinator, f"127.0.0.1:{dashboard.rsplit(':', 1)[1]}"

    @unittest.skipIf(browser.MISSING, browser.MISSING)
    def test_has_no_buttons_that_change_something(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-dashboard-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        coordinator, address = self.start(folder.name)
        pathlib.Path(folder.name, "waits.yaml").write_text(JOB)
        environment = dict(os.environ, HOME=folder.name, HOOKE_COORDINATOR=coordinator)
        said = subprocess.run([HOOKE, "submit", "waits.yaml"], env=environment, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=folder.name).stdout
        job = re.match(r"submitted (\S+);", said).group(1)
        driver = browser.start(folder.name)
        self.addCleanup(driver.quit)
        visible = "return [...document.querySelectorAll('main button, main input[type=number]')].filter((b) => b.offsetParent !== null).map((b) => b.textContent)"
        body = lambda: driver.execute_script("return document.body.innerText")
        for page, buttons in ((f"#/jobs/{job}", ["Points as CSV", "Whole log", "Draw over time", "Trace (ui.perfetto.dev)"]), ("#/submit", ["Check"])):
            driver.get("about:blank")
            driver.get(f"http://{address}/{page}")
            polling.wait_for("the reason", lambda: "this page only shows" in body(), SECONDS, body)
            self.assertEqual(driver.execute_script(visible), buttons, page)


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
        address = f"127.0.0.1:{port}"
        if not browser.MISSING:
            self.asks_for_the_token(address, folder.name)
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


    def asks_for_the_token(self, address, folder):
        """The page asks, and keeps the token for its tab only."""
        driver = browser.start(folder)
        try:
            body = "return document.body.innerText"
            driver.get(f"http://{address}/#/")
            for token, then in (("0123456789abcdeg", "has refused that token"), ("0123456789abcdef", "There are no jobs yet")):
                polling.wait_for("the question", lambda: driver.execute_script("return document.getElementById('token')"), SECONDS, lambda: driver.execute_script(body))
                driver.execute_script("document.getElementById('token').value = arguments[0]; document.querySelector('main button').click()", token)
                polling.wait_for(then, lambda: then in driver.execute_script(body), SECONDS, lambda: driver.execute_script(body))
            self.assertEqual(driver.execute_script("return [localStorage.length, document.cookie]"), [0, ""])
            driver.switch_to.new_window("tab")
            driver.get(f"http://{address}/#/")
            polling.wait_for("the question", lambda: "asks for its token" in driver.execute_script(body), SECONDS, lambda: driver.execute_script(body))
        finally:
            driver.quit()


def take_pictures(folder):
    """Writes the pictures of docs/see.md."""
    driver = None
    try:
        Dashboard.setUpClass()
        driver = browser.start(Dashboard.folder)
        driver.get(f"http://{Dashboard.address}/#/")
        faulty = JOB.replace("model: small-mlp", "modle: mlp").replace("epochs: 2", "epochs: many")
        for scheme in ("light", "dark"):
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for name, page, ready, height in (
                ("jobs", "#/", "document.querySelectorAll('tbody tr').length >= 2", 500),
                ("job", "#/jobs/two-sizes-1", "document.querySelector('#profile tbody tr')?.checkVisibility() && !document.getElementById('chart-time').hidden", "profile"),
                ("compare", "#/compare/two-sizes-1,two-sizes-2", "document.querySelectorAll('#chart-loss tbody tr').length === 4 && document.querySelectorAll('#chart-accuracy tbody tr').length === 2", "page"),
                ("submit", "#/submit", "document.getElementById('job')", 1130),
                ("nodes", "#/nodes", "[...document.querySelectorAll('[aria-label=Servers] tbody tr')].every((row) => row.cells[2]?.textContent.startsWith('1') && row.cells[10].textContent !== '-')", 760),
            ):
                # Colors of charts are those of the moment when their page was made.
                driver.get("about:blank")
                driver.set_window_size(1280, height if isinstance(height, int) else 1000)
                driver.get(f"http://{Dashboard.address}/{page}")
                wait = lambda script: polling.wait_for(page, lambda: driver.execute_script(f"return {script}"), SECONDS, lambda: "")
                wait(ready)
                if name == "submit":
                    driver.execute_script("document.getElementById('job').value = arguments[0]; document.getElementById('check').click()", faulty)
                    wait("document.getElementById('faults')")
                if isinstance(height, str):
                    # So high that this element is the last one.
                    bottom = driver.execute_script("return Math.ceil(document.getElementById(arguments[0]).getBoundingClientRect().bottom + 20)", height)
                    outer = driver.execute_script("return outerHeight - innerHeight")
                    driver.set_window_size(1280, bottom + outer)
                    wait(f"innerHeight === {bottom}")
                driver.save_screenshot(str(folder.resolve() / f"dashboard-{name}-{scheme}.png"))
    finally:
        if driver:
            driver.quit()
        Dashboard.doClassCleanups()


if __name__ == "__main__":
    if PICTURES is not None:
        take_pictures(PICTURES)
    else:
        skips.main()

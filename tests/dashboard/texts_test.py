#!/usr/bin/python3
"""Strings of users, ranks, workers and servers stay texts on every page, whatever markup is in them.

First with what the real programs take: a job whose command, folder, output and fault are markup. Then with each string of
each answer of the coordinator, also of those that the programs would refuse: the answers are changed on their way.
"""

import json
import pathlib
import subprocess
import sys
from urllib.parse import quote

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402
import skips  # noqa: E402
from cluster import HOOKE, JOB, SCRIPT, SECONDS  # noqa: E402

# Runs before the page's own scripts. Notes what the page must never do.
WATCH = """
window.broken = []; // Violations of the policy.
document.addEventListener("securitypolicyviolation", (event) => broken.push(`${event.violatedDirective}: ${event.blockedURI}`));
window.made = new Set(); // Names of all elements that ever were on the page.
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      for (const element of [node, ...node.querySelectorAll("*")]) {
        made.add(element.localName);
        if ([...element.attributes].some(({ name }) => name.startsWith("on"))) made.add(`${element.localName} with a handler`);
      }
    }
  }
}).observe(document, { childList: true, subtree: true });
"""
# Runs besides WATCH. Appends SCRIPT to each string of each answer, and adds the strings that this cluster happens not to have. KEPT are the coordinator's words
# that the page compares with words of its own.
CHANGE = """
const SCRIPT = %s;
const KEPT = new Set(["kind", "state", "task", "drain", "action_key", "ticket"]);
window.marked = new Map(); // Where a string is in an answer -> the strings that were there.
const mark = (value, at) => {
  if (typeof value === "string") {
    if (/^-?\\d*$/.test(value)) return value; // Nothing, or a number of 64 bits.
    if (!marked.has(at)) marked.set(at, new Set());
    marked.get(at).add(value + SCRIPT);
    return value + SCRIPT;
  }
  if (Array.isArray(value)) return value.map((one) => mark(one, at));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, KEPT.has(key) ? one : mark(one, `${at}.${key}`)]));
};
const more = {
  jobs(answer) {
    const { job } = answer;
    for (const row of answer.rows ?? [answer.row]) row.reason ||= "why";
    if (!job) return;
    answer.round = "about 3 rounds";
    job.setback = { unix_ms: "1", text: "went back" };
    for (const group of job.groups) Object.assign(group, { state: "GROUP_STATE_HELD", last_lines: ["printed"], slow: "slow", silences: [{ what: "a peer" }] });
  },
  page(answer) {
    answer.read_only = "only shows";
  },
  events(answer) {
    answer.events.push({ unix_ms: 1, kind: "death", group: 0, text: "group 0 at step 3 died" });
  },
  profile(answer) {
    if (!answer.all) return;
    for (const row of answer.all.collectives) row.algorithms = ["ring"];
    answer.servers = [{ address: "server", cores: 1 }];
  },
  nodes(answer) {
    for (const node of answer.nodes) Object.assign(node, node.kind === "WORKER" ? { avoided: "avoided", groups: [{ job_id: "some-1", ranks: 2 }] } : { problem: "problem" });
    answer.links = [{ from: "one", to: "two", round_trip_seconds: 1, bytes_per_second: 1, measured_unix_ms: "1" }];
  },
};
const really = window.fetch;
window.fetch = async (path, options) => {
  const answer = await really(String(path).replaceAll(encodeURIComponent(SCRIPT), ""), options);
  const name = /api\\/(\\w+)/.exec(path)[1];
  if (!answer.headers.get("Content-Type").startsWith("application/json") || name === "trace") return answer;
  const json = await answer.json();
  if (answer.ok) more[name]?.(json);
  return new Response(JSON.stringify(mark(json, name)), { status: answer.status, headers: { "Content-Type": "application/json" } });
};
""" % json.dumps(SCRIPT).replace("</", "<\\/")
# Returns which of the changed strings the page shows, in a text or in what a screen reader says.
SHOWN = """
const texts = [document.title, ...[...document.querySelectorAll("*")].flatMap((element) => [
  ...[...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
  element.value,
  element.getAttribute("aria-label"),
])].filter((text) => String(text).includes("<script>")).join("\\n");
return [...marked].filter(([, strings]) => [...strings].some((text) => texts.includes(text))).map(([at]) => at).sort();
"""


class Texts(cluster.Cluster):
    def watch(self, page="", script=WATCH):
        """Opens a page in a browser that watches it from its beginning."""
        driver = self.open("none.html")
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        driver.get(f"http://{self.address}/{page}")
        return driver

    def go(self, driver, page):
        driver.get("about:blank")
        driver.get(f"http://{self.address}/{page}")

    def looks_twice(self, driver):
        """Waits until the page has asked for its data twice more, so that it has also drawn its differences."""
        asked = "return shown && !shown.busy ? performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/')).length : 0"
        for _ in range(2):
            before = self.wait_for(driver, "the answers", asked)
            self.wait_for(driver, "another look at the data", f"const now = (() => {{ {asked} }})(); return now > {before}")

    def stays_text(self, driver, title):
        self.assertEqual(driver.title, title)
        self.assertEqual(driver.execute_script("return broken"), [])
        made = driver.execute_script("return [...made]")
        self.assertIn("main", made)
        self.assertEqual([name for name in made if " with " in name or name in ("img", "iframe", "object", "embed", "form", "base")], [])
        own = driver.execute_script("return [...document.scripts].map((script) => [script.getAttribute('src'), script.text])")
        self.assertTrue(all(source.endswith(".js") and text == "" for source, text in own), own)
        self.assertEqual(driver.execute_script("return [...document.links].map((link) => link.getAttribute('href')).filter((href) => !href.startsWith('#/'))"), [])
        self.assertIn(SCRIPT, driver.execute_script("return document.body.innerText + [...document.querySelectorAll('textarea')].map((text) => text.value)"), "it is shown, letter by letter")

    def test_the_watch_itself(self):
        """Markup that would become elements is seen, and its handler is refused by the policy."""
        driver = self.watch("#/")
        self.wait_for(driver, "the page", "return document.querySelector('h1')")
        driver.execute_script("page.insertAdjacentHTML('beforeend', arguments[0])", SCRIPT)
        self.wait_for(driver, "the policy's refusal", "return broken.some((one) => one.startsWith('script-src-attr: inline'))")
        self.assertLessEqual({"img", "script", "img with a handler"}, set(driver.execute_script("return [...made]")))
        self.assertEqual(driver.title, "Jobs - Hooke")

    def test_of_real_programs(self):
        folder = self.folder / SCRIPT
        folder.mkdir(parents=True)
        program = f"import os, sys; print({SCRIPT!r}, flush=True); print('stderr', {SCRIPT!r}, file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
        job = self.submit(f"name: markup\ncommand: [python3, -c, {json.dumps(program)}, {json.dumps(SCRIPT)}]\ndirectory: {json.dumps(str(folder))}\n")
        self.addCleanup(self.hooke, "cancel", job)
        driver = self.watch(f"#/jobs/{job}")
        # The job is held, because its program is killed again and again. Its row has the last lines.
        for what, text in (("tr.held pre.last", SCRIPT), ("tr.held pre.last", f"stderr {SCRIPT}"), ("#log", f"rank 0: {SCRIPT}"), ("#log", f"rank 0: stderr {SCRIPT}")):
            self.wait_for(driver, f"{what} with {text}", f"return document.querySelector('{what}')?.textContent.includes({json.dumps(text)})")
        self.looks_twice(driver)
        self.stays_text(driver, f"{job} - Hooke")
        self.go(driver, "#/")
        self.wait_for(driver, "the jobs", "return document.querySelectorAll('tbody tr').length >= 2")
        driver.execute_script("const f = document.getElementById('filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", SCRIPT)
        self.assertEqual(driver.execute_script("return document.querySelectorAll('tbody tr').length"), 0)
        # A job that there is not, in the address.
        self.go(driver, f"#/jobs/{quote(SCRIPT, safe='')}")
        self.wait_for(driver, "the error", "return document.getElementById('state').textContent.startsWith('no job ')")
        self.stays_text(driver, f"{SCRIPT} - Hooke")
        self.go(driver, f"#/compare/two-sizes-1,{quote(SCRIPT, safe='')}")
        self.wait_for(driver, "the error", "return document.getElementById('state').textContent.startsWith('no job ')")
        self.stays_text(driver, "Jobs compared - Hooke")

    def test_of_a_job_file(self):
        """Its name, its lines and their faults; and the job that is shown with its defaults."""
        driver = self.watch("#/submit")
        self.wait_for(driver, "the page", "return document.getElementById('job')")
        file = self.folder / SCRIPT.replace("/", "")
        faulty = JOB.replace("model: small-mlp", f"{json.dumps(SCRIPT)}: 1\nmodel: {json.dumps(SCRIPT)}").replace("name: two-sizes", f"name: {json.dumps(SCRIPT)}\nowner: {json.dumps(SCRIPT)}")
        file.write_text(faulty)
        driver.find_element("id", "file").send_keys(str(file))
        self.wait_for(driver, "the file's text", "return document.getElementById('job').value.includes('<script>')")
        driver.execute_script("document.getElementById('check').click()")
        self.wait_for(driver, "the faults", "return document.querySelectorAll('#faults .fault').length >= 3")
        self.assertIn(SCRIPT, driver.execute_script("return [...document.querySelectorAll('#faults code')].map((line) => line.textContent).join('\\n')"))
        self.stays_text(driver, "Submit a job - Hooke")
        driver.execute_script("const t = document.getElementById('job'); t.value = arguments[0]; t.dispatchEvent(new Event('input')); document.getElementById('check').click()", f"name: markup\ncommand: [{json.dumps(SCRIPT)}]\ndirectory: {json.dumps('/' + SCRIPT)}\n")
        spec = json.loads(self.wait_for(driver, "the job", "return document.getElementById('spec')?.textContent"))
        self.assertEqual((spec["command"]["arguments"], spec["command"]["directory"]), ([SCRIPT], "/" + SCRIPT))
        self.stays_text(driver, "Submit a job - Hooke")

    def test_what_the_programs_refuse(self):
        """Names have no markup: of jobs, owners, sites and workers. The next test has them on the pages all the same."""
        for key in ("name", "owner", "model", "groups: {site"):
            (self.folder / "refused.yaml").write_text(JOB.replace("name: two-sizes\n", "" if key == "name" else "name: a\n").replace("model: small-mlp\n", "" if key == "model" else "model: small-mlp\n").split("groups:")[0] + f"{key}: {json.dumps(SCRIPT)}{'}' if '{' in key else ''}\n")
            said = subprocess.run([HOOKE, "submit", "refused.yaml"], env=self.environment, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder)
            self.assertNotEqual(said.returncode, 0)
            self.assertRegex(said.stderr, r"refused\.yaml:\d+: .* is not (a name|an owner's name|known|a site's name)")
        for flag in ("--name", "--site"):
            said = subprocess.run([HOOKE.parent / "hooke-worker", f"{flag}={SCRIPT}", f"--state-dir={self.folder}/refused"], capture_output=True, text=True, timeout=SECONDS)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(f"{flag} must be 1 to 63 letters, digits, '.', '_' or '-'", said.stderr)

    def test_of_any_answer(self):
        driver = self.watch("#/", WATCH + CHANGE)
        rows = ["id", "owner", "reason", "what"]
        job = quote("two-sizes-1" + SCRIPT, safe="")
        for page, title, ready, expected in (
            ("#/", "Jobs - Hooke", "document.querySelector('tbody tr')", [f"jobs.rows.{name}" for name in rows]),
            (
                f"#/jobs/{job}",
                f"two-sizes-1{SCRIPT} - Hooke",
                "document.querySelector('#log')?.textContent && document.querySelector('#profile tbody tr')",
                ["events.events.text", "jobs.job.groups.last_lines", "jobs.job.groups.silences.what", "jobs.job.groups.site", "jobs.job.groups.slow", "jobs.job.groups.worker"]
                + ["jobs.job.servers", "jobs.job.setback.text", "jobs.round", "jobs.row.reason", "jobs.row.what", "log.text", "page.coordinator", "page.read_only"]
                + ["profile.all.collectives.algorithms", "profile.all.collectives.operation", "profile.servers.address"],
            ),
            (f"#/compare/{job},{job}2", "Jobs compared - Hooke", "document.getElementById('state').textContent.startsWith('no job ')", ["history.error"]),
            ("#/nodes", "Nodes - Hooke", "document.querySelectorAll('tbody tr').length >= 4", ["nodes.links.from", "nodes.links.to", *(f"nodes.nodes.{name}" for name in ("avoided", "groups.job_id", "mpi", "name", "problem", "site", "version"))]),
            ("#/submit", "Submit a job - Hooke", "document.querySelector('main p.bad')?.textContent.startsWith('only shows')", ["page.read_only"]),
        ):
            with self.subTest(page=page.split("/")[1]):
                self.go(driver, page)
                self.wait_for(driver, page, f"return {ready}")
                self.looks_twice(driver)
                self.stays_text(driver, title)
                shown = driver.execute_script(SHOWN)
                print(f"{page.split('/')[1] or 'jobs'}: markup shown of {', '.join(shown)}")
                self.assertLessEqual(set(expected), set(shown))
        # The answer to a file, and what a download says.
        driver.execute_script("document.getElementById('check').click()")
        self.wait_for(driver, "the faults", "return document.querySelector('#faults .bad')?.textContent.includes('<script>')")
        self.stays_text(driver, "Submit a job - Hooke")
        driver.execute_script("const t = document.getElementById('job'); t.value = arguments[0]; document.getElementById('check').click()", JOB)
        self.wait_for(driver, "the job", "return document.getElementById('spec')?.textContent.includes('<script>')")
        self.stays_text(driver, "Submit a job - Hooke")
        self.go(driver, f"#/jobs/{job}")
        self.wait_for(driver, "the page", "return document.getElementById('model')")
        driver.execute_script("document.getElementById('model').click()")
        self.wait_for(driver, "the note", "return document.getElementById('model-said').textContent.includes('<script>')")
        self.assertIn("export.file", driver.execute_script(SHOWN))
        self.stays_text(driver, f"two-sizes-1{SCRIPT} - Hooke")



if __name__ == "__main__":
    skips.main()

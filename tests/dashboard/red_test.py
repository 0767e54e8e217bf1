#!/usr/bin/python3
"""The web page says soon that a group or its worker is dead. It runs alone, because other tests would take the seconds in which that has to be told."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser  # noqa: E402
import cluster  # noqa: E402
import polling  # noqa: E402
import skips  # noqa: E402
from cluster import HOOKE, SECONDS, endless  # noqa: E402


class KilledGroup(cluster.Cluster):
    def test_a_killed_group_is_red_with_the_reason_within_10_seconds(self):
        job = self.submit(endless("killed"))
        self.addCleanup(self.hooke, "cancel", job)
        driver = self.open(f"#/jobs/{job}")
        self.wait_for(driver, "a group that trains", "return [...document.querySelectorAll('.badge')].filter((b) => b.textContent === 'running').length >= 2")
        pid = int(re.search(r"group 1 rank 0 is there \(pid (\d+)", self.hooke("logs", job)).group(1))
        os.kill(pid, signal.SIGKILL)
        begun = time.monotonic()
        red = "return [...document.querySelectorAll('tr.dead')].filter((row) => row.cells[0].textContent === 'group 1').map((row) => row.querySelector('.bad')?.textContent)[0]"
        reason = self.wait_for(driver, "the red group", red, 20)
        took = time.monotonic() - begun
        print(f"killed group red after {took:.1f} s: {reason}")
        self.assertLess(took, 10)
        self.assertRegex(reason, r"failed \(.*(signal 9|SIGKILL|killed)")
        color = driver.execute_script("return getComputedStyle(document.querySelector('tr.dead .bad')).color")
        self.assertEqual(color, "rgb(207, 34, 46)")
        self.assertTrue(self.wait_for(driver, "the death on the strip", "return document.querySelectorAll('.strip .mark.death').length"))
        self.assertIn("starts on", driver.execute_script("return document.getElementById('events').innerText"))


class LostWorker(unittest.TestCase):
    """A worker's daemon is killed, and its group with it: the page says so before the lease of 10 s is over, and then that the group is lost."""

    def start(self, program, *flags):
        ready = self.folder / f"{program}-{len(list(self.folder.iterdir()))}.ready"
        command = [HOOKE.parent / program, f"--ready-file={ready}", f"--state-dir={ready}.state", *flags]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, SECONDS)
        self.addCleanup(process.terminate)
        polling.wait_for(program, lambda: ready.exists() and ready.read_text(), SECONDS, lambda: "")
        return process, ready.read_text().splitlines()

    @unittest.skipIf(browser.MISSING, browser.MISSING)
    def test_its_group_is_red_within_10_seconds(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-dashboard-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # A worker that is killed and does not start again leaves the shared memory of its groups.
        self.addCleanup(lambda: [shutil.rmtree(os.path.realpath(link), ignore_errors=True) for link in self.folder.glob("*.state/groups/*/memory")])
        _, (coordinator, dashboard) = self.start("hooke-server", "--listen=127.0.0.1:0", "--dashboard=127.0.0.1:0")
        workers = [self.start("hooke-worker", f"--coordinator={coordinator}", f"--name=w{n}", "--slots=1")[0] for n in (1, 2)]
        environment = dict(os.environ, HOME=folder.name, HOOKE_COORDINATOR=coordinator)
        job_file = self.folder / "lost.yaml"
        job_file.write_text(endless("lost").replace("  - {ranks: 2}\n  - {batch_size: 32}", "  {count: 2, ranks: 1}"))
        said = subprocess.run([HOOKE, "submit", job_file], env=environment, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        job = re.match(r"submitted (\S+);", said).group(1)
        driver = browser.start(folder.name)
        self.addCleanup(driver.quit)
        driver.get(f"http://{dashboard.removeprefix('dashboard ')}/#/jobs/{job}")
        rows = "return [...document.querySelectorAll('[aria-label=Groups] tbody tr')].map((row) => [row.cells[2].textContent, row.cells[1].textContent, row.className, row.querySelector('.bad')?.textContent])"

        def wait_for(what, condition, seconds=SECONDS):
            found = []
            polling.wait_for(what, lambda: found.append(condition({row[0]: row[1:] for row in driver.execute_script(rows)})) or found[-1], seconds, lambda: driver.execute_script("return document.body.innerText"))
            return found[-1]

        wait_for("two groups that train", lambda groups: [state for state, *_ in groups.values()] == ["running"] * 2)
        workers[1].kill()
        begun = time.monotonic()
        reason = wait_for("the red group", lambda groups: groups.get("w2 (default)", [None] * 3)[1] == "dead" and groups["w2 (default)"][2], 20)
        took = time.monotonic() - begun
        print(f"group of a killed worker red after {took:.1f} s: {reason}")
        self.assertLess(took, 10)
        self.assertRegex(reason, r"worker w2 has not answered for \d+ s")
        lost = wait_for("the lost group", lambda groups: next((bad for _, kind, bad in groups.values() if kind == "dead" and bad and "lost (" in bad), None), 30)
        print(f"after {time.monotonic() - begun:.1f} s: {lost}")
        self.assertIn("w2", lost)


if __name__ == "__main__":
    skips.main()

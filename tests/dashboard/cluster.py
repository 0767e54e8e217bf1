"""A cluster on this machine with a job that has ended, for tests that look at its web page in a browser."""

import decimal
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "deploy"), str(TREE / "tests/dashboard")]
import browser  # noqa: E402
import polling  # noqa: E402

HOOKE = pathlib.Path("bin/hooke").resolve()
SECONDS = 200
DATA = "/usr/share/datasets/fashion-mnist"
JOB = f"""name: two-sizes
model: small-mlp
data: {{train: {DATA}/train, test: {DATA}/t10k}}
train: {{epochs: 2, optimizer: {{name: sgd, learning_rate: 0.1, momentum: 0.9}}}}
groups:
  - {{ranks: 2}}
  - {{batch_size: 32}}
averaging: {{rule: elastic, interval: 16}}
owner: lovelace
"""
# Would change the page if it ran, wherever it came from.
SCRIPT = "</script><script>document.title='run'</script><img src=x onerror=document.title='run'>"


def endless(name):
    """Returns the text of a job file like JOB, for a job that does not end by itself."""
    return JOB.replace("epochs: 2", "epochs: 100000").replace("two-sizes", name)


def fixed(value, digits):
    """Returns a number's text as the page's toFixed does. Python's own formats round halves to even digits."""
    return str(decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP))


@unittest.skipIf(browser.MISSING, browser.MISSING)
class Cluster(unittest.TestCase):
    """`hooke up` with one worker of three slots. The job two-sizes-1 has succeeded."""

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

    @classmethod
    def hooke(cls, *arguments, fails=False):
        result = subprocess.run([HOOKE, *arguments], env=cls.environment, capture_output=True, text=True, timeout=SECONDS, cwd=cls.folder)
        assert (result.returncode != 0) == fails, result
        return result.stdout

    @classmethod
    def submit(cls, text):
        """Submits a job file with this text, and returns the job's id."""
        (cls.folder / "submitted.yaml").write_text(text)
        return re.match(r"submitted (\S+);", cls.hooke("submit", "submitted.yaml")).group(1)

    def open(self, page):
        """Opens a page in a browser that this test drives."""
        driver = browser.start(tempfile.mkdtemp(dir=self.folder))
        self.addCleanup(driver.quit)
        driver.get(f"http://{self.address}/{page}")
        return driver

    def wait_for(self, driver, what, script, seconds=SECONDS):
        """Waits until the script returns something, and returns it."""
        found = []
        polling.wait_for(what, lambda: found.append(driver.execute_script(script)) or found[-1], seconds, lambda: driver.execute_script("return document.body.innerText"))
        return found[-1]

    def jobs(self):
        return [job["job_id"] for job in json.loads(self.hooke("jobs", "--output", "json"))["jobs"]]

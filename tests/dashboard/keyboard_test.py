#!/usr/bin/python3
"""The web page without a mouse and without eyes: the keyboard reaches and works all of it, and a screen reader has a name for each part."""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser  # noqa: E402
import cluster  # noqa: E402
import polling  # noqa: E402
import skips  # noqa: E402
from cluster import SECONDS, endless, fixed  # noqa: E402

if not browser.MISSING:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

STOPS_MAX = 120
# Describes an element by its tag and what names it. So the test finds an element again after the page has redrawn it.
TELL = """
const tell = (element) => [element.localName, element.id, element.getAttribute("aria-label"), element.dataset.key, element.localName === "textarea" ? "" : element.textContent.slice(0, 40)].filter((part) => part).join("|");
"""
# All that can be reached, in the order of the document.
REACHABLE = (
    TELL
    + """
return [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((element) => !element.disabled && element.checkVisibility()).map(tell);
"""
)
# Returns which element has the focus, and whether the focus can be seen; null if no element has it.
FOCUSED = (
    TELL
    + """
const element = document.activeElement;
if (element === document.body) return null;
const style = getComputedStyle(element);
const box = element.getBoundingClientRect();
const seen = element.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 && box.bottom > 0 && box.top < innerHeight;
return [tell(element), seen];
"""
)
# Roles of Chromium's accessibility tree whose elements must have a name.
NAMED = {"button", "link", "textbox", "searchbox", "checkbox", "combobox", "spinbutton", "table", "image", "img", "progressindicator", "DisclosureTriangle", "region", "navigation", "columnheader", "option", "RootWebArea"}


class Keyboard(cluster.Cluster):
    def press(self, driver, *keys):
        ActionChains(driver).send_keys(*keys).perform()

    def go(self, driver, page, ready):
        driver.get("about:blank")
        driver.get(f"http://{self.address}/{page}")
        self.wait_for(driver, page, f"return {ready}")

    def tab_to(self, driver, words):
        """Presses Tab until something that is told with these words has the focus."""
        told = []
        for _ in range(STOPS_MAX):
            self.press(driver, Keys.TAB)
            focused = driver.execute_script(FOCUSED)
            told.append(focused and focused[0])
            if focused and words in focused[0]:
                return
        self.fail(f"Tab does not reach {words}: {told}")

    def press_back(self, driver):
        ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()

    def stops(self, driver, press):
        """Presses a key until the focus has gone over the whole page, and returns what had the focus. Each time it is seen."""
        stops = []
        for _ in range(STOPS_MAX):
            press()
            focused = driver.execute_script(FOCUSED)
            if stops and (focused is None or focused[0] == stops[0]):
                return stops
            if focused is None:
                continue
            self.assertTrue(focused[1], f"the focus of {focused[0]} is not seen")
            stops.append(focused[0])
        self.fail(f"Tab does not come to an end: {stops}")

    def names(self, driver):
        """Returns (role, name) of all parts that a screen reader tells. None that needs a name is without."""
        nodes = [node for node in driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"] if not node.get("ignored")]
        told = [(node["role"]["value"], node.get("name", {}).get("value", "").strip()) for node in nodes]
        self.assertEqual([role for role, name in told if role in NAMED and not name], [])
        return told

    PAGES = (
        ("#/", "document.querySelectorAll('tbody tr').length >= 2"),
        ("#/jobs/two-sizes-1", "document.querySelector('#log')?.textContent && document.querySelector('#profile tbody tr')?.checkVisibility() && !document.querySelector('#chart-time').hidden"),
        ("#/compare/two-sizes-1,two-sizes-2", "document.querySelectorAll('#chart-loss tbody tr').length === 4"),
        ("#/nodes", "document.querySelectorAll('[aria-label=Servers] tbody tr').length === 2"),
        ("#/submit", "document.getElementById('submit')?.checkVisibility()"),
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hooke("submit", "job.yaml", "--watch")

    def test_tab_reaches_everything_in_order(self):
        driver = self.open("#/")
        driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        for page, ready in self.PAGES:
            with self.subTest(page=page):
                self.go(driver, page, ready)
                stops = self.stops(driver, lambda: self.press(driver, Keys.TAB))
                print(f"{page}: {len(stops)} stops")
                self.assertEqual(stops, driver.execute_script(REACHABLE))
                # Shift+Tab goes back over all of it, so that nothing holds the focus.
                self.assertEqual(self.stops(driver, lambda: self.press_back(driver)), stops[::-1])

    def test_a_screen_reader_has_names_and_last_values(self):
        driver = self.open("#/")
        for page, ready in self.PAGES:
            with self.subTest(page=page):
                self.go(driver, page, ready)
                names = self.names(driver)
                print(f"{page}: {sum(role in NAMED for role, _ in names)} named parts")
                self.assertEqual(sum(role == "main" for role, _ in names), 1)
                self.assertEqual(sum(role == "heading" for role, _ in names) > 0, True)
                charts = driver.execute_script("return [...document.querySelectorAll('section.chart:not([hidden])')].map((s) => [s.querySelector('canvas').getAttribute('aria-label'), s.querySelector('h3').firstChild.data.trim(), [...s.querySelectorAll('tbody tr')].map((row) => [row.cells[0].textContent, row.cells[2].textContent, row.dataset.value])])")
                for text, title, rows in charts:
                    self.assertIn(text, [name for role, name in names if role in ("image", "img", "canvas")])
                    self.assertTrue(text.startswith(title.removesuffix(", %")), (text, title))
                    self.assertTrue(rows)
                    for series, value, exact in rows:
                        # A share has one decimal in the table's cell, and none in the text.
                        self.assertRegex(text, rf"\b{series} {fixed(float(exact), 0) + ' %' if value.endswith('%') else value}")
                if "jobs/" in page:
                    self.assertGreaterEqual(len(charts), 6)
                    self.assertRegex(" ".join(name for _, name in names), r"What happened over time: \d+ starts, 0 deaths, \d+ ends, \d+ notices")

    def test_enter_and_space_work_everything(self):
        driver = self.open("#/")
        self.go(driver, *self.PAGES[0])
        # Find a job, and open it.
        self.tab_to(driver, "|filter")
        self.press(driver, "two-sizes-2")
        self.wait_for(driver, "one row", "return document.querySelectorAll('tbody tr').length === 1")
        self.tab_to(driver, "a|two-sizes-2|two-sizes-2")
        self.press(driver, Keys.ENTER)
        self.wait_for(driver, "the job", "return document.querySelector('h1')?.textContent === 'two-sizes-2' && document.querySelector('#log').textContent")
        self.assertEqual(driver.execute_script("return document.activeElement.id"), "page", "the reader is at the new page's begin")
        # Charts over time, the values of one, and the time of one group.
        self.wait_for(driver, "the charts", "return !document.getElementById('chart-time').hidden")
        self.tab_to(driver, "button|axis")
        self.press(driver, Keys.SPACE)
        self.assertEqual(driver.execute_script("return document.getElementById('axis').textContent"), "Draw over steps")
        self.press(driver, Keys.ENTER)
        self.assertEqual(driver.execute_script("return [document.getElementById('axis').textContent, document.activeElement.id]"), ["Draw over time", "axis"])
        self.tab_to(driver, "summary|Values: Loss")
        self.press(driver, Keys.ENTER)
        self.assertTrue(driver.execute_script("return document.querySelector('#chart-loss details').open"))
        self.tab_to(driver, "select|time-group")
        self.press(driver, Keys.ARROW_DOWN)
        self.assertEqual(driver.execute_script("return document.getElementById('time-group').value"), "0")
        self.tab_to(driver, "button|Trace")
        self.press(driver, Keys.SPACE)
        polling.wait_for("the trace", lambda: list(self.folder.glob("*/two-sizes-2-trace.json")), SECONDS, lambda: "")
        self.assertTrue(driver.execute_script("return document.activeElement.textContent").startswith("Trace"))
        # Mark two jobs and compare them.
        self.go(driver, *self.PAGES[0])
        for job in ("two-sizes-2", "two-sizes-1"):
            self.tab_to(driver, f"mark {job} to compare it")
            self.press(driver, Keys.SPACE)
        self.tab_to(driver, "a|Compare the marked jobs")
        self.press(driver, Keys.ENTER)
        self.wait_for(driver, "both jobs", "return location.hash === '#/compare/two-sizes-2,two-sizes-1' && document.querySelectorAll('#chart-loss tbody tr').length === 4")

    def test_cancels_a_job_after_asking(self):
        job = self.submit(endless("endless"))
        self.addCleanup(self.hooke, "cancel", job)
        driver = self.open(f"#/jobs/{job}")
        self.wait_for(driver, "a job that trains", "return document.querySelector('dl.facts .badge')?.textContent === 'running' && document.getElementById('cancel').checkVisibility()")
        self.tab_to(driver, "button|cancel|")
        state = lambda: json.loads(self.hooke("jobs", job, "--output", "json"))["state"]
        alert = lambda: polling.wait_for("the question", lambda: self.alert(driver), SECONDS, lambda: "")
        self.press(driver, Keys.ENTER)
        question = alert()
        self.assertEqual(question.text, f"Cancel {job}? Its groups are stopped at once, and do not start again.")
        question.dismiss()
        self.assertEqual((state(), driver.execute_script("return document.activeElement.id")), ("running", "cancel"))
        # The focus stays where it is while the page gets new data.
        driver.execute_script("window.before = asOf.textContent")
        self.wait_for(driver, "new data", "return asOf.textContent !== before")
        self.assertEqual(driver.execute_script("return document.activeElement.id"), "cancel")
        self.press(driver, Keys.SPACE)
        alert().accept()
        self.wait_for(driver, "the end", "return document.querySelector('dl.facts .badge').textContent === 'cancelled'")
        self.assertEqual(state(), "cancelled")
        self.assertEqual(driver.execute_script("return document.activeElement.id"), "page", "the button is gone, and the reader still on the page")

    @staticmethod
    def alert(driver):
        from selenium.common.exceptions import NoAlertPresentException

        try:
            return driver.switch_to.alert
        except NoAlertPresentException:
            return None

    def test_submits_a_job_file(self):
        driver = self.open("#/submit")
        self.wait_for(driver, "the page", "return document.getElementById('submit')?.checkVisibility()")
        self.tab_to(driver, "textarea|job")
        self.press(driver, "name: by-keyboard", Keys.ENTER, "commands: [/bin/true]", Keys.ENTER, "directory: /", Keys.ENTER)
        self.tab_to(driver, "button|check")
        self.press(driver, Keys.ENTER)
        self.wait_for(driver, "the fault", "return document.querySelector('#faults .fault')?.dataset.line === '2'")
        self.assertEqual(driver.execute_script("return document.activeElement.id"), "check")
        self.assertIn(("button", "go to line 2"), self.names(driver))
        self.tab_to(driver, "button|go to line 2")
        self.press(driver, Keys.ENTER)
        selected = "const t = document.activeElement; return t.value.slice(t.selectionStart, t.selectionEnd)"
        self.assertEqual(driver.execute_script(selected), "commands: [/bin/true]")
        self.press(driver, "command: [/bin/true]")
        self.tab_to(driver, "button|submit")
        self.press(driver, Keys.SPACE)
        job = self.wait_for(driver, "the job", "return location.hash.startsWith('#/jobs/by-keyboard-') && document.querySelector('h1')?.textContent")
        self.assertIn(job, self.jobs())


if __name__ == "__main__":
    skips.main()

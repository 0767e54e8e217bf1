"""What a job's page asks the coordinator while it is open in a browser (server/dashboard/web/), by a reader that draws nothing."""

import json
import urllib.parse
import urllib.request

EVERY_SECONDS = 2
OVERLAP_MS = 5000  # The page asks for the newest points again, because they may still change.
POINTS = 10 * 1000  # Ten for each pixel of the charts' width.
PATIENCE_SECONDS = 60


class OpenPage:
    """The page of the newest job of the coordinator whose web page is at `address`. Not thread-safe."""

    def __init__(self, address):
        self.address = address
        self.bytes = 0  # Bytes of all answers so far.
        self.looks = 0
        self.points = 0  # Points in all answers so far.
        self.job = self.get("jobs")["rows"][0]["id"]
        self.version, self.newest, self.events_offset, self.log_offset = "", 0, 0, None

    def get(self, path, **query):
        url = f"http://{self.address}/api/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            text = answer.read()
        self.bytes += len(text)
        return json.loads(text)

    def look(self):
        """Asks for all that is new, as the page does every two seconds, and in each fifth call for the profile."""
        if self.looks % 5 == 0:
            self.get(f"profile/{self.job}")
        self.looks += 1
        self.version = self.get(f"jobs/{self.job}", since=self.version)["version"]
        while (answer := self.get(f"events/{self.job}", offset=self.events_offset))["next_offset"] != self.events_offset:
            self.events_offset = answer["next_offset"]
        for series in self.get(f"history/{self.job}", since=max(0, self.newest - OVERLAP_MS), points=POINTS)["series"]:
            self.newest = max(self.newest, series["unix_ms"][-1])
            self.points += len(series["unix_ms"])
        while (piece := self.get(f"log/{self.job}", **({} if self.log_offset is None else {"offset": self.log_offset})))["text"]:
            self.log_offset = piece["next_offset"]

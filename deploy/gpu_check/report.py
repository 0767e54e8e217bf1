"""The report of the check: what each part found. It is written anew after each part, so a check that is cut short has left what it found."""

import json
import pathlib
from typing import Dict, List, NamedTuple, Tuple

PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"


class Found(NamedTuple):
    """What a part has found."""

    outcome: str
    # Why it failed or was skipped; "" if it passed.
    why: str = ""
    figures: Tuple[Tuple[str, str], ...] = ()  # What was measured, and the value with its unit.


def skipped(why: str) -> Found:
    return Found(SKIPPED, why)


def failed(why: str, *figures: Tuple[str, str]) -> Found:
    return Found(FAILED, why, figures)


class Report:
    """report.md for people and report.json for programs, in a folder."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._parts: List[Dict] = []

    def add(self, name: str, about: str, seconds: float, found: Found) -> None:
        self._parts.append({"part": name, "about": about, "seconds": round(seconds, 1), **found._asdict()})
        self._write("report.json", json.dumps(self._parts, indent=1) + "\n")
        self._write("report.md", self.text())

    def text(self) -> str:
        lines = ["| part | outcome | seconds | what |", "|---|---|---|---|"]
        lines += [f"| `{part['part']}` | {part['outcome']} | {part['seconds']} | {part['why'] or part['about']} |" for part in self._parts]
        lines += ["", "| part | figure | value |", "|---|---|---|"]
        lines += [f"| `{part['part']}` | {what} | {value} |" for part in self._parts for what, value in part["figures"]]
        return "\n".join(line.replace("\n", " ") for line in lines) + "\n"

    def counts(self) -> Dict[str, int]:
        return {outcome: sum(part["outcome"] == outcome for part in self._parts) for outcome in (PASSED, FAILED, SKIPPED)}

    def _write(self, name: str, text: str) -> None:
        """A reader never sees half of it."""
        new = self._folder / (name + ".new")
        new.write_text(text)
        new.replace(self._folder / name)

"""The commands in the code blocks of a page, for a test that runs them as a reader would."""

import re
import typing


class Command(typing.NamedTuple):
    line: int  # In the page, from 1 on.
    text: str  # What a shell gets.
    comment: str  # What the page says about it, without "# "; may be empty.


def commands(page):
    """Returns the commands in the blocks that begin with ```sh, in order. Each is a line: a command over several lines is an error."""
    found, inside = [], False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside and line == "```sh"
        elif inside and line.strip() and not line.startswith("#"):
            text, _, comment = re.sub(r"\s+# ", "\0", line, count=1).partition("\0")
            if text.endswith("\\") or text != text.strip():
                raise ValueError(f"line {number}: a command over several lines: {line}")
            found.append(Command(number, text, comment))
    return found


def shape(text):
    """Returns the text with N for each number, so that two outputs can be compared."""
    return re.sub(r"\d+(?:\.\d+)*", "N", text)

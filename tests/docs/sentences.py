#!/usr/bin/env python3
"""The long sentences of the docs, outside code and tables. Prints FILE:LINE: WORDS: SENTENCE for each; exit 1 if there is any.

Usage: sentences.py [--words N] [PAGE...]. Without a PAGE it reads README.md, CONTRIBUTING.md and docs/ of this tree.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS_MAX = 40
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
# A ".", "!" or "?" ends a sentence only if white space and the start of a new sentence follow. The stops in "arXiv
# 1805.09767" and "e.g. so" do not end one.
SENTENCE_END = re.compile(r"(?<=[.!?])[*)\"]*\s+(?=[A-Z0-9`\[(*\"])")


def pages(root):
    return [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))]


def paragraphs(text):
    """Yields (line number, text) of each paragraph and each item of a list. Code, tables and headings are left out."""
    first, lines, fenced = 0, [], False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        left_out = fence or fenced or not line.strip() or line.startswith(("|", "#", "    "))
        if lines and (left_out or ITEM.match(line)):
            yield first, " ".join(lines)
            lines = []
        if left_out:
            continue
        first = first if lines else number
        lines.append(ITEM.sub("", line, count=1) if not lines else line.strip())
    if lines:
        yield first, " ".join(lines)


def words(sentence):
    """Counts the words of a sentence. A link counts by its text, and code between backquotes by its words. A picture does not count."""
    return len(re.sub(r"\]\([^)]*\)", "]", re.sub(r"!\[.*?\]\(.*?\)", "", sentence)).split())


def long_sentences(text, words_max=WORDS_MAX):
    """Yields (line of the paragraph, number of words, sentence) of each sentence with more than `words_max` words."""
    for line, paragraph in paragraphs(text):
        for sentence in SENTENCE_END.split(paragraph):
            if words(sentence) > words_max:
                yield line, words(sentence), sentence


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=WORDS_MAX, help="the most that a sentence may have")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    found = False
    for page in arguments.pages or pages(ROOT):
        for line, count, sentence in long_sentences(page.read_text(), arguments.words):
            found = True
            print(f"{page}:{line}: {count}: {sentence}")
    return found


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The docs are plain, their links and names lead somewhere, and their pictures are those that draw.py makes. Needs no built program."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/docs"), str(ROOT / "docs/pictures")]
import draw  # noqa: E402
import sentences  # noqa: E402

PAGES = sentences.pages(ROOT)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Matches `folder/file.cc` or `folder/`, but not `profiles/JOB`, which is no place in the tree.
NAMED = re.compile(r"`((?:algorithms|client|deploy|docs|files|job|mpi_group|proto|python|server|tests|third_party|wire|worker)/[a-z0-9_./-]*)`")
LABEL = re.compile(r"(?<![\w/])//([a-z_/]+)(?::([a-z_]+(?:\.[a-z]+)?)|(/\.\.\.))")


def anchors(page):
    """Returns the anchors of the page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Sentences(unittest.TestCase):
    def test_none_is_too_long(self):
        self.assertGreater(len(PAGES), 20)
        for page in PAGES:
            for line, count, sentence in sentences.long_sentences(page.read_text()):
                self.fail(f"{page.relative_to(ROOT)}:{line}: {count} words, at most {sentences.WORDS_MAX}: {sentence}")

    def test_counts_words_of_sentences(self):
        self.assertEqual([found[1] for found in sentences.long_sentences("One two three. Four five six seven.", 3)], [4])
        self.assertEqual(list(sentences.long_sentences("One 1.5 two (three). Four\nfive six.", 4)), [])

    def test_leaves_out_code_tables_headings_and_pictures(self):
        text = "# a b c d\n\n```\na b c d\n```\n\n| a b c d |\n\n    a b c d\n\n![a b c d](e) f\n"
        self.assertEqual(list(sentences.long_sentences(text, 3)), [])

    def test_takes_items_and_paragraphs_apart(self):
        text = "a b c\n- d e f\n- g h i\n\nj k\nl m\n"
        self.assertEqual(list(sentences.long_sentences(text, 3)), [(5, 4, "j k l m")])

    def test_counts_the_text_of_a_link(self):
        self.assertEqual([found[1] for found in sentences.long_sentences("[a b](c/d.md#e) f", 2)], [3])


class Names(unittest.TestCase):
    def test_links_lead_to_pages_and_headings(self):
        for page in PAGES:
            for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", FENCED.sub("", page.read_text())):
                path = page.parent / target if target else page
                with self.subTest(page=page.relative_to(ROOT).as_posix(), target=target, anchor=anchor):
                    self.assertTrue(path.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(path))

    def test_every_page_is_linked_to(self):
        targets = {
            (page.parent / target).resolve()
            for page in PAGES
            for target in re.findall(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)", page.read_text())
        }
        self.assertEqual({page.resolve() for page in PAGES} - targets, {ROOT / "README.md"})

    def test_files_are_there(self):
        for page in PAGES:
            for name in NAMED.findall(page.read_text()):
                with self.subTest(page=page.relative_to(ROOT).as_posix(), name=name):
                    self.assertTrue((ROOT / name).exists())

    def test_bazel_labels_are_there(self):
        for page in PAGES:
            for package, target, all_below in LABEL.findall(page.read_text()):
                with self.subTest(page=page.relative_to(ROOT).as_posix(), package=package, target=target):
                    self.assertTrue((ROOT / package).is_dir())
                    if not all_below:
                        self.assertIn(f'"{target}"', (ROOT / package / "BUILD").read_text())


class Pictures(unittest.TestCase):
    def test_are_what_the_script_makes(self):
        self.assertEqual({path.name for path in draw.FOLDER.glob("*.svg")}, set(draw.PICTURES))
        for name, make in draw.PICTURES.items():
            self.assertEqual((draw.FOLDER / name).read_text(), make().svg(), f"{name}: run docs/pictures/draw.py")

    def test_are_well_formed_and_say_what_they_show(self):
        for name in draw.PICTURES:
            root = xml.etree.ElementTree.parse(draw.FOLDER / name).getroot()
            self.assertTrue(root.findtext("{http://www.w3.org/2000/svg}title"), name)

    def test_text_without_room_is_refused(self):
        with self.assertRaises(ValueError):
            draw.Picture(100, 100, "").box(0, 0, 40, 20, ["much too long for it"])


if __name__ == "__main__":
    unittest.main()

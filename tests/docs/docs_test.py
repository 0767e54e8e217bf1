#!/usr/bin/env python3
"""The docs say what the programs do: flags, commands, folders, job files."""

import json
import pathlib
import re
import subprocess
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/
# below the working folder.
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path("bin").resolve()
DAEMONS = ["hooke-server", "hooke-worker", "hooke-rank"]
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")


def help_flags(*command):
    text = subprocess.run([PROGRAMS / command[0], *command[1:], "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    return set(FLAG.findall(text)) - {"help"}


def section(text, heading):
    """Returns the part of a page below `## heading`."""
    match = re.search(rf"^## `?{re.escape(heading)}`?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match.group(1) if match else ""


def all_reduce_choices(values, *group):
    """Returns the algorithms that `hooke bench explain` names for an all-reduce, as pairs (largest size in bytes, algorithm). None stands for all
    larger sizes. Entries that differ only in their chunk size become one."""
    command = [PROGRAMS / "hooke", "bench", "explain", *group, "--output=json"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
    choices = []
    for choice in answer["choices"]:
        if choice["operation"] != "all-reduce" or choice["values"] != values or "of" in choice:
            continue
        if choices and choices[-1][1] == choice["algorithm"]:
            choices.pop()
        choices.append((choice.get("bytes_to"), choice["algorithm"]))
    return choices


class Docs(unittest.TestCase):
    def test_every_daemon_flag_is_in_daemons_md_and_no_other(self):
        page = (ROOT / "docs/daemons.md").read_text()
        for program in DAEMONS:
            table = "\n".join(line for line in section(page, program).splitlines() if line.startswith("| `--"))
            self.assertEqual(help_flags(program), set(FLAG.findall(re.sub(r"^(\| `--[a-z-]*).*$", r"\1", table, flags=re.MULTILINE))), program)

    def test_every_command_is_in_daemons_md(self):
        page = section((ROOT / "docs/daemons.md").read_text(), "hooke")
        text = subprocess.run([PROGRAMS / "hooke", "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
        commands = re.findall(r"^  ([a-z]+) {2,}", text[text.index("Subcommands:"):], re.MULTILINE)
        self.assertGreater(len(commands), 8)
        for command in commands:
            self.assertIn(f"`{command}", page)

    def test_folder_table_names_every_folder(self):
        table = set(re.findall(r"^\| `([a-z_]+)/` \|", (ROOT / "README.md").read_text(), re.MULTILINE))
        folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "bazel-"))} - {"docs"}
        self.assertEqual(table, folders)

    def test_every_flag_of_hooke_is_in_daemons_md(self):
        page = set(FLAG.findall(section((ROOT / "docs/daemons.md").read_text(), "hooke")))
        listed = subprocess.run([PROGRAMS / "hooke", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z-]+) ", listed[listed.index("Subcommands:") : listed.index("Examples:")], re.MULTILINE)
        self.assertIn("resume", commands)
        flags = set().union(*(help_flags("hooke", command) for command in commands))
        self.assertEqual(flags - page, set())

    def test_collectives_md_has_the_default_algorithms(self):
        # The first cells of a row of the table -> arguments that describe such a group.
        groups = {
            ("one node", "arena"): ("arena", "--ranks=4"),
            ("one node, 2 ranks", "private memory"): ("private", "--ranks=2"),
            ("one node, more ranks", "private memory"): ("private", "--ranks=4"),
            ("several nodes, one of them with 2 ranks or more", "any"): ("arena", "--ranks=4", "--nodes=2"),
            ("several nodes with one rank each, or ranks that share no memory", "any"): ("arena", "--ranks=4", "--nodes=4"),
        }
        page = (ROOT / "docs/collectives.md").read_text()
        table = page[page.index("| ranks | values | bytes | algorithm |") :].split("\n\n")[0]
        shown = {}
        for ranks, values, size, algorithm in re.findall(r"^\| ([^|]*)\| ([^|]*) \| ([^|]*) \| `([a-z-]+)`", table, re.MULTILINE):
            kind = (ranks.strip() or kind[0], values)
            limit = re.fullmatch(r"to (\d+) KiB", size)
            shown.setdefault(kind, []).append((int(limit[1]) * 1024 if limit else None, algorithm))
        self.assertEqual(set(shown), set(groups))
        for kind, (values, *group) in groups.items():
            self.assertEqual(shown[kind], all_reduce_choices(values, *group), kind)

    def test_scale_md_has_the_choice_between_many_nodes(self):
        page = (ROOT / "docs/scale.md").read_text()
        rows = re.findall(r"^\| (\d+) \| to (\d+) KiB \| to (\d+) (K|M)iB \| more \|$", page, re.MULTILINE)
        self.assertGreater(len(rows), 8)
        for nodes, small, middle, unit in rows:
            shown = [(int(small) << 10, "recursive-doubling"), (int(middle) << (10 if unit == "K" else 20), "halving-doubling"), (None, "ring")]
            self.assertEqual(shown, all_reduce_choices("private", f"--ranks={nodes}", f"--nodes={nodes}"), nodes)

    def test_collectives_md_shows_lines_that_bench_explain_prints(self):
        page = (ROOT / "docs/collectives.md").read_text()
        arguments, shown = re.search(r"^\$ hooke bench explain (.*)\n((?:.+\n)+?)```", page, re.MULTILINE).groups()
        command = [PROGRAMS / "hooke", "bench", "explain", *arguments.split()]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        self.assertGreater(shown.count("between nodes:"), 2)
        self.assertIn(shown, printed)

    def test_the_six_modes_are_shown_as_their_files_have_them(self):
        page = (ROOT / "docs/rules/README.md").read_text()
        shown = dict(re.findall(r"^# deploy/jobs/modes/([a-z-]+\.yaml)\n((?:(?!#|```).+\n)+)", page, re.MULTILINE))
        blocks = re.compile(r"^(?:groups|averaging):.*\n(?: .*\n)*", re.MULTILINE)
        files = {path.name: "".join(blocks.findall(path.read_text())) for path in (ROOT / "deploy/jobs/modes").glob("*.yaml")}
        self.assertEqual(len(files), 6)
        self.assertEqual(shown, files)

    def test_the_job_in_the_readme_is_the_quickstarts(self):
        job = re.sub(r"^#.*\n", "", (ROOT / "deploy/jobs/fashion.yaml").read_text(), flags=re.MULTILINE)
        self.assertIn(f"```yaml\n{job}```\n", (ROOT / "README.md").read_text())

    def test_no_placeholder_is_left(self):
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
            self.assertNotRegex(page.read_text(), r"@[A-Z]+@|TBD|\?\?\?", page.name)


if __name__ == "__main__":
    unittest.main()

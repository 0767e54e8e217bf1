#!/usr/bin/env python3
"""Draws the pictures of the docs as SVG. Usage: draw.py writes them beside itself; tests/docs compares them with the committed files.

A picture has a light panel of its own, so it reads the same on light and dark pages. Units are pixels.
"""

import pathlib
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent
INK, QUIET, PANEL, EDGE = "#1f2933", "#52606d", "#f8f9fb", "#9aa5b1"
# Fill and edge of a box, by what it stands for.
COMPUTE = ("#e3f0fb", "#5b9bd5")
COLLECTIVE = ("#fdebd0", "#d68f2c")
SERVER = ("#e2f3e4", "#4f9d5b")
FAILED = ("#fbe3e3", "#c94f4f")
PLAIN = ("#ffffff", EDGE)
# The width of a letter as a fraction of the font size: a little more than in most sans-serif fonts.
LETTER = 0.53


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>',
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{PANEL}" stroke="{EDGE}"/>',
        ]

    def text(self, x, y, text, size=13, anchor="start", color=INK, bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.lines.append(
            f'<text x="{x}" y="{y}" font-family="Helvetica, Arial, sans-serif" font-size="{size}" text-anchor="{anchor}" fill="{color}"{weight}>{escape(text)}</text>'
        )

    def box(self, x, y, width, height, texts, kind=PLAIN, size=13):
        """Draws a box with lines of text in its middle. If there are several lines, the first one is bold."""
        fill, edge = kind
        self.lines.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="{edge}"/>')
        step = size + 4
        first = y + (height - step * (len(texts) - 1)) / 2 + size * 0.35
        for i, line in enumerate(texts):
            if LETTER * size * len(line) > width - 8 or step * len(texts) > height:
                raise ValueError(f"no room for: {line}")
            self.text(x + width / 2, round(first + i * step, 1), line, size, "middle", bold=len(texts) > 1 and i == 0)

    def dashes(self, x1, y1, x2, y2):
        self.lines.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{EDGE}" fill="none" stroke-dasharray="5 4"/>')

    def arrow(self, *points, dashed=False):
        """Draws an arrow through the points (x, y, x, y, ...). Its head is at the last point."""
        path = "L".join(f"{x} {y}" for x, y in zip(points[::2], points[1::2]))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.lines.append(f'<path d="M{path}" stroke="{QUIET}" stroke-width="1.4" fill="none"{dash} marker-end="url(#head)"/>')

    def svg(self):
        return "\n".join([*self.lines, "</svg>", ""])


def step():
    """The life of a step: two ranks of a group, and the servers."""
    p = Picture(860, 560, "The life of a step: forward and backward, all-reduce, optimizer; every interval steps an exchange with the servers")
    left, right, servers, wide = 120, 340, 620, 200
    p.text(left + wide / 2, 34, "rank 0", 15, "middle", bold=True)
    p.text(right + wide / 2, 34, "rank 1", 15, "middle", bold=True)
    p.text(servers + 105, 34, "servers", 15, "middle", bold=True)
    for x in (left, right):
        p.box(x, 50, wide, 34, ["its batch"], COMPUTE)
        p.arrow(x + 100, 84, x + 100, 102)
        p.box(x, 104, wide, 48, ["forward, backward", "gradients land in the arena"], COMPUTE)
        p.arrow(x + 100, 152, x + 100, 170)
        p.arrow(x + 100, 220, x + 100, 238)
        p.box(x, 240, wide, 48, ["optimizer", "same bits on both ranks"], COMPUTE)
        p.arrow(x + 100, 288, x + 100, 326)
    p.box(left, 172, right + wide - left, 48, ["all-reduce", "mean of gradients and loss; buckets leave during backward"], COLLECTIVE)
    p.text(18, 168, "every step", 13, color=QUIET, bold=True)
    p.dashes(18, 307, 842, 307)
    p.text(18, 410, "every", 13, color=QUIET, bold=True)
    p.text(18, 428, "interval", 13, color=QUIET, bold=True)
    p.text(18, 446, "steps", 13, color=QUIET, bold=True)
    p.box(left, 328, wide, 34, ["blocks of slice 0 of x"])
    p.box(right, 328, wide, 34, ["blocks of slice 1 of x"])
    p.box(servers, 322, 210, 120, ["for each block, locked:", "d = alpha (x - c)", "c = c + d", "answer d", "each server has its shard"], SERVER)
    p.arrow(left + 100, 362, left + 100, 376, servers - 2, 376)
    p.arrow(right + wide, 345, servers - 2, 345)
    p.text(560, 338, "x", 13, "middle", color=QUIET)
    p.text(560, 370, "x", 13, "middle", color=QUIET)
    p.arrow(servers, 425, right + wide + 2, 425)
    p.text(580, 418, "d", 13, "middle", color=QUIET)
    p.box(left, 408, right + wide - left, 34, ["x = x - d, block by block as answers come"], COMPUTE)
    p.arrow(left + 100, 442, left + 100, 462)
    p.arrow(right + 100, 442, right + 100, 462)
    p.box(left, 464, right + wide - left, 48, ["all-gather of the slices", "every rank has the whole vector again"], COLLECTIVE)
    p.text(left, 540, "Rule elastic is shown. Other rules send gradients or distances, and are answered with the center.", 12, color=QUIET)
    return p


def collective():
    """The layers of an all-reduce, for one node and for several."""
    p = Picture(860, 640, "The layers of an all-reduce: bucket hook, issue order, group, choice, algorithm, bytes")
    top = [
        ("bucket hook", "backward has written all gradients of a bucket", "worker/training/group_step.cc"),
        ("issue order", "calls the buckets in one order on all ranks", "mpi_group/issue_order/issue_order.cc"),
        ("group", "AllReduce(bucket, mean): measures, numbers, checks", "mpi_group/groups/transport_group.cc"),
        ("choice", "the first rule that fits: tuning, then defaults", "mpi_group/choose_algorithm.cc, default_rules.cc"),
    ]
    y = 20
    for name, what, where in top:
        p.box(20, y, 400, 48, [name, what])
        p.text(436, y + 29, where, 13, color=QUIET)
        if name != "choice":
            p.arrow(220, y + 48, 220, y + 66)
        y += 68
    p.arrow(220, 272, 220, 318)
    p.arrow(220, 272, 220, 292, 640, 292, 640, 318)
    p.text(20, 312, "one node", 15, bold=True)
    p.text(840, 312, "several nodes", 15, "end", bold=True)
    p.box(20, 320, 400, 46, ["arena: in place, no message, no copy", "node/node_arena_collectives.cc"], COLLECTIVE)
    p.box(440, 320, 400, 46, ["two-level: each byte crosses a link once", "two_level/two_level.cc"], COLLECTIVE)
    steps = [
        (["1. all ranks meet", "their gradients are written"], ["1. in each node: reduce-scatter", "driver i has the node's sum of slice i"], "node/"),
        (["2. rank r takes slice r of all arenas", "adds it, writes the mean to all arenas"], ["2. between nodes: all-reduce of slice i", "by recursive doubling, halving-doubling or ring"], "collectives/"),
        (["3. all ranks meet again", "each may write its own arena again"], ["3. in each node: all-gather", "every rank has all slices"], "node/"),
    ]
    y = 380
    for one, several, where in steps:
        p.box(20, y, 400, 46, one, COMPUTE)
        p.box(440, y, 318, 46, several, COMPUTE, 12)
        p.text(766, y + 27, where, 13, color=QUIET)
        if y > 380:
            p.arrow(220, y - 14, 220, y - 1)
            p.arrow(600, y - 14, 600, y - 1)
        y += 60
    p.arrow(220, 546, 220, 566)
    p.arrow(600, 546, 600, 566)
    p.box(20, 568, 400, 50, ["memory that the node's ranks share", "node/shared_memory.cc, node/node_meeting.cc"], SERVER)
    p.box(440, 568, 400, 50, ["shared memory; between nodes TCP sockets or MPI", "sockets/socket_transport.cc, mpi/mpi_transport.cc"], SERVER)
    return p


def failover():
    """A worker dies; its group goes on elsewhere. Time goes to the right."""
    p = Picture(860, 392, "Failover of a group: its worker dies, the coordinator starts it on another worker, it pulls the center and goes on")
    for name, y in [("coordinator", 58), ("group 0", 128), ("servers", 198), ("group 1, worker A", 268), ("group 1, worker B", 338)]:
        p.text(18, y + 4, name, 12, bold=True)
        p.dashes(150, y, 842, y)
    p.text(842, 26, "time, not to scale", 12, "end", color=QUIET)
    p.arrow(540, 72, 540, 316, dashed=True)
    p.box(150, 184, 692, 28, ["the center c stays, whichever group dies"], SERVER)
    p.box(150, 114, 692, 28, ["trains and exchanges on; with rule elastic it notices nothing"], COMPUTE)
    for x in (200, 330, 460, 590, 720, 820):
        p.arrow(x, 142, x, 183)
    p.box(150, 254, 116, 28, ["steps 49 to 64"], COMPUTE)
    p.arrow(266, 254, 266, 213)
    p.text(274, 240, "exchange at 64", 12, color=QUIET)
    p.box(270, 254, 80, 28, ["65 to 75"], COMPUTE)
    p.box(350, 254, 60, 28, ["dies"], FAILED)
    p.box(350, 44, 80, 28, ["silent 4 s"], PLAIN, 12)
    p.box(436, 44, 80, 28, ["10 s: lost"], FAILED, 12)
    p.box(522, 44, 150, 28, ["start 2 on worker B"], PLAIN, 12)
    p.box(524, 318, 124, 40, ["attach, pull c", "kept momentum"], PLAIN, 12)
    p.arrow(610, 213, 610, 317)
    p.text(618, 300, "c", 13, color=QUIET)
    p.box(652, 318, 108, 40, ["65 to 80", "65 to 75 again"], COMPUTE, 12)
    p.arrow(760, 318, 760, 213)
    p.text(754, 300, "exchange at 80", 12, "end", color=QUIET)
    p.box(764, 318, 78, 40, ["81 to 96"], COMPUTE, 12)
    p.text(150, 380, "Steps 65 to 75 are trained twice; the center counts them once.", 12, color=QUIET)
    return p


PICTURES = {"step.svg": step, "collective.svg": collective, "failover.svg": failover}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw().svg())

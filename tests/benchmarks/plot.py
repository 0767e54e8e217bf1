"""A line plot as SVG, made with the standard library alone: curves of points over shared axes, with a legend. It has its own background, so
that it can be read on light and dark pages.
"""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 250, 44, 52
# Okabe and Ito's colors, which color-blind people can tell apart, and dashes.
COLORS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c564b"]
DASHES = ["", "7 3", "2 3"]


def ticks(low, high, count=6):
    """Returns about `count` round numbers within [low, high]."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    scale = 10 ** math.floor(math.log10(raw))
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 10) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value):
    return f"{value:g}"


class Axes:
    def __init__(self, points, y_min):
        self.x_high = max([x for x, _ in points], default=1) or 1
        ys = [y for _, y in points if y >= y_min]
        self.y_low, self.y_high = min(ys, default=0), max(ys, default=1)
        margin = max(0.05 * (self.y_high - self.y_low), 0.1)
        self.y_low, self.y_high = self.y_low - margin, self.y_high + margin

    def x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_high

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.y_low) / (self.y_high - self.y_low)


def text(x, y, words, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def frame(axes, x_label, y_label):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#888"/>'
    for value in ticks(0, axes.x_high):
        yield f'<line x1="{axes.x(value):.1f}" y1="{bottom}" x2="{axes.x(value):.1f}" y2="{bottom + 5}" stroke="#888"/>'
        yield text(axes.x(value), bottom + 19, number(value), "middle")
    for value in ticks(axes.y_low, axes.y_high):
        yield f'<line x1="{LEFT}" y1="{axes.y(value):.1f}" x2="{right}" y2="{axes.y(value):.1f}" stroke="#ddd"/>'
        yield text(LEFT - 8, axes.y(value) + 4, number(value), "end")
    yield text((LEFT + right) / 2, HEIGHT - 12, x_label, "middle")
    yield text(0, 0, y_label, "middle", f' transform="translate(18 {(TOP + bottom) / 2:.1f}) rotate(-90)"')


def svg(title, x_label, y_label, curves, y_min=-math.inf):
    """Returns the plot. `curves` maps a name to [(x, y)], in the order of the legend. Points below `y_min` are left out: the first points of a
    training would squeeze all others together."""
    axes = Axes([point for points in curves.values() for point in points], y_min)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        text(LEFT, 26, title, extra=' font-size="15" font-weight="bold"'),
        *frame(axes, x_label, y_label),
    ]
    for index, (name, points) in enumerate(curves.items()):
        color, dash = COLORS[index % len(COLORS)], DASHES[index % len(DASHES)]
        shown = [(axes.x(x), axes.y(y)) for x, y in points if y >= y_min]
        style = f'stroke="{color}" stroke-width="2" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")
        lines.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in shown)}" {style}/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in shown]
        row = TOP + 10 + 20 * index
        lines.append(f'<line x1="{WIDTH - RIGHT + 16}" y1="{row - 4}" x2="{WIDTH - RIGHT + 44}" y2="{row - 4}" {style}/>')
        last = f" ({points[-1][1]:.2f})" if points else " (none)"
        lines.append(text(WIDTH - RIGHT + 50, row, name + last))
    return "\n".join([*lines, "</svg>", ""])

// The chart of where the time of a job's groups goes: shares of computing, collectives and exchanges as stacked areas.
"use strict";

const TIME_PARTS = ["compute", "collective", "exchange", "rest"];
const TIME_COLUMNS = ["computing_ms", "collectives_ms", "exchanging_ms"];
// A report may be on its way for half a second, so less than this between two points is no time that was lost.
const REST_LEAST_MS = 1000;
const TIME_BINS = 100; // Of the mean of several groups.

// Returns where a group's time went between each two of its points: {from, to, step, parts}. from and to are on the
// axis; parts are milliseconds in the order of TIME_PARTS. The points count since the group's last start. So a count
// that is lower than the one before it means a new start. xOf(i) is where point i is on the axis.
function timeSpans(series, xOf) {
  const spans = [];
  let before = [0, 0, 0];
  series.unix_ms.forEach((unixMs, i) => {
    const now = TIME_COLUMNS.map((column) => series[column][i]);
    const last = before;
    before = now[0] === null ? null : now;
    if (now[0] === null || last === null) return; // An older coordinator stored no times.
    const isNew = now.some((ms, part) => ms < last[part]);
    const parts = now.map((ms, part) => ms - (isNew ? 0 : last[part]));
    const lost = i > 0 ? unixMs - series.unix_ms[i - 1] - parts.reduce((sum, ms) => sum + ms, 0) : 0;
    parts.push(lost < REST_LEAST_MS ? 0 : lost);
    const to = xOf(i);
    // A group that has begun again repeats steps: what it did before is not drawn over.
    while (spans.length && spans[spans.length - 1].to > to) spans.pop();
    spans.push({ from: Math.min(to, i > 0 ? xOf(i - 1) : to), to, step: series.step[i], parts });
  });
  return spans;
}

// Returns the percentages of the parts; null: no time went by.
function sharesOf(parts) {
  const all = parts.reduce((sum, ms) => sum + ms, 0);
  return all > 0 ? parts.map((ms) => (100 * ms) / all) : null;
}

// Returns {x, step, shares} for each span of one group.
function sharesOfOne(spans) {
  return spans.map(({ to, step, parts }) => ({ x: to, step, shares: sharesOf(parts) })).filter(({ shares }) => shares);
}

// The same of the time of all groups together, in bins of equal length along the axis. A bin stands for its middle, and
// the outer ones for the ends, so that the areas reach as far as the lines of other charts.
function sharesOfAll(groups) {
  const spans = groups.flat();
  const first = Math.min(...spans.map(({ from }) => from));
  const last = Math.max(...spans.map(({ to }) => to));
  const count = Math.min(TIME_BINS, Math.max(...groups.map((group) => group.length)));
  const width = (last - first) / count || 1;
  const place = (i) => (count === 1 || i === count - 1 ? last : i === 0 ? first : first + width * (i + 0.5));
  const bins = Array.from({ length: count }, (_, i) => ({ x: place(i), step: 0, parts: [0, 0, 0, 0] }));
  for (const { from, to, step, parts } of spans) {
    const begin = Math.min(count - 1, Math.floor((from - first) / width));
    const end = Math.min(count - 1, Math.floor((to - first) / width));
    for (let i = begin; i <= end; ++i) {
      const inside = Math.min(to, first + width * (i + 1)) - Math.max(from, first + width * i);
      const share = begin === end ? 1 : Math.max(0, inside) / (to - from);
      parts.forEach((ms, part) => (bins[i].parts[part] += share * ms));
      if (share > 0) bins[i].step = Math.max(bins[i].step, step);
    }
  }
  return bins.map(({ x, step, parts }) => ({ x, step, shares: sharesOf(parts) })).filter(({ shares }) => shares);
}

// The chart of one job. With several groups the reader chooses all of them together, or one.
class TimeChart {
  constructor(place, onChoice) {
    this.canvas = h("canvas", { role: "img" });
    this.values = h("tbody");
    this.choice = h("select", { id: "time-group", "aria-label": "Whose time" });
    this.choice.addEventListener("change", onChoice);
    const title = h("h3", {}, "Where the time goes, % ", this.choice);
    const head = h("tr", {}, h("th", {}, "time in"), h("th", {}, "step"), h("th", {}, "last value"));
    const table = h("table", { "aria-label": "Where the time goes: last values" }, h("thead", {}, head), this.values);
    this.section = h("section", { class: "chart", id: "chart-time", hidden: "" }, title, h("div", { class: "canvas" }, this.canvas), h("details", {}, h("summary", { "aria-label": "Values: where the time goes" }, "Values"), table));
    place.append(this.section);
    this.chart = this.make();
  }

  make() {
    const style = getComputedStyle(document.documentElement);
    const color = style.getPropertyValue("--quiet").trim();
    const axis = { ticks: { color }, grid: { color: style.getPropertyValue("--line").trim() } };
    const datasets = TIME_PARTS.map((label) => {
      const fill = style.getPropertyValue(label === "rest" ? "--rest" : `--${label}`).trim();
      return { label, data: [], fill: label === TIME_PARTS[0] ? "origin" : "-1", borderColor: fill, backgroundColor: fill };
    });
    return new Chart(this.canvas, {
      type: "line",
      data: { datasets },
      options: {
        animation: false,
        parsing: false,
        normalized: true,
        maintainAspectRatio: false,
        elements: { point: { radius: 0, hitRadius: 6 }, line: { borderWidth: 0 } },
        interaction: { mode: "index", intersect: false },
        scales: {
          x: { type: "linear", title: { display: true, color, text: "step" }, ...axis },
          y: { stacked: true, min: 0, max: 100, ...axis },
        },
        plugins: { legend: { labels: { color, boxWidth: 12 } } },
      },
    });
  }

  // Keeps what the reader has chosen.
  offer(names) {
    this.choice.hidden = names.length < 2;
    if (this.offered === names.join()) return;
    this.offered = names.join();
    const chosen = this.choice.value;
    this.choice.replaceChildren(h("option", { value: "" }, "of all groups"), ...names.map((name) => h("option", { value: name }, `of group ${name}`)));
    this.choice.value = names.includes(chosen) ? chosen : "";
  }

  draw(history, axis) {
    const names = history.names(false);
    this.offer(names);
    const spans = new Map(names.map((name) => [name, timeSpans(history.series.get(name), history.xOf(name, axis))]));
    const groups = [...spans.values()].filter((group) => group.length);
    const chosen = this.choice.value || (names.length === 1 ? names[0] : "");
    const shown = chosen ? sharesOfOne(spans.get(chosen) ?? []) : groups.length ? sharesOfAll(groups) : [];
    this.section.hidden = groups.length === 0;
    TIME_PARTS.forEach((_, part) => (this.chart.data.datasets[part].data = shown.map(({ x, shares }) => ({ x, y: shares[part] }))));
    // A single point is no area.
    this.chart.options.elements.point.radius = shown.length < 2 ? 3 : 0;
    this.chart.options.scales.x.title.text = axis === "step" ? "step" : "minutes";
    const last = shown[shown.length - 1];
    const rows = last ? TIME_PARTS.map((name, part) => [name, last.shares[part]]) : [];
    this.values.replaceChildren(...rows.map(([name, value]) => h("tr", { "data-series": name, "data-value": String(value) }, h("td", {}, name), h("td", {}, String(last.step)), h("td", {}, `${value.toFixed(1)} %`))));
    const text = rows.map(([name, value]) => `${name} ${value.toFixed(0)} %`).join(", ");
    this.canvas.setAttribute("aria-label", `Where the time goes; lately ${text}; the table below has the last values`);
    this.chart.update("none");
  }

  destroy() {
    this.chart.destroy();
  }
}

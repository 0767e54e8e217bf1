// The charts of a job: what its groups and its center reported, over steps or over time.
"use strict";

const COLORS = ["#2f81f7", "#d1570b", "#1a9e5c", "#a475f9", "#c1911a", "#d6336c", "#1098ad", "#868e96"];
const CENTER_COLOR = "#1a9e5c";
const MANY_COLOR = "#868e96";
// With more groups than this, the legend and colors would tell nobody anything: all lines are thin and gray.
const LEGEND_GROUPS = 8;
const POINTS_MAX = 12000;
const OVERLAP_MS = 5000;

const POINTS_PER_PIXEL = 10; // Of all series together: more would not be seen.

// What is drawn: the title, the column of a series, its factor, and whose series.
const CHARTS = [
  { id: "loss", title: "Loss of the groups", column: "loss", factor: 1, center: false },
  { id: "accuracy", title: "Accuracy of the center, %", column: "accuracy", factor: 100, center: true },
  { id: "rate", title: "Samples per second", column: "samples_per_s", factor: 1, center: false },
  { id: "distance", title: "Distance from the center, % of its length", column: "center_distance", factor: 100, center: false },
  { id: "staleness", title: "Changes by other groups between two exchanges", column: "staleness", factor: 1, center: false },
  { id: "exchange", title: "Milliseconds of an exchange", column: "exchange_ms", factor: 1, center: false },
];
const COLUMNS = ["unix_ms", "step", ...CHARTS.map((chart) => chart.column), ...TIME_COLUMNS];

// The points of a job by series: a group's number, or "center". A series is its columns. Null: not known or not finite.
class History {
  constructor() {
    this.series = new Map();
    this.newest = 0;
    this.first = null;
    this.count = 0;
  }

  // From when on to ask for points: those of the last seconds once more, because the coordinator may have corrected them.
  // With very many points it is 0: the coordinator then sends all of them again, thinned.
  since() {
    if (this.count > POINTS_MAX) {
      this.series.clear();
      this.newest = this.count = 0;
    }
    return Math.max(0, this.newest - OVERLAP_MS);
  }

  // Takes the answer to since(). The points of a series take the place of those that it has from their time on.
  add(list) {
    for (const added of list) {
      const name = added.group === undefined ? "center" : String(added.group);
      if (!this.series.has(name)) this.series.set(name, Object.fromEntries(COLUMNS.map((column) => [column, []])));
      const series = this.series.get(name);
      const times = series.unix_ms;
      let kept = times.length;
      while (kept > 0 && times[kept - 1] >= added.unix_ms[0]) --kept;
      this.count += kept - times.length + added.unix_ms.length;
      for (const column of COLUMNS) series[column].splice(kept, Infinity, ...(added[column] ?? []));
      this.newest = Math.max(this.newest, times[times.length - 1]);
      if (this.first === null || times[0] < this.first) this.first = times[0];
    }
  }

  // Returns the names of the series in order: groups by number, or only the center.
  names(center) {
    const names = [...this.series.keys()].filter((name) => (name === "center") === center);
    return names.sort((a, b) => Number(a) - Number(b));
  }

  // Returns where the points of a series are on the axis, by their index.
  xOf(name, axis) {
    const { step, unix_ms: times } = this.series.get(name);
    return axis === "step" ? (i) => step[i] : (i) => (times[i] - this.first) / 60000;
  }

  line(name, chart, axis) {
    const values = this.series.get(name)[chart.column];
    const xOf = this.xOf(name, axis);
    const line = [];
    for (let i = 0; i < values.length; ++i) {
      const x = xOf(i);
      // A group that has begun again repeats steps: what it did before is not drawn over.
      while (line.length && line[line.length - 1].x > x) line.pop();
      if (values[i] !== null) line.push({ x, y: chart.factor * values[i] });
    }
    return line;
  }
}

// What a chart says to those who do not see it: its last values, of a few series.
function chartText(chart, rows) {
  const texts = rows.slice(0, LEGEND_GROUPS).map(({ cells: [series, step, value] }) => `${series.textContent} ${value.textContent} at step ${step.textContent}`);
  const more = rows.length > LEGEND_GROUPS ? ` and ${rows.length - LEGEND_GROUPS} more` : "";
  return `${chart.title}; last values: ${texts.join(", ")}${more}; the table below has them`;
}

// The charts of one job, in which each group has a color, or of several, in which each job has one.
class JobCharts {
  constructor(place, ids) {
    this.axis = "step";
    this.place = place;
    this.histories = new Map(ids.map((id) => [id, new History()]));
    this.drawn = new Map();
    for (const chart of CHARTS) {
      const canvas = h("canvas", { role: "img", "aria-label": chart.title });
      const values = h("tbody");
      const table = h("table", { "aria-label": `${chart.title}: last values` }, h("thead", {}, h("tr", {}, h("th", {}, "series"), h("th", {}, "step"), h("th", {}, "last value"))), values);
      const section = h(
        "section",
        { class: "chart", id: `chart-${chart.id}` },
        h("h3", {}, chart.title),
        h("div", { class: "canvas" }, canvas),
        h("details", {}, h("summary", { "aria-label": `Values: ${chart.title}` }, "Values"), table),
      );
      place.append(section);
      this.drawn.set(chart.id, { chart: this.make(canvas), values, section });
      section.hidden = true; // Until there is something to draw.
    }
    this.time = null;
    if (ids.length > 1) return;
    this.time = new TimeChart(place, () => this.drawTime());
    this.drawn.get("distance").section.before(this.time.section);
  }

  make(canvas) {
    const style = getComputedStyle(document.documentElement);
    const color = style.getPropertyValue("--quiet").trim();
    const grid = style.getPropertyValue("--line").trim();
    const axis = { ticks: { color }, grid: { color: grid } };
    return new Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      options: {
        animation: false,
        parsing: false,
        normalized: true,
        maintainAspectRatio: false,
        elements: { point: { radius: 0, hitRadius: 6 }, line: { borderWidth: 1.5 } },
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: {
          x: { type: "linear", title: { display: true, color, text: "step" }, ...axis },
          y: { ...axis },
        },
        plugins: {
          legend: { labels: { color, boxWidth: 12, filter: (entry) => entry.text !== "" } },
          decimation: { enabled: true, algorithm: "min-max" },
        },
      },
    });
  }

  setAxis(axis) {
    this.axis = axis;
    this.draw();
    this.drawTime();
  }

  // What to ask for next: points after the last ones, as many as the width can show.
  historyPath(id) {
    const points = POINTS_PER_PIXEL * Math.max(200, this.place.clientWidth);
    return `api/history/${encodeURIComponent(id)}?since=${this.histories.get(id).since()}&points=${points}`;
  }

  add(id, series) {
    if (series.length === 0) return;
    this.histories.get(id).add(series);
    this.draw();
  }

  // Returns what a chart draws: each series with its label, which is "" where the legend has no entry, and its color.
  lines(chart) {
    const alone = this.histories.size === 1;
    const lines = [];
    [...this.histories].forEach(([id, history], job) => {
      history.names(chart.center).forEach((name, index) => {
        const own = chart.center ? "center" : `group ${name}`;
        const color = alone ? (chart.center ? CENTER_COLOR : COLORS[index % COLORS.length]) : COLORS[job % COLORS.length];
        lines.push({ history, name, color, label: alone ? own : index === 0 ? id : "", row: alone ? own : `${id} ${own}` });
      });
    });
    return lines;
  }

  draw() {
    for (const chart of CHARTS) {
      const { chart: drawn, values, section } = this.drawn.get(chart.id);
      const lines = this.lines(chart);
      const many = lines.length > LEGEND_GROUPS;
      const gray = many && this.histories.size === 1;
      drawn.data.datasets = lines.map(({ history, name, color, label }) => {
        const data = history.line(name, chart, this.axis);
        return {
          label,
          data,
          borderColor: gray ? MANY_COLOR : color,
          backgroundColor: gray ? MANY_COLOR : color,
          borderWidth: many ? 0.7 : 1.5,
          pointRadius: data.length < 30 ? 2 : 0,
        };
      });
      drawn.options.plugins.legend.display = !gray && lines.length > 1;
      drawn.options.scales.x.title.text = this.axis === "step" ? "step" : "minutes";
      const rows = lines.map((line) => this.lastValue(line, chart)).filter((row) => row !== null);
      values.replaceChildren(...rows);
      drawn.canvas.setAttribute("aria-label", chartText(chart, rows));
      section.hidden = rows.length === 0;
      drawn.update("none");
    }
    // The other charts are seen first: this one adds up the times of all groups.
    clearTimeout(this.later);
    if (this.time) this.later = setTimeout(() => this.drawTime(), 100);
  }

  drawTime() {
    if (!this.time) return;
    clearTimeout(this.later);
    this.histories.forEach((history) => this.time.draw(history, this.axis));
  }

  // Returns a row with the last value that is a number; null: there is none.
  lastValue({ history, name, row }, chart) {
    const series = history.series.get(name);
    const values = series[chart.column];
    for (let i = values.length - 1; i >= 0; --i) {
      if (values[i] === null) continue;
      const value = chart.factor * values[i];
      return h("tr", { "data-series": row, "data-value": String(value) }, h("td", {}, row), h("td", {}, String(series.step[i])), h("td", {}, value.toPrecision(5)));
    }
    return null;
  }

  destroy() {
    clearTimeout(this.later);
    for (const { chart } of this.drawn.values()) chart.destroy();
    this.time?.destroy();
  }
}

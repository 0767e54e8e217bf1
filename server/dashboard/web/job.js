// The page of one job.
"use strict";

const LOG_LINES = 300;
const EVENTS_SHOWN = 200;
// A group that has started again still shows for so long why it died.
const DEATH_SHOWN_MS = 10 * 60000;

function facts(rows) {
  return rows.flatMap(([name, content]) => (content === null ? [] : [h("dt", {}, name), h("dd", {}, content)]));
}

// The shares of a group's time as a bar, which also says them.
function shares(progress) {
  const parts = [
    ["compute", Number(progress.compute_seconds ?? 0)],
    ["collective", Number(progress.collective_seconds ?? 0)],
    ["exchange", Number(progress.exchange_seconds ?? 0)],
  ];
  const all = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (!(all > 0)) return "-";
  const text = parts.map(([name, seconds]) => `${name} ${Math.round((100 * seconds) / all)} %`).join(", ");
  const bar = svg("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": text });
  const title = svg("title", {});
  title.textContent = text;
  bar.append(title, svg("rect", { class: "rest", width: "100", height: "8" }));
  let at = 0;
  for (const [name, seconds] of parts) {
    const width = (100 * seconds) / all;
    bar.append(svg("rect", { class: name, x: String(at), width: String(width), height: "8" }));
    at += width;
  }
  return bar;
}


// A number that a group may not have, as a text.
function known(value, text, factor) {
  return value === undefined || !Number.isFinite(Number(value)) ? "-" : text(factor * Number(value));
}

// What a row says about the group's state. Of a held group it shows what it printed last, because that says what to mend.
function whyText(group, bad, reason, held) {
  const text = bad ? h("span", {}, h("span", { class: "bad" }, bad), reason ? `; ${reason}` : "") : h("span", {}, reason);
  const lines = group.last_lines ?? [];
  if (held && lines.length) text.append(h("pre", { class: "last", tabindex: "0", role: "region", "aria-label": "Last lines" }, lines.join("\n")));
  return text;
}

// Says of a peer for how long it has been silent. Its time may be by another machine's clock.
function silenceText(silence, now) {
  const seconds = Math.round((now - Number(silence.since_unix_ms ?? now)) / 1000);
  return `${silence.what} has not answered for ${Math.max(0, seconds)} s`;
}

function groupRow(group, death, now) {
  const progress = group.progress ?? {};
  const faults = (group.silences ?? []).map((silence) => silenceText(silence, now));
  if (group.slow) faults.push(`straggler: ${group.slow}`);
  if (death) faults.push(`${clock(death.unix_ms)}: ${death.text}`);
  const bad = faults.join("; ");
  const has = group.progress !== undefined;
  const reason = reasonText(group.state, group.reason);
  const held = group.state === "GROUP_STATE_HELD";
  return h(
    "tr",
    { class: held ? "held" : bad ? "dead" : null },
    cell(group.task === "EVALUATE" ? "evaluation" : `group ${group.group ?? 0}`, "short"),
    cell(badge(group.state)),
    cell(group.worker ? `${group.worker} (${group.site})` : "-"),
    cell(String(group.incarnation ?? 0), "number"),
    cell(has ? `${progress.step ?? 0}/${progress.steps_total ?? "?"}` : "-", "number"),
    cell(has ? number(progress.epoch, 2) : "-", "number"),
    cell(has ? number(progress.loss, 4) : "-", "number"),
    cell(has ? number(progress.samples_per_s, 0) : "-", "number"),
    cell(known(progress.center_distance, (distance) => `${distance < 100 ? distance.toPrecision(2) : distance.toFixed(0)} %`, 100), "number"),
    cell(known(progress.staleness, (changes) => changes.toFixed(1), 1), "number"),
    cell(shares(progress)),
    cell(whyText(group, bad, reason, held), "text"),
  );
}

// The last lines of a job's log. The first answer is its end; after that come only new lines.
class Log {
  constructor(id, element) {
    this.id = id;
    this.element = element;
    this.offset = null;
    this.lines = [];
  }

  async update() {
    while (this.element.isConnected) {
      const from = this.offset === null ? "" : `?offset=${this.offset}`;
      const piece = await get(`api/log/${encodeURIComponent(this.id)}${from}`);
      this.offset = piece.next_offset;
      if (piece.text === "") return;
      this.lines = this.lines.concat(piece.text.split("\n").filter((line) => line)).slice(-LOG_LINES);
      const follows = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 30;
      this.element.textContent = this.lines.join("\n");
      if (follows) this.element.scrollTop = this.element.scrollHeight;
    }
  }
}

// Asks the coordinator to change a job. What goes wrong is said in `said`.
async function actOn(path, failure, said) {
  try {
    await act(path);
    said.textContent = "";
    refresh(shown);
  } catch (error) {
    said.textContent = ` ${failure}: ${error.message} `;
  }
}

// Changes the number of a job's groups, of one site if the job has several kinds of groups.
class Scale {
  constructor(id, said) {
    this.count = h("input", { type: "number", min: "1", max: "1024", id: "scale-groups" });
    this.site = h("select", { "aria-label": "Site", hidden: "" });
    this.button = h("button", { type: "button", id: "scale" }, "Scale");
    this.element = h("span", { hidden: "" }, h("label", { for: "scale-groups" }, "Groups: "), this.count, " ", this.site, " ", this.button);
    this.site.addEventListener("change", () => this.fill());
    this.button.addEventListener("click", () => {
      const groups = this.count.value;
      const where = this.site.hidden ? "" : this.site.value;
      if (!confirm(`Scale ${id} to ${groups} groups${where ? ` at ${where}` : ""}? Its groups exchange and end, and then as many start. That takes some seconds.`)) return;
      actOn(`api/scale/${encodeURIComponent(id)}?groups=${encodeURIComponent(groups)}&site=${encodeURIComponent(where)}`, "not scaled", said);
    });
  }

  // Puts in the present number, which the reader then changes.
  fill() {
    const kind = this.kinds.find((one) => one.site === this.site.value);
    this.count.value = String(kind ? kind.count : this.groups.count);
  }

  show(job, isOver) {
    hide(this.element, isOver);
    const groups = job.spec?.groups ?? {};
    const now = JSON.stringify(groups);
    if (now === this.shown) return;
    this.shown = now;
    this.groups = groups;
    this.kinds = groups.kinds ?? [];
    const sites = this.kinds.map((kind) => kind.site).filter((site) => site);
    this.site.replaceChildren(...sites.map((site) => h("option", { value: site }, site)));
    this.site.hidden = sites.length === 0;
    this.fill();
  }
}

function jobPage(id) {
  document.title = `${id} - Hooke`;
  const name = encodeURIComponent(id);
  const about = h("dl", { class: "facts" });
  const place = h("div", { class: "charts" });
  const axis = h("button", { type: "button", id: "axis" });
  const cancel = h("button", { type: "button", hidden: "", id: "cancel" }, "Cancel the job");
  const resume = h("button", { type: "button", hidden: "", id: "resume" }, "Resume the held groups");
  const said = h("span", { class: "bad", role: "status" });
  const scale = new Scale(id, said);
  const model = modelButton(id);
  const readOnly = h("p", { class: "quiet", id: "read-only" });
  model.hidden = true;
  const columns = [["group"], ["state"], ["worker (site)"], ["start", "number"], ["step", "number"], ["epoch", "number"], ["loss", "number"], ["samples/s", "number"], ["from center", "number"], ["staleness", "number"], ["time spent in"], ["reason"]];
  const groups = table("Groups", columns);
  const strip = h("div", { class: "strip" });
  const eventList = h("ul", { id: "events", tabindex: "0", "aria-label": "What happened, the newest first" });
  const logText = h("pre", { tabindex: "0", role: "region", "aria-label": "Log", id: "log" });
  const keys = ["compute", "collective", "exchange"].map((kind) => h("span", { class: `key ${kind}` }, kind));
  const exportText = h("code", { id: "export" });
  const profile = new Profile(id);
  const trace = downloadButton("Trace (ui.perfetto.dev)", () => traceOf(id), `${id}-trace.json`, "application/json");
  page.replaceChildren(
    h("h1", {}, id),
    about,
    h("p", { class: "actions" }, cancel, resume, scale.element, downloadButton("Points as CSV", () => csvOf(id), `${id}.csv`, "text/csv"), downloadButton("Whole log", () => wholeLog(id), `${id}.log`, "text/plain"), model, said),
    readOnly,
    h("p", { class: "quiet" }, "The model in a terminal: ", exportText),
    h("h2", {}, "Groups"),
    groups.element,
    h("p", { class: "quiet" }, "Time spent in:", ...keys),
    h("h2", {}, "History ", axis),
    place,
    h("h2", {}, "Profile ", trace),
    profile.element,
    h("h2", {}, "What happened"),
    strip,
    eventList,
    h("h2", {}, "Log"),
    logText,
  );
  const charts = new JobCharts(place, [id]);
  const log = new Log(id, logText);
  const timeline = new Timeline(id, strip, eventList);
  axisButton(axis, charts);
  cancel.addEventListener("click", async () => {
    if (!confirm(`Cancel ${id}? Its groups are stopped at once, and do not start again.`)) return;
    await actOn(`api/cancel/${name}`, "not cancelled", said);
  });
  resume.addEventListener("click", () => actOn(`api/resume/${name}`, "not resumed", said));
  let version = "";
  let job = null;
  let round = "";
  let rights = null; // What the page may do; until it is known, no button is shown that changes something.
  let atEnd = false; // The history was read after the job's end: it does not change any more.
  const show = (row, now) => {
    const rest = left(row, now);
    const reason = reasonText(row.state, row.reason);
    about.replaceChildren(
      ...facts([
        ["state", h("span", {}, badge(row.state), reason ? `: ${reason}` : "")],
        ["what", row.what],
        ["owner", row.owner || null],
        ["done", h("span", {}, progressBar(row), rest === null ? "" : `, ${duration(rest)} left`)],
        ["time", duration(age(row, now))],
        ["submitted", clock(row.submitted_unix_ms)],
        ["center", job.center ? `accuracy ${accuracy(row)}, loss ${number(job.center.loss, 4)}, at epoch ${number(job.center.epoch, 2)}` : "not evaluated yet"],
        ["rounds", round || null],
        ["servers", (job.servers ?? []).join(", ") || "-"],
        ["setback", job.setback ? `${clock(job.setback.unix_ms)}: ${job.setback.text}` : null],
      ]),
    );
    const mayAct = rights.read_only === "";
    readOnly.textContent = rights.read_only;
    readOnly.hidden = mayAct;
    model.hidden = !mayAct;
    hide(cancel, !mayAct || ended(row));
    hide(resume, !mayAct || ended(row) || !(job.groups ?? []).some((group) => group.state === "GROUP_STATE_HELD"));
    scale.show(job, !mayAct || ended(row));
    const deathOf = (group) => {
      const death = timeline.deaths.get(group.group ?? 0);
      return death && !ended(row) && group.state !== "GROUP_STATE_FINISHED" && now - death.unix_ms < DEATH_SHOWN_MS ? death : null;
    };
    setRows(groups.body, (job.groups ?? []).map((group) => groupRow(group, deathOf(group), now)));
  };
  return {
    async update() {
      const [answer, may] = await Promise.all([get(`api/jobs/${name}?since=${encodeURIComponent(version)}`), rights ?? get("api/page"), timeline.update()]);
      rights = may;
      exportText.textContent = `hooke export ${id} ${id}.safetensors --coordinator ${rights.coordinator}`;
      version = answer.version;
      job = answer.job ?? job;
      round = answer.round ?? round;
      show(answer.row, answer.now_unix_ms);
      timeline.draw(answer.row.submitted_unix_ms, ended(answer.row) ? answer.row.ended_unix_ms : answer.now_unix_ms);
      if (!atEnd) charts.add(id, (await get(charts.historyPath(id))).series);
      atEnd = ended(answer.row);
      await log.update();
      await profile.update(ended(answer.row));
    },
    leave() {
      charts.destroy();
    },
  };
}

// Makes the button choose what the charts are drawn over.
function axisButton(button, charts) {
  const name = () => {
    button.textContent = charts.axis === "step" ? "Draw over time" : "Draw over steps";
  };
  name();
  button.addEventListener("click", () => {
    charts.setAxis(charts.axis === "step" ? "time" : "step");
    name();
  });
}

// The pages of the dashboard. The part of the address after # names the page; each page asks for its data again every
// two seconds while somebody can see it. Texts of jobs and logs only ever become text nodes.
"use strict";

const EVERY_MS = 2000;
const PATIENCE_MS = 20000;
const LOG_LINES = 300;
const COMPARED_MAX = 8;

const page = document.getElementById("page");
const state = document.getElementById("state");
const asOf = document.getElementById("time");
let shown = null; // The page that is shown: {update(), leave()}.
let timer = 0;

// ---- Elements ----

// Makes an element. Children may be nodes, texts, or null.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Gives a table these rows. Cells that say the same stay as they are, so that nobody loses a click or a selection. What
// had the focus has it again.
function setRows(body, rows) {
  const key = document.activeElement?.dataset?.key;
  rows.forEach((row, index) => {
    const old = body.rows[index];
    if (!old || old.cells.length !== row.cells.length) {
      if (old) old.replaceWith(row);
      else body.append(row);
      return;
    }
    [...row.cells].forEach((cell, column) => {
      if (!cell.isEqualNode(old.cells[column])) old.cells[column].replaceWith(cell);
    });
  });
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  if (!key || document.activeElement?.dataset?.key === key) return;
  body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function table(caption, columns) {
  const head = columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name));
  const body = h("tbody");
  const whole = h("table", { "aria-label": caption }, h("thead", {}, h("tr", {}, ...head)), body);
  return { body, element: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, whole) };
}

function cell(content, kind) {
  return h("td", { class: kind }, content);
}

// ---- Texts ----

const WORDS = {
  QUEUED: "wait",
  WAITING: "wait",
  STARTING: "wait",
  RUNNING: "busy",
  EVALUATING: "busy",
  SUCCEEDED: "good",
  FINISHED: "good",
  FAILED: "bad",
  CANCELLED: "quiet",
};

// The word of a state without its prefix: "RUNNING".
function wordOf(state) {
  return String(state ?? "").replace(/^(JOB|GROUP)_STATE_/, "");
}

function badge(state) {
  const word = wordOf(state);
  return h("span", { class: `badge ${WORDS[word] ?? ""}` }, word.toLowerCase());
}

// Many reasons begin with the state that they explain.
function reasonText(state, reason) {
  const word = wordOf(state).toLowerCase();
  const text = reason ?? "";
  if (text === word) return "";
  return text.startsWith(`${word}: `) ? text.slice(word.length + 2) : text;
}

function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

function clock(ms) {
  return new Date(Number(ms)).toLocaleString();
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = Number(count ?? 0);
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

function number(value, digits) {
  const parsed = Number(value ?? 0);
  return Number.isFinite(parsed) ? parsed.toFixed(digits) : "-";
}

// What the job trains: its model or its command.
function trained(job) {
  const words = job.spec?.command?.arguments;
  return words ? words.join(" ") : (job.spec?.model?.name ?? "");
}

function what(job) {
  const groups = job.spec?.groups ?? {};
  const rule = (job.spec?.averaging?.rule ?? "").toLowerCase();
  const kinds = groups.kinds ?? [groups];
  const counted = (count, name) => `${count ?? 1} ${name}${(count ?? 1) === 1 ? "" : "s"}`;
  const batch = (kind) => ((kind.batch_size ?? 0) === (job.spec?.train?.batch_size ?? 0) ? "" : ` (batch ${kind.batch_size})`);
  const at = (kind) => `${kind.site ? ` at ${kind.site}` : ""}${groups.kinds ? batch(kind) : ""}`;
  const parts = kinds.map((kind) => `${counted(kind.count, "group")} x ${counted(kind.ranks, "rank")}${at(kind)}`);
  return [trained(job), ...parts, rule].join(", ");
}

// The share of the steps that all groups have done, 0 to 1; null: not known.
function done(job) {
  const groups = (job.groups ?? []).filter((group) => group.task !== "EVALUATE");
  if (job.state === "JOB_STATE_SUCCEEDED") return 1;
  if (groups.length === 0) return null;
  let sum = 0;
  for (const group of groups) {
    const total = Number(group.progress?.steps_total ?? 0);
    if (group.state === "GROUP_STATE_FINISHED") sum += 1;
    else if (!group.progress && group.incarnation > 0) return null;
    else if (total > 0) sum += Math.min(1, Number(group.progress.step ?? 0) / total);
  }
  return sum / Math.max(1, job.spec?.groups?.count ?? 1);
}

function ended(job) {
  return Number(job.ended_unix_ms ?? 0) > 0;
}

function age(job) {
  return (ended(job) ? Number(job.ended_unix_ms) : Number(job.now_unix_ms)) - Number(job.submitted_unix_ms);
}

// The time that is left if all goes on as fast as since the first step; null: not known.
function left(job) {
  const share = done(job);
  if (job.state !== "JOB_STATE_RUNNING" || !share || !job.first_step_unix_ms) return null;
  return ((Number(job.now_unix_ms) - Number(job.first_step_unix_ms)) * (1 - share)) / share;
}

function progressBar(job) {
  const share = done(job);
  if (share === null) return "-";
  const text = `${Math.floor(100 * share)} %`;
  return h("span", {}, h("progress", { max: "1", value: String(share), "aria-label": text }), ` ${text}`);
}

function accuracy(job) {
  const value = job.center ? Number(job.center.accuracy ?? 0) : NaN;
  return Number.isFinite(value) ? `${(100 * value).toFixed(2)} %` : "-";
}

// ---- Data ----

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function get(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...options, headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  if (answer.ok) return answer.json();
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // An answer of the HTTP server itself is plain text.
  }
  throw new Refused(answer.status, message);
}

// Asks the coordinator to do something. The header tells it that a page of its own asks: no other site's page can send it.
async function act(path) {
  return get(path, { method: "POST", headers: { "X-Hooke-Action": "1" } });
}

// ---- Pages ----

function jobsPage() {
  document.title = "Jobs - Hooke";
  const picked = new Set();
  const compare = h("a", { class: "button" }, `Compare the marked jobs, at most ${COMPARED_MAX}`);
  const jobs = table("Jobs", [[""], ["job"], ["state"], ["done"], ["time", "number"], ["left", "number"], ["accuracy", "number"], ["what"], ["reason"]]);
  const more = h("p", { class: "quiet" });
  page.replaceChildren(h("h1", {}, "Jobs"), jobs.element, more, h("p", {}, compare));
  const showCompare = () => {
    compare.hidden = picked.size < 2;
    compare.href = `#/compare/${[...picked].map(encodeURIComponent).join(",")}`;
  };
  showCompare();
  const box = (id) => {
    const input = h("input", { type: "checkbox", "aria-label": `mark ${id} to compare it`, "data-key": `mark ${id}` });
    input.checked = picked.has(id);
    input.addEventListener("change", () => {
      if (input.checked && picked.size < COMPARED_MAX) picked.add(id);
      else picked.delete(id);
      input.checked = picked.has(id);
      showCompare();
    });
    return input;
  };
  const row = (job) => {
    const rest = left(job);
    return h(
      "tr",
      {},
      cell(box(job.job_id)),
      cell(h("a", { href: `#/jobs/${encodeURIComponent(job.job_id)}`, "data-key": job.job_id }, job.job_id)),
      cell(badge(job.state)),
      cell(progressBar(job), "short"),
      cell(duration(age(job)), "number"),
      cell(rest === null ? "-" : duration(rest), "number"),
      cell(accuracy(job), "number"),
      cell(what(job), "text"),
      cell(reasonText(job.state, job.reason), "text"),
    );
  };
  return {
    async update() {
      const answer = await get("api/jobs");
      const list = answer.jobs ?? [];
      setRows(jobs.body, list.map(row));
      const older = answer.left_out ? `${answer.left_out} older jobs are not shown.` : "";
      more.textContent = list.length ? older : "There are no jobs yet: submit one with hooke submit FILE.";
    },
    leave() {},
  };
}

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

function groupRow(group) {
  const progress = group.progress ?? {};
  const faults = (group.silences ?? []).map((silence) => `${silence.what} does not answer`);
  if (group.slow) faults.push(`straggler: ${group.slow}`);
  const bad = faults.join("; ");
  const has = group.progress !== undefined;
  return h(
    "tr",
    {},
    cell(group.task === "EVALUATE" ? "evaluation" : `group ${group.group ?? 0}`),
    cell(badge(group.state)),
    cell(group.worker ? `${group.worker} (${group.site})` : "-"),
    cell(String(group.incarnation ?? 0), "number"),
    cell(has ? `${progress.step ?? 0}/${progress.steps_total ?? "?"}` : "-", "number"),
    cell(has ? number(progress.epoch, 2) : "-", "number"),
    cell(has ? number(progress.loss, 4) : "-", "number"),
    cell(has ? number(progress.samples_per_s, 0) : "-", "number"),
    cell(shares(progress)),
    cell(bad || reasonText(group.state, group.reason), bad ? "text bad" : "text"),
  );
}

// The last lines of a job's log, read piece by piece.
class Log {
  constructor(id, element) {
    this.id = id;
    this.element = element;
    this.offset = 0;
    this.lines = [];
  }

  async update() {
    let more = true;
    while (more && this.element.isConnected) {
      const piece = await get(`api/log/${encodeURIComponent(this.id)}?offset=${this.offset}`);
      more = piece.text !== "";
      if (!more) return;
      this.offset = piece.next_offset;
      this.lines = this.lines.concat(piece.text.split("\n").filter((line) => line)).slice(-LOG_LINES);
      const follows = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 30;
      this.element.textContent = this.lines.join("\n");
      if (follows) this.element.scrollTop = this.element.scrollHeight;
    }
  }
}

function jobPage(id) {
  document.title = `${id} - Hooke`;
  const about = h("dl", { class: "facts" });
  const place = h("div", { class: "charts" });
  const axis = h("button", { type: "button" });
  const cancel = h("button", { type: "button", hidden: "" }, "Cancel the job");
  const cancelled = h("span", { class: "bad", role: "status" });
  const groups = table("Groups", [
    ["group"],
    ["state"],
    ["worker (site)"],
    ["start", "number"],
    ["step", "number"],
    ["epoch", "number"],
    ["loss", "number"],
    ["samples/s", "number"],
    ["time spent in"],
    ["reason"],
  ]);
  const notices = h("ul");
  const logText = h("pre", { tabindex: "0", "aria-label": "Log", id: "log" });
  const keys = ["compute", "collective", "exchange"].map((name) => h("span", { class: `key ${name}` }, name));
  page.replaceChildren(
    h("h1", {}, id),
    about,
    h("p", {}, cancel, cancelled),
    h("h2", {}, "Groups"),
    groups.element,
    h("p", { class: "quiet" }, "Time spent in:", ...keys),
    h("h2", {}, "History ", axis),
    place,
    h("h2", {}, "Notices"),
    notices,
    h("h2", {}, "Log"),
    logText,
  );
  const charts = new JobCharts(place, [id]);
  const log = new Log(id, logText);
  axisButton(axis, charts);
  cancel.addEventListener("click", async () => {
    if (!confirm(`Cancel ${id}? Its groups are stopped at once, and do not start again.`)) return;
    try {
      show(await act(`api/cancel/${encodeURIComponent(id)}`));
      cancelled.textContent = "";
    } catch (error) {
      cancelled.textContent = ` not cancelled: ${error.message}`;
    }
  });
  const show = (job) => {
    const rest = left(job);
    const reason = reasonText(job.state, job.reason);
    const rows = [
      ["state", h("span", {}, badge(job.state), reason ? `: ${reason}` : "")],
      ["what", what(job)],
      ["done", h("span", {}, progressBar(job), rest === null ? "" : `, ${duration(rest)} left`)],
      ["time", duration(age(job))],
      ["submitted", clock(job.submitted_unix_ms)],
      ["center", job.center ? `accuracy ${accuracy(job)}, loss ${number(job.center.loss, 4)}, at epoch ${number(job.center.epoch, 2)}` : "not evaluated yet"],
      ["servers", (job.servers ?? []).join(", ") || "-"],
      ["setback", job.setback ? `${clock(job.setback.unix_ms)}: ${job.setback.text}` : null],
    ];
    about.replaceChildren(...facts(rows));
    cancel.hidden = ended(job);
    setRows(groups.body, (job.groups ?? []).map(groupRow));
    const texts = (job.notices ?? []).map((notice) => h("li", {}, `${clock(notice.unix_ms)}  ${notice.text}`));
    notices.replaceChildren(...(texts.length ? texts.reverse() : [h("li", { class: "quiet" }, "none")]));
  };
  return {
    async update() {
      const name = encodeURIComponent(id);
      const [job, history] = await Promise.all([get(`api/jobs/${name}`), get(`api/history/${name}?since=${charts.since(id)}`)]);
      show(job);
      charts.add(id, history.points ?? []);
      await log.update();
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

function comparePage(ids) {
  document.title = "Jobs compared - Hooke";
  const place = h("div", { class: "charts" });
  const axis = h("button", { type: "button" });
  const links = ids.map((id) => h("li", {}, h("a", { href: `#/jobs/${encodeURIComponent(id)}` }, id)));
  page.replaceChildren(h("h1", {}, "Jobs compared"), h("ul", {}, ...links), h("p", {}, axis), place);
  const charts = new JobCharts(place, ids);
  axisButton(axis, charts);
  const update = async (id) => {
    const history = await get(`api/history/${encodeURIComponent(id)}?since=${charts.since(id)}`);
    charts.add(id, history.points ?? []);
  };
  return {
    async update() {
      const outcomes = await Promise.allSettled(ids.map(update));
      const failed = outcomes.find((outcome) => outcome.status === "rejected");
      if (failed) throw failed.reason;
    },
    leave() {
      charts.destroy();
    },
  };
}

function nodesPage() {
  document.title = "Nodes - Hooke";
  const workers = table("Workers", [["worker"], ["state"], ["site"], ["slots", "number"], ["MPI"], ["version"], ["remark"]]);
  const servers = table("Servers", [["server"], ["state"], ["centers", "number"], ["memory", "number"], ["on disk", "number"], ["cores", "number"], ["version"], ["remark"]]);
  const links = table("Links between workers", [["from"], ["to"], ["round trip", "number"], ["bandwidth", "number"], ["measured"]]);
  page.replaceChildren(h("h1", {}, "Nodes"), h("h2", {}, "Workers"), workers.element, h("h2", {}, "Servers"), servers.element, h("h2", {}, "Links"), links.element);
  const alive = (node) => h("span", { class: `badge ${node.alive ? "good" : "bad"}` }, node.alive ? "alive" : "silent");
  const drained = { DRAIN_FINISH: "gets no more groups", DRAIN_NOW: "is being emptied" };
  const workerRow = (node) =>
    h(
      "tr",
      {},
      cell(node.name),
      cell(alive(node)),
      cell(node.site ?? ""),
      cell(`${node.slots_used ?? 0}/${node.slots ?? 0}`, "number"),
      cell(node.mpi ?? ""),
      cell(node.version ?? ""),
      cell([drained[node.drain], node.avoided].filter((text) => text).join("; "), "text"),
    );
  const serverRow = (node) =>
    h(
      "tr",
      {},
      cell(node.name),
      cell(alive(node)),
      cell(`${node.centers ?? 0} + ${node.disk_centers ?? 0}`, "number"),
      cell(bytes(node.center_bytes), "number"),
      cell(bytes(node.disk_bytes), "number"),
      cell(number(node.cores, 2), "number"),
      cell(node.version ?? ""),
      cell(node.problem ?? "", "text"),
    );
  const linkRow = (link) =>
    h(
      "tr",
      {},
      cell(link.from),
      cell(link.to),
      cell(`${number(1e6 * link.round_trip_seconds, 0)} µs`, "number"),
      cell(`${bytes(Math.round(link.bytes_per_second))}/s`, "number"),
      cell(clock(link.measured_unix_ms)),
    );
  const fill = (body, rows, columns, none) => setRows(body, rows.length ? rows : [h("tr", {}, h("td", { colspan: columns, class: "quiet" }, none))]);
  return {
    async update() {
      const answer = await get("api/nodes");
      const nodes = answer.nodes ?? [];
      fill(workers.body, nodes.filter((node) => node.kind === "WORKER").map(workerRow), 7, "No worker has joined: start one with hooke-worker.");
      fill(servers.body, nodes.filter((node) => node.kind === "SERVER").map(serverRow), 8, "none");
      fill(links.body, (answer.links ?? []).map(linkRow), 5, "No group has run on several workers.");
    },
    leave() {},
  };
}

// Asks for the cluster's token, which this tab then keeps.
function tokenPage(refused) {
  const token = h("input", { type: "password", id: "token", autocomplete: "off" });
  const send = h("button", { type: "button" }, "Go on");
  page.replaceChildren(h("h1", {}, "Token"), h("p", {}, h("label", { for: "token" }, "This cluster asks for its token: "), token, " ", send));
  const what = h("p", { class: "bad", role: "status" }, refused ? "The coordinator has refused that token." : "");
  page.append(what);
  const go = () => {
    const text = token.value.trim();
    if (!/^[\x21-\x7e]+$/.test(text)) {
      what.textContent = "A token has only visible ASCII characters.";
      return;
    }
    sessionStorage.setItem("token", text);
    route();
  };
  send.addEventListener("click", go);
  token.addEventListener("keydown", (event) => event.key === "Enter" && go());
  token.focus();
}

// ---- Which page ----

// Returns the ids in a part of the address; none if it is no address.
function idsOf(text) {
  try {
    return [...new Set((text ?? "").split(",").filter((id) => id).map(decodeURIComponent))];
  } catch {
    return [];
  }
}

function route() {
  clearTimeout(timer);
  shown?.leave();
  const [, name, part] = location.hash.split("/");
  const ids = idsOf(part);
  const here = name === "nodes" ? "nodes" : "jobs";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "nodes") shown = nodesPage();
  else if (name === "jobs" && ids.length) shown = jobPage(ids[0]);
  else if (name === "compare" && ids.length) shown = comparePage(ids.slice(0, COMPARED_MAX));
  else shown = jobsPage();
  refresh(shown);
}

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

async function refresh(wanted) {
  if (wanted !== shown || wanted.busy) return;
  wanted.busy = true; // One look at a time: a second one would ask for the same points and lines.
  try {
    if (!document.hidden) {
      await wanted.update();
      if (wanted === shown) {
        say("");
        asOf.textContent = `as of ${new Date().toLocaleTimeString()}`;
      }
    }
  } catch (error) {
    if (wanted !== shown) return;
    if (error instanceof Refused && error.status === 401) {
      const refused = sessionStorage.getItem("token") !== null;
      sessionStorage.removeItem("token");
      shown.leave();
      shown = null;
      say("");
      return tokenPage(refused);
    }
    say(error instanceof Refused ? error.message : "the coordinator does not answer; trying again");
  } finally {
    wanted.busy = false;
  }
  if (wanted === shown) timer = setTimeout(() => refresh(wanted), EVERY_MS);
}

window.addEventListener("hashchange", () => {
  route();
  page.focus();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden || shown === null) return;
  clearTimeout(timer);
  refresh(shown);
});
route();

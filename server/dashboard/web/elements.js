// Elements and texts of the pages. Texts of jobs and logs only ever become text nodes.
"use strict";

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

// Gives a table these rows, or one that says `none`. Cells that say the same stay as they are, so that nobody loses a click or a selection. What
// had the focus has it again.
function setRows(body, rows, none = "") {
  if (!rows.length && none) rows = [h("tr", {}, h("td", { colspan: body.parentElement.tHead.rows[0].cells.length, class: "quiet" }, none))];
  const key = document.activeElement?.dataset?.key;
  rows.forEach((row, index) => {
    const old = body.rows[index];
    if (!old || old.cells.length !== row.cells.length) {
      if (old) old.replaceWith(row);
      else body.append(row);
      return;
    }
    if (old.className !== row.className) old.className = row.className;
    [...row.cells].forEach((cell, column) => {
      if (!cell.isEqualNode(old.cells[column])) old.cells[column].replaceWith(cell);
    });
  });
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  if (!key || document.activeElement?.dataset?.key === key) return;
  body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// A column is its name, the class of its cells, and if it shows no name: what it is, for a screen reader.
function table(caption, columns) {
  const head = columns.map(([name, kind, label]) => h("th", { scope: "col", class: kind, "aria-label": label }, name));
  const body = h("tbody");
  const whole = h("table", { "aria-label": caption }, h("thead", {}, h("tr", {}, ...head)), body);
  return { body, element: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, whole) };
}

function cell(content, kind) {
  return h("td", { class: kind }, content);
}

// Hides an element or shows it. If it had the focus, `next` gets it.
function hide(element, hidden, next = page) {
  const hadFocus = hidden && element.contains(document.activeElement);
  element.hidden = hidden;
  if (hadFocus) next.focus({ preventScroll: true });
}

// Does some work for a button, which until then does nothing else. It keeps the focus, as a disabled one would not.
async function whileBusy(buttons, work) {
  if (buttons.some((button) => button.hasAttribute("aria-disabled"))) return;
  for (const button of buttons) button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    for (const button of buttons) button.removeAttribute("aria-disabled");
  }
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
  HELD: "held",
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

// `plain`: whole numbers get no decimals.
function bytes(count, plain = false) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = Number(count ?? 0);
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${unit && !(plain && Number.isInteger(value)) ? value.toFixed(1) : value} ${units[unit]}`;
}

function number(value, digits) {
  const parsed = Number(value ?? 0);
  return Number.isFinite(parsed) ? parsed.toFixed(digits) : "-";
}

function counted(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function ended(row) {
  return row.ended_unix_ms > 0;
}

function age(row, now) {
  return (ended(row) ? row.ended_unix_ms : now) - row.submitted_unix_ms;
}

// The time that is left if all goes on as fast as since the first step; null: not known.
function left(row, now) {
  if (row.state !== "JOB_STATE_RUNNING" || !row.done || !row.first_step_unix_ms) return null;
  return ((now - row.first_step_unix_ms) * (1 - row.done)) / row.done;
}

function leftText(row, now) {
  const rest = left(row, now);
  return rest === null ? "-" : duration(rest);
}

function progressBar(row) {
  if (row.done === null) return "-";
  const text = `${Math.floor(100 * row.done)} %`;
  return h("span", {}, h("progress", { max: "1", value: String(row.done), "aria-label": text }), ` ${text}`);
}

function accuracy(row) {
  return row.accuracy === null ? "-" : `${(100 * row.accuracy).toFixed(2)} %`;
}

// `key` tells this link from others of the table.
function jobLink(id, key = id) {
  return h("a", { href: `#/jobs/${encodeURIComponent(id)}`, "data-key": key }, id);
}

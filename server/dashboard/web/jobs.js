// The pages of all jobs, and of jobs compared.
"use strict";

const COMPARED_MAX = 8;
const ROWS_AT_FIRST = 200; // A table of a thousand rows takes a browser a second.

// The rows of the list, kept from page to page: the coordinator only says what has changed.
const jobList = { version: "", rows: new Map(), leftOut: 0, now: 0 };

async function updateJobList() {
  const answer = await get(`api/jobs?since=${encodeURIComponent(jobList.version)}`);
  if (answer.whole) jobList.rows.clear();
  for (const row of answer.rows) jobList.rows.set(row.id, row);
  Object.assign(jobList, { version: answer.version, leftOut: answer.left_out, now: answer.now_unix_ms });
  return answer;
}

// The number at the end of an id, by which the newest job comes first.
function jobNumber(id) {
  return Number(id.slice(id.lastIndexOf("-") + 1));
}

class JobTable {
  constructor(picked, onPick) {
    this.picked = picked;
    this.onPick = onPick;
    this.shown = new Map(); // Id -> its row in the table.
    const columns = [["", null, "to compare"], ["job"], ["state"], ["done"], ["time", "number"], ["left", "number"], ["accuracy", "number"], ["what"], ["owner"], ["reason"]];
    const { body, element } = table("Jobs", columns);
    Object.assign(this, { body, element });
  }

  box(id) {
    const input = h("input", { type: "checkbox", "aria-label": `mark ${id} to compare it`, "data-key": `mark ${id}` });
    input.checked = this.picked.has(id);
    input.addEventListener("change", () => {
      if (input.checked && this.picked.size < COMPARED_MAX) this.picked.add(id);
      else this.picked.delete(id);
      input.checked = this.picked.has(id);
      this.onPick();
    });
    return input;
  }

  make(row) {
    return h(
      "tr",
      {},
      cell(this.box(row.id)),
      cell(jobLink(row.id), "id"),
      cell(badge(row.state)),
      cell(progressBar(row), "short"),
      cell(duration(age(row, jobList.now)), "number"),
      cell(leftText(row, jobList.now), "number"),
      cell(accuracy(row), "number"),
      cell(row.what, "text"),
      cell(row.owner),
      cell(reasonText(row.state, row.reason), "text"),
    );
  }

  // Shows these rows. Only those in `changed` are made anew; the times of the others go on.
  update(rows, changed) {
    const wanted = new Set(rows.map((row) => row.id));
    for (const [id, element] of this.shown) {
      if (wanted.has(id)) continue;
      element.remove();
      this.shown.delete(id);
    }
    const key = document.activeElement?.dataset?.key;
    let next = this.body.firstElementChild;
    for (const row of rows) {
      let element = this.shown.get(row.id);
      if (!element || changed.has(row.id)) {
        const made = this.make(row);
        if (element) {
          if (next === element) next = made;
          element.replaceWith(made);
        }
        this.shown.set(row.id, made);
        element = made;
      } else if (!ended(row)) {
        setText(element.cells[4], duration(age(row, jobList.now)));
        setText(element.cells[5], leftText(row, jobList.now));
      }
      if (element === next) next = next.nextElementSibling;
      else this.body.insertBefore(element, next);
    }
    if (key && document.activeElement?.dataset?.key !== key) this.body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function jobsPage() {
  document.title = "Jobs - Hooke";
  const picked = new Set();
  const compare = h("a", { class: "button" }, `Compare the marked jobs, at most ${COMPARED_MAX}`);
  const showCompare = () => {
    compare.hidden = picked.size < 2;
    compare.href = `#/compare/${[...picked].map(encodeURIComponent).join(",")}`;
  };
  showCompare();
  const jobs = new JobTable(picked, showCompare);
  const more = h("p", { class: "quiet" });
  const filter = h("input", { type: "search", id: "filter", placeholder: "name, owner or state", autocomplete: "off" });
  const find = h("p", {}, h("label", { for: "filter" }, "Show only: "), filter);
  const all = h("button", { type: "button", hidden: "" });
  let limit = ROWS_AT_FIRST;
  page.replaceChildren(h("h1", {}, "Jobs"), find, jobs.element, h("p", {}, all), more, h("p", {}, compare));
  const show = (changed) => {
    const words = filter.value.toLowerCase();
    const sorted = [...jobList.rows.values()].sort((a, b) => jobNumber(b.id) - jobNumber(a.id));
    const rows = sorted.filter((row) => [row.id, row.owner, wordOf(row.state)].some((text) => text.toLowerCase().includes(words)));
    jobs.element.classList.toggle("without-owners", !sorted.some((row) => row.owner));
    jobs.update(rows.slice(0, limit), changed);
    hide(all, rows.length <= limit, jobs.element);
    setText(all, `Show ${rows.length - limit} more`);
    const older = jobList.leftOut ? `${jobList.leftOut} older jobs are not shown.` : "";
    more.textContent = sorted.length ? older : "There are no jobs yet: submit one here, or with hooke submit FILE.";
  };
  filter.addEventListener("input", () => show(new Set()));
  all.addEventListener("click", () => {
    limit = Infinity;
    show(new Set());
  });
  return {
    async update() {
      const answer = await updateJobList();
      show(new Set(answer.rows.map((row) => row.id)));
    },
    leave() {},
  };
}

function comparePage(ids) {
  document.title = "Jobs compared - Hooke";
  const place = h("div", { class: "charts" });
  const axis = h("button", { type: "button", id: "axis" });
  const links = ids.map((id) => h("li", {}, h("a", { href: `#/jobs/${encodeURIComponent(id)}` }, id)));
  page.replaceChildren(h("h1", {}, "Jobs compared"), h("ul", {}, ...links), h("p", {}, axis), place);
  const charts = new JobCharts(place, ids);
  axisButton(axis, charts);
  const update = async (id) => {
    charts.add(id, (await get(charts.historyPath(id))).series);
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

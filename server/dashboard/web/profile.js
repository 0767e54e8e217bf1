// A job's profile: what its collectives cost, and where the time of its last steps goes.
"use strict";

const PROFILE_EVERY_MS = 10000; // Ranks send their profiles every few seconds at first, and later every 30.
const PROFILE_OF = "The built-in trainer has a profile, and so have programs that use libhooke or import hooke.";

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

// Most sizes are powers of two.
function sizeText(count) {
  return bytes(count, true);
}

// A row has sizes from the first up to below the second.
function sizesText({ bytes_min: first, bytes_max: last }) {
  return first === last ? sizeText(last) : `${sizeText(first)}\u2013${sizeText(last + 1)}`;
}

function collectiveRow(row) {
  const us = (value) => cell(number(value, 1), "number");
  return h(
    "tr",
    {},
    cell(row.operation, "short"),
    cell(sizesText(row), "number"),
    cell(String(row.calls), "number"),
    cell(sizeText(row.bytes), "number"),
    us(row.min_us),
    us(row.median_us),
    us(row.p99_us),
    cell(row.bytes ? String(Number(row.gb_per_s.toPrecision(3))) : "-", "number"),
    cell(percent(row.step_share), "number"),
    cell(row.fused ? "yes" : "no"),
    cell(row.algorithms.join(", "), "text"),
  );
}

function stepRow(split) {
  const last = split.ranks < 2 || !split.collectives ? "-" : `rank ${split.last_rank}, ${percent(split.last_share)}`;
  const shares = [split.compute_share, split.waiting_share, split.collective_share, split.exchange_share];
  return h("tr", {}, cell(`group ${split.group}`, "short"), cell(split.seconds.toFixed(1), "number"), ...shares.map((share) => cell(percent(share), "number")), cell(last));
}

class Profile {
  constructor(id) {
    this.id = id;
    this.next = 0; // When to ask again.
    this.wasOver = false; // The job had ended when it was last asked for.
    this.atEnd = false; // It was read after the job's end: it does not change any more.
    this.about = h("p", { class: "quiet", id: "profile-about" });
    this.steps = table("Time of the last steps", [["group"], ["seconds", "number"], ["compute", "number"], ["waiting", "number"], ["collective", "number"], ["exchange", "number"], ["last to come"]]);
    this.sizes = table("Collectives by size", [["operation"], ["bytes", "number"], ["calls", "number"], ["all", "number"], ["min \u00b5s", "number"], ["median \u00b5s", "number"], ["p99 \u00b5s", "number"], ["GB/s", "number"], ["of steps", "number"], ["fused"], ["by"]]);
    for (const { element } of [this.steps, this.sizes]) element.classList.add("dense");
    this.servers = h("p", { class: "quiet" });
    this.tables = h("div", { hidden: "" }, h("h3", {}, "Where the time of the last steps goes"), this.steps.element, this.servers, h("h3", {}, "Collectives, of all ranks together"), this.sizes.element);
    this.element = h("section", { id: "profile", "aria-label": "Profile" }, this.about, this.tables);
  }

  show({ note, all, steps, servers }) {
    this.tables.hidden = !all;
    if (!all) {
      this.about.textContent = note;
      return;
    }
    const without = all.calls_left_out ? `; ${all.calls_left_out} calls had no room` : "";
    this.about.textContent = `${counted(all.ranks, "rank")} of ${counted(all.groups, "group")}, together ${Number(all.step_seconds.toPrecision(3))} s in steps${without}`;
    setRows(this.steps.body, steps.map(stepRow), "No time of the last steps is known from all ranks of a group yet.");
    setRows(this.sizes.body, all.collectives.map(collectiveRow));
    this.servers.textContent = servers.length ? `Cores that the servers keep busy: ${servers.map(({ address, cores }) => `${address} ${number(cores, 2)}`).join(", ")}` : "";
  }

  // Asks for the profile now and then, and once after the job's end. What is wrong with a profile is said in its place.
  async update(isOver) {
    const ends = isOver && !this.wasOver;
    if (this.atEnd || (!ends && performance.now() < this.next)) return;
    this.next = performance.now() + PROFILE_EVERY_MS;
    this.wasOver = isOver;
    try {
      const profile = await get(`api/profile/${encodeURIComponent(this.id)}`);
      this.show(profile.all ? profile : { note: `${profile.note}. ${PROFILE_OF}` });
      this.atEnd = isOver;
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 401) throw error;
      if (error.status !== 503 || this.tables.hidden) this.show({ note: error.message });
    }
  }
}

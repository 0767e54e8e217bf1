// What happened to a job: its starts, deaths, ends and notices over time, as marks on a strip and as a list.
"use strict";

const LANES = [
  { kind: "start", name: "starts" },
  { kind: "death", name: "deaths" },
  { kind: "end", name: "ends" },
  { kind: "notice", name: "notices" },
];
const STRIP_WIDTH = 1000;
const LANE_HEIGHT = 18;

class Timeline {
  constructor(id, strip, list) {
    this.path = `api/events/${encodeURIComponent(id)}`;
    this.strip = strip;
    this.list = list;
    this.offset = 0;
    this.events = [];
    this.deaths = new Map(); // Group -> its last death.
    this.drawn = "";
  }

  // Reads what is new. A long log comes in pieces.
  async update() {
    while (this.strip.isConnected) {
      const answer = await get(`${this.path}?offset=${this.offset}`);
      for (const event of answer.events) {
        this.events.push(event);
        // The coordinator's word on a group's end has the reasons of all its ranks.
        if (event.kind === "death" && event.group !== undefined && / at step /.test(event.text)) this.deaths.set(event.group, event);
      }
      const read = answer.next_offset !== this.offset;
      this.offset = answer.next_offset;
      if (!read) return;
    }
  }

  draw(begin, end) {
    const now = `${this.events.length} ${begin} ${Math.round(end / 5000)}`;
    if (now === this.drawn) return;
    this.drawn = now;
    const counts = LANES.map(({ kind, name }) => `${this.events.filter((event) => event.kind === kind).length} ${name}`).join(", ");
    const picture = svg("svg", { viewBox: `0 0 ${STRIP_WIDTH} ${LANES.length * LANE_HEIGHT}`, role: "img", "aria-label": `What happened over time: ${counts}; the list below has them` });
    const marks = new Set(); // One mark for each place: more would not be seen.
    LANES.forEach((lane, index) => {
      const y = index * LANE_HEIGHT;
      picture.append(svg("line", { class: "lane", x1: "90", x2: String(STRIP_WIDTH), y1: String(y + 9), y2: String(y + 9) }));
      const label = svg("text", { class: "label", x: "0", y: String(y + 13) });
      label.textContent = lane.name;
      picture.append(label);
      for (const event of this.events) {
        if (event.kind !== lane.kind) continue;
        const share = Math.min(1, Math.max(0, (event.unix_ms - begin) / Math.max(1, end - begin)));
        const x = Math.round(95 + share * (STRIP_WIDTH - 100));
        if (marks.has(`${index} ${x}`)) continue;
        marks.add(`${index} ${x}`);
        const mark = svg("rect", { class: `mark ${event.kind}`, x: String(x - 2), y: String(y + 2), width: "4", height: "14" });
        const title = svg("title", {});
        title.textContent = `${clock(event.unix_ms)}  ${event.text}`;
        mark.append(title);
        picture.append(mark);
      }
    });
    this.strip.replaceChildren(picture);
    const shown = this.events.slice(-EVENTS_SHOWN).reverse();
    const items = shown.map((event) => h("li", { class: event.kind === "death" ? "bad" : null, "data-kind": event.kind }, `${clock(event.unix_ms)}  ${event.text}`));
    const older = this.events.length - shown.length;
    if (older > 0) items.push(h("li", { class: "quiet" }, `and ${older} before; the log has all`));
    this.list.replaceChildren(...(items.length ? items : [h("li", { class: "quiet" }, "nothing yet")]));
  }
}

// The page of workers, servers, and the links between workers.
"use strict";

const SERVER_NOTE = "Snapshot: how old the state on disk is. Over the last ten seconds: messages of values that the server answered, and their bytes. Half of the messages, and 99 of 100, were answered within p50 and p99. Waits for other groups count, the network does not.";

// What a server has answered lately, column by column; "-" if that is nothing.
function exchangeTexts(figures) {
  if (!figures?.messages_per_second) return ["-", "-", "-", "-", "-"];
  // The histogram of answers begins with 0.1 ms.
  const ms = (value) => (value < 0.1 ? "< 0.1 ms" : `${number(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ms`);
  const megabytes = (count) => number((count ?? 0) / 1e6, 2);
  return [number(figures.messages_per_second, 1), megabytes(figures.received_bytes_per_second), megabytes(figures.sent_bytes_per_second), ms(figures.median_ms), ms(figures.p99_ms)];
}

// Tells the groups of a worker, job by job: "job-3: groups 0–2, 5 (8 ranks)". Numbers in a row are joined.
function groupsOf(node) {
  const jobs = new Map();
  for (const { job_id, group, ranks } of node.groups ?? []) {
    const job = jobs.get(job_id) ?? { spans: [], ranks: 0 };
    const last = job.spans.at(-1);
    const number = group ?? 0;
    if (last && number <= last[1] + 1) last[1] = number;
    else job.spans.push([number, number]);
    job.ranks += ranks;
    jobs.set(job_id, job);
  }
  const lines = [...jobs].map(([id, { spans, ranks }]) => {
    const numbers = spans.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
    const several = spans.length > 1 || spans[0][0] < spans[0][1];
    return h("div", {}, jobLink(id, `${node.name} ${id}`), `: ${several ? "groups" : "group"} ${numbers} (${ranks} ${ranks === 1 ? "rank" : "ranks"})`);
  });
  return h("div", {}, ...lines);
}

function nodesPage() {
  document.title = "Nodes - Hooke";
  const workers = table("Workers", [["worker"], ["state"], ["site"], ["slots", "number"], ["GPUs", "number"], ["runs"], ["MPI"], ["version"], ["remark"]]);
  const serverColumns = [["server"], ["state"], ["centers", "number"], ["memory", "number"], ["on disk", "number"], ["snapshot", "number"], ["cores", "number"], ["messages/s", "number"], ["MB/s in", "number"], ["MB/s out", "number"], ["p50", "number"], ["p99", "number"], ["version"], ["remark"]];
  const servers = table("Servers", serverColumns);
  servers.element.classList.add("dense");
  const links = table("Links between workers", [["from"], ["to"], ["round trip", "number"], ["bandwidth", "number"], ["measured"]]);
  page.replaceChildren(h("h1", {}, "Nodes"), h("h2", {}, "Workers"), workers.element, h("h2", {}, "Servers"), servers.element, h("p", { class: "quiet" }, SERVER_NOTE), h("h2", {}, "Links"), links.element);
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
      cell(String(node.gpus ?? 0), "number"),
      cell(groupsOf(node), "text"),
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
      cell(`${node.centers ?? 0}${node.disk_centers ? `, ${node.disk_centers} on disk` : ""}`, "number"),
      cell(bytes(node.center_bytes), "number"),
      cell(bytes(node.disk_bytes), "number"),
      cell(node.snapshot_age_seconds ? duration(1000 * node.snapshot_age_seconds) : "-", "number"),
      cell(number(node.cores, 2), "number"),
      ...exchangeTexts(node.exchanges).map((text) => cell(text, "number")),
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
  return {
    async update() {
      const answer = await get("api/nodes");
      const nodes = answer.nodes ?? [];
      workers.element.classList.toggle("without-gpus", !nodes.some((node) => node.gpus > 0));
      setRows(workers.body, nodes.filter((node) => node.kind === "WORKER").map(workerRow), "No worker has joined: start one with hooke-worker.");
      setRows(servers.body, nodes.filter((node) => node.kind === "SERVER").map(serverRow), "none");
      setRows(links.body, (answer.links ?? []).map(linkRow), "No group has run on several workers.");
    },
    leave() {},
  };
}

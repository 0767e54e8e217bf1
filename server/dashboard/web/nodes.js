// The page of workers, servers, and the links between workers.
"use strict";

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
      cell(`${node.centers ?? 0}${node.disk_centers ? `, ${node.disk_centers} on disk` : ""}`, "number"),
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

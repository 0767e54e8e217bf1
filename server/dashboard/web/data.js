// What the page asks the coordinator.
"use strict";

const PATIENCE_MS = 20000;

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}, patienceMs = PATIENCE_MS) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...options, headers, signal: AbortSignal.timeout(patienceMs) });
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // An answer of the HTTP server itself is plain text.
  }
  throw new Refused(answer.status, message);
}

async function get(path) {
  return (await ask(path)).json();
}

// Asks the coordinator to do something. No other site's page can read the key, and none can send the header.
async function act(path, body = "") {
  const { action_key: key } = await get("api/page");
  const headers = { "X-Hooke-Action": key, "Content-Type": "text/plain" };
  return (await ask(path, { method: "POST", headers, body })).json();
}

// Hands a file to the reader, under this name.
function download(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// A button that fetches a file. What goes wrong is said beside it.
function downloadButton(label, fetchParts, name, type) {
  const button = h("button", { type: "button" }, label);
  const said = h("span", { class: "bad", role: "status" });
  const fetchIt = async () => {
    try {
      download(name, await fetchParts(), type);
      said.textContent = "";
    } catch (error) {
      said.textContent = ` ${error.message} `;
    }
  };
  button.addEventListener("click", () => whileBusy([button], fetchIt));
  return h("span", {}, button, said);
}

// A button that lets the browser itself download the model: it may be larger than the memory of a page. The coordinator
// says first whether the servers have it all.
function modelButton(id) {
  const button = h("button", { type: "button", id: "model" }, "Model (safetensors)");
  const said = h("span", { role: "status", id: "model-said" });
  const fetchIt = async () => {
    said.className = "quiet";
    said.textContent = " asking the servers ... ";
    try {
      const { ticket, file, bytes: size, notes } = await act(`api/export/${encodeURIComponent(id)}`);
      h("a", { href: `api/download/${ticket}`, download: file }).click();
      said.textContent = ` the browser downloads ${file}, ${bytes(size)}.${notes.map((note) => ` Note: ${note}.`).join("")} `;
    } catch (error) {
      said.className = "bad";
      said.textContent = ` ${error.message} `;
    }
  };
  button.addEventListener("click", () => whileBusy([button], fetchIt));
  return h("span", {}, button, said);
}

async function csvOf(id) {
  return [await (await ask(`api/csv/${encodeURIComponent(id)}`)).text()];
}

async function traceOf(id) {
  // A trace may have many megabytes, and the connection may be slow.
  return [await (await ask(`api/trace/${encodeURIComponent(id)}`, {}, 30 * PATIENCE_MS)).blob()];
}

async function wholeLog(id) {
  const parts = [];
  for (let offset = 0; ; ) {
    const piece = await get(`api/log/${encodeURIComponent(id)}?offset=${offset}`);
    if (piece.text === "") return parts;
    parts.push(piece.text);
    offset = piece.next_offset;
  }
}

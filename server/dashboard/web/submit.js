// The page that submits a job file: chosen, dropped or pasted. The coordinator checks it as `hooke submit` does.
"use strict";

const AROUND = 2; // Lines of the file that are shown around a fault.

// Takes "FILE:12: KEY: the fault" apart. Lines of another form have no line number.
function faultsOf(message) {
  return message.split("\n").map((text) => {
    const match = /^.*?:(\d+):(?:(\d+):)? (.*)$/.exec(text);
    return match ? { line: Number(match[1]), text: match[3] } : { line: 0, text };
  });
}

// Shows the faults below the lines that they are about.
function faultList(source, message, goTo) {
  const lines = source.split("\n");
  const faults = faultsOf(message);
  const list = h("ol", { class: "code", id: "faults" });
  const byLine = new Map();
  for (const fault of faults) {
    if (fault.line) byLine.set(fault.line, [...(byLine.get(fault.line) ?? []), fault.text]);
    else list.append(h("li", { class: "bad" }, fault.text));
  }
  const near = (line) => [...byLine.keys()].some((at) => Math.abs(at - line) <= AROUND);
  lines.forEach((text, index) => {
    const line = index + 1;
    if (!near(line)) return;
    const number = h("button", { type: "button", class: "line", "aria-label": `go to line ${line}` }, String(line));
    number.addEventListener("click", () => goTo(line));
    list.append(h("li", {}, number, h("code", {}, text)));
    for (const fault of byLine.get(line) ?? []) list.append(h("li", { class: "bad fault", "data-line": String(line) }, fault));
  });
  return list;
}

function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function submitPage() {
  document.title = "Submit a job - Hooke";
  const file = h("input", { type: "file", id: "file", accept: ".yaml,.yml" });
  const text = h("textarea", { id: "job", spellcheck: "false", rows: "16", "aria-label": "The job file" });
  const check = h("button", { type: "button", id: "check" }, "Check");
  const submit = h("button", { type: "button", id: "submit", hidden: "" }, "Submit"); // Until it is known whether the page may.
  const said = h("p", { role: "status", id: "said" });
  const result = h("div");
  const note = h("p", { class: "bad" });
  const hint = "Paths in it must be absolute, and are those of the workers' nodes. Files that the key files names are on your disk, out of this page's reach: submit such a job with hooke submit.";
  page.replaceChildren(h("h1", {}, "Submit a job"), note, h("p", {}, h("label", { for: "file" }, "Job file (YAML): "), file), h("p", { class: "quiet" }, hint), text, h("p", { class: "actions" }, check, submit), said, result);
  let name = "job.yaml";
  let submission = randomId(); // The same for a second try of the same job: it is then stored once.
  const say = (words, bad) => {
    said.textContent = words;
    said.className = bad ? "bad" : "good";
  };
  const changed = () => {
    submission = randomId();
    say("", false);
  };
  const take = async (chosen) => {
    if (!chosen) return;
    name = chosen.name;
    text.value = await chosen.text();
    changed();
    result.replaceChildren();
  };
  file.addEventListener("change", () => take(file.files[0]));
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  text.addEventListener("input", changed);
  const goTo = (line) => {
    const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = text.value.indexOf("\n", before);
    text.focus();
    text.setSelectionRange(before, end < 0 ? text.value.length : end);
  };
  const ask = (what, whenDone) => whileBusy([check, submit], async () => {
    try {
      whenDone(await act(`api/${what}?name=${encodeURIComponent(name)}&submission=${submission}`, text.value));
    } catch (error) {
      const refused = error instanceof Refused;
      say(refused ? (what === "check" ? "The job file has faults:" : "Nothing was submitted:") : "The coordinator does not answer. Submit again: the job is stored once.", true);
      result.replaceChildren(refused ? faultList(text.value, error.message, goTo) : "");
    }
  });
  check.addEventListener("click", () =>
    ask("check", (spec) => {
      say("The job file is right. With its defaults the job is:", false);
      result.replaceChildren(h("pre", { id: "spec", tabindex: "0", role: "region", "aria-label": "The job with its defaults" }, JSON.stringify(spec, null, 2)));
    }),
  );
  submit.addEventListener("click", () =>
    ask("submit", (answer) => {
      location.hash = `#/jobs/${encodeURIComponent(answer.job_id)}`;
    }),
  );
  return {
    async update() {
      const { read_only: why } = await get("api/page");
      note.textContent = why;
      hide(submit, why !== "");
    },
    leave() {},
  };
}

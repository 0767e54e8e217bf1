// The pages of the dashboard. The part of the address after # names the page; each page asks for its data again every
// two seconds while somebody can see it.
"use strict";

const EVERY_MS = 2000;

const page = document.getElementById("page");
const state = document.getElementById("state");
const asOf = document.getElementById("time");
let shown = null; // The page that is shown: {update(), leave()}.
let timer = 0;

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
  const here = ["nodes", "submit"].includes(name) ? name : "jobs";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "nodes") shown = nodesPage();
  else if (name === "submit") shown = submitPage();
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

// Keeps tierd's pages up to date. Without this script they are the same pages, as they were when they were loaded.
"use strict";

const POLL_SECONDS = 10;
const live = document.getElementById("live");
let busy = false;
let again = false;
let number = document.body.dataset.number;  // of the status that the page shows

function show(on, words) {
  live.className = on ? "live-on" : "";
  live.lastElementChild.textContent = words;
}

// Whether somebody types or has opened something in an element: it is then left alone.
function inUse(section) {
  return section.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
}

function keepOpen(before, after) {
  for (const each of before.querySelectorAll("details[open][id]")) {
    const same = after.querySelector("#" + CSS.escape(each.id));
    if (same) same.open = true;
  }
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const after of page.querySelectorAll("[data-live]")) {
      const before = document.getElementById(after.id);
      if (!before || before.outerHTML === after.outerHTML || inUse(before)) continue;
      keepOpen(before, after);
      const focused = before.contains(document.activeElement) ? document.activeElement.id : "";
      const made = document.adoptNode(after);
      before.replaceWith(made);
      addCopyButtons(made);
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    }
    document.title = page.title;
    number = page.body.dataset.number;
    show(true, "live");
  } catch (error) {
    show(false, "no answer from tierd; trying again");
  } finally {
    busy = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }
}

// A browser connects again by itself when an answer has ended, and not when it was refused: then the page asks.
function listen() {
  const events = new EventSource("/events?after=" + number);
  events.onmessage = () => { if (!document.hidden) refresh(); };
  events.onopen = () => show(true, "live");
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      refresh();
      setTimeout(listen, POLL_SECONDS * 1000);
    }
  };
}

function addCopyButtons(within) {
  for (const code of within.querySelectorAll("code.line:not([data-copy])")) {
    if (!navigator.clipboard) return;
    code.dataset.copy = "yes";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", "copy " + code.textContent);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    code.after(" ", button);
  }
}

addCopyButtons(document);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
listen();

// Keeps tierd's pages up to date. Without this script they are the same pages, as they were when they were loaded.
"use strict";

const POLL_SECONDS = 5;  // a cycle of tierd
const live = document.getElementById("live");
let busy = false;
let again = false;

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
    if (!answer.ok && ![400, 404].includes(answer.status)) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const after of page.querySelectorAll("[data-live]")) {
      const before = document.getElementById(after.id);
      if (!before || before.outerHTML === after.outerHTML || inUse(before)) continue;
      keepOpen(before, after);
      const was = pointed;
      const focused = before.contains(document.activeElement) ? document.activeElement.id : "";
      const made = document.adoptNode(after);
      before.replaceWith(made);
      addCopyButtons(made);
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
      if (was && made.querySelector("#" + CSS.escape(was.id))) point(was.id, was.time);
    }
    document.title = page.title;
    show(true, "live");
  } catch (error) {
    show(false, "no answer from tierd; trying again");
  } finally {
    busy = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }
}

// The value under the cursor. Everything hangs on the document: parts of the page are replaced.

let pointed = null;  // id of a chart, and the time that is pointed at

function valueText(value, unit) {
  if (unit !== "B/s") return value.toFixed(value > 0 && value < 10 ? 1 : 0) + unit;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (value >= 999.5 && power < 5) { value /= 1000; power += 1; }
  return value.toFixed(power < 2 || value >= 99.95 ? 0 : 1) + " " + units[power] + "/s";
}

function svgPart(chart, name, kind) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  made.setAttribute("class", "pointer " + kind);
  return chart.appendChild(made);
}

// Show the point that is nearest to a time; null: none.
function point(id, time) {
  const chart = document.getElementById(id);
  if (!chart) return;
  const drawn = JSON.parse(chart.dataset.curves);
  chart.querySelectorAll(".pointer").forEach(each => each.remove());
  const figure = chart.closest("figure"), value = figure.querySelector(".value");
  const near = time === null ? null : drawn.points.reduce(
    (best, each) => Math.abs(each[0] - time) < Math.abs(best[0] - time) ? each : best, drawn.points[0]);
  value.hidden = !near;
  figure.querySelector(".reading").hidden = Boolean(near);
  pointed = near ? { id, time: near[0] } : null;
  if (!near) return;
  const x = 100 * near[0] / (drawn.end - drawn.begin) + "%";
  const line = svgPart(chart, "line", "cursor");
  for (const [name, value] of [["x1", x], ["x2", x], ["y1", "0"], ["y2", "100%"]]) line.setAttribute(name, value);
  near.slice(1).forEach(height => {
    const dot = svgPart(chart, "circle", "dot");
    for (const [name, at] of [["cx", x], ["cy", 100 * (1 - height / drawn.top) + "%"], ["r", "3.5"]]) {
      dot.setAttribute(name, at);
    }
  });
  const when = new Date(1000 * (drawn.begin + near[0])).toISOString();
  value.textContent = when.slice(0, 10) + " " + when.slice(11, 19) + " UTC: "
    + near.slice(1).map((each, place) => drawn.names[place] + " " + valueText(each, drawn.unit)).join(", ");
}

function chartOf(event) {
  return event.target instanceof Element ? event.target.closest("svg.chart") : null;
}

document.addEventListener("pointermove", event => {
  const chart = chartOf(event);
  if (!chart) { if (pointed && document.activeElement.id !== pointed.id) point(pointed.id, null); return; }
  if (pointed && pointed.id !== chart.id) point(pointed.id, null);
  const drawn = JSON.parse(chart.dataset.curves);
  const place = chart.getBoundingClientRect();
  point(chart.id, (drawn.end - drawn.begin) * (event.clientX - place.left) / place.width);
});
document.addEventListener("keydown", event => {
  const chart = chartOf(event);
  if (!chart || !["ArrowLeft", "ArrowRight", "Home", "End", "Escape"].includes(event.key)) return;
  event.preventDefault();
  const times = JSON.parse(chart.dataset.curves).points.map(each => each[0]);
  const at = pointed && pointed.id === chart.id ? times.indexOf(pointed.time) : times.length;
  const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: times.length - 1 }[event.key];
  point(chart.id, event.key === "Escape" ? null : times[Math.min(Math.max(next, 0), times.length - 1)]);
});
document.addEventListener("focusout", event => {
  if (pointed && chartOf(event)) point(pointed.id, null);
});

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
function refreshIfSeen() {
  if (!document.hidden) refresh();
}

document.addEventListener("visibilitychange", refreshIfSeen);
setInterval(refreshIfSeen, POLL_SECONDS * 1000);
show(true, "live");

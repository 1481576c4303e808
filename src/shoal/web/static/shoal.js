// Keeps an open page up to date, filters it, copies tables and commands, and handles keys.
"use strict";

const root = document.documentElement;
const main = document.getElementById("main");
const filter = document.getElementById("filter");
const connection = document.getElementById("connection");
const hover = document.getElementById("hover");
const COLOURINGS = ["team", "use", "health", "temperature"];

function chosen(key, otherwise) {
  try { return localStorage.getItem("shoal-" + key) || otherwise; } catch { return otherwise; }
}

function choose(key, value) {
  try { localStorage.setItem("shoal-" + key, value); } catch { /* the browser stores nothing */ }
}

function setColouring(name) {
  root.dataset.colouring = name;
  for (const button of document.querySelectorAll("[data-colouring]:not(html)")) {
    button.setAttribute("aria-pressed", String(button.dataset.colouring === name));
  }
}

function setTheme(name) {
  if (name) root.dataset.theme = name; else delete root.dataset.theme;
}

function nextTheme() {
  const isDark = getComputedStyle(root).colorScheme === "dark"
    || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  choose("theme", isDark ? "light" : "dark");
  setTheme(isDark ? "light" : "dark");
}

// -- filter

function applyFilter(within) {
  const needle = filter.value.trim().toLowerCase();
  for (const tile of within.querySelectorAll(".tile")) {
    tile.hidden = needle !== "" && !tile.getAttribute("aria-label").toLowerCase().includes(needle);
  }
  for (const row of within.querySelectorAll("tbody tr")) {
    row.hidden = needle !== "" && !row.textContent.toLowerCase().includes(needle);
  }
}

// -- changes

function isBusy(element) {
  const selection = getSelection();
  const isSelected = selection && !selection.isCollapsed && element.contains(selection.anchorNode);
  return isSelected || element.contains(document.activeElement) && document.activeElement.matches("button, input, select");
}

function replacePart(id, markup) {
  let part = document.getElementById(id);
  if (!part) {
    part = document.createElement("section");
    part.id = id;
    if (id === "tiles") part.className = "tiles";
    main.append(part);
  }
  // A text that the user has selected stays until it is no longer selected.
  if (isBusy(part)) { waiting.set(id, markup); return; }
  waiting.delete(id);
  const scrolled = part.querySelector(".scrolled");
  const left = scrolled ? scrolled.scrollLeft : 0;
  part.innerHTML = markup;
  if (left) part.querySelector(".scrolled").scrollLeft = left;
  setColouring(root.dataset.colouring);
  load(part);
}

function replaceTile(id, markup) {
  const tile = document.getElementById(id);
  if (!tile) return;
  const isFocused = tile === document.activeElement;
  tile.outerHTML = markup;
  if (isFocused) document.getElementById(id).focus({ preventScroll: true });
}

const waiting = new Map();

function take(event) {
  const began = performance.now();
  const change = JSON.parse(event.data);
  for (const [id, markup] of Object.entries(change.parts)) if (id !== "why") replacePart(id, markup);
  for (const [id, markup] of Object.entries(change.tiles)) replaceTile(id, markup);
  if (filter.value) applyFilter(main);
  connection.textContent = "";
  root.dataset.updates = Number(root.dataset.updates || 0) + 1;
  // The time that the last update took, for measurements.
  root.dataset.updateMs = (performance.now() - began).toFixed(1);
}

let events = null;

function follow() {
  if (events || document.hidden || !main.dataset.live || location.pathname === "/sign-in") return;
  const query = new URLSearchParams({ page: main.dataset.live, digest: main.dataset.digest });
  events = new EventSource("/live?" + query);
  events.onmessage = take;
  events.onopen = () => { connection.textContent = ""; };
  events.onerror = () => { connection.textContent = "not connected"; };
  events.addEventListener("fault", (event) => { connection.textContent = JSON.parse(event.data).fault; });
  events.addEventListener("signed-out", () => { leave(); location.assign("/sign-in"); });
}

// A browser has six connections to a server. A page that is not seen gives its own back, and is sent whole when it is.
function leave() {
  if (events) events.close();
  events = null;
}

async function load(within) {
  for (const place of within.querySelectorAll("[data-load]")) {
    try {
      const answer = await fetch(place.dataset.load);
      place.innerHTML = await answer.text();
    } catch {
      place.textContent = "The explanation cannot be loaded.";
    }
  }
}

// -- copies

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    say(button, "copied");
  } catch {
    say(button, "the browser does not allow it");
  }
}

function say(button, words) {
  const before = button.dataset.words || button.textContent;
  button.dataset.words = before;
  button.textContent = words;
  setTimeout(() => { button.textContent = before; }, 1500);
}

// -- hover

let hovered = "";
let hoverTimer = 0;

function gpuAt(tile, x) {
  const drawing = tile.querySelector("svg");
  if (!drawing) return -1;
  const box = drawing.getBoundingClientRect();
  return x < box.left || x > box.right ? -1 : Math.floor((x - box.left) / box.width * Number(tile.dataset.gpus));
}

function place(tile) {
  const box = tile.getBoundingClientRect();
  hover.style.left = Math.max(4, Math.min(box.left, innerWidth - hover.offsetWidth - 8)) + "px";
  const isBelow = box.bottom + hover.offsetHeight + 8 < innerHeight;
  hover.style.top = (isBelow ? box.bottom + 4 : Math.max(4, box.top - hover.offsetHeight - 4)) + "px";
}

function mark(gpu) {
  for (const line of hover.querySelectorAll("li")) line.classList.toggle("here", line.dataset.gpu === String(gpu));
}

async function showHover(tile, gpu) {
  const name = decodeURIComponent(new URL(tile.href).pathname.replace("/node/", ""));
  if (hovered !== name || hover.hidden) {
    hovered = name;
    const answer = await fetch("/hover/" + encodeURIComponent(name));
    if (!answer.ok || hovered !== name) return;
    hover.innerHTML = await answer.text();
    hover.hidden = false;
    place(tile);
  }
  mark(gpu);
}

function hideHover() {
  clearTimeout(hoverTimer);
  hovered = "";
  hover.hidden = true;
}

function wantHover(tile, gpu) {
  clearTimeout(hoverTimer);
  hoverTimer = setTimeout(() => showHover(tile, gpu).catch(hideHover), 120);
}

// -- keys

function moveFocus(key) {
  const tiles = [...document.querySelectorAll(".tile:not([hidden])")];
  const at = tiles.indexOf(document.activeElement);
  if (at < 0) return false;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = tiles[at + (key === "ArrowLeft" ? -1 : 1)];
    if (next) next.focus();
    return true;
  }
  const box = tiles[at].getBoundingClientRect();
  const isDown = key === "ArrowDown";
  const others = isDown ? tiles.slice(at + 1) : tiles.slice(0, at).reverse();
  const next = others.find((tile) => {
    const other = tile.getBoundingClientRect();
    return (isDown ? other.top > box.top + 2 : other.top < box.top - 2) && Math.abs(other.left - box.left) < box.width;
  });
  if (next) next.focus();
  return true;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    filter.value = "";
    applyFilter(main);
    hideHover();
    if (isTyping) event.target.blur();
    return;
  }
  if (isTyping) return;
  const page = document.querySelectorAll("#pages a")[Number(event.key) - 1];
  if (page) location.assign(page.href);
  else if (event.key === "/") { filter.focus(); event.preventDefault(); }
  else if (event.key === "t") nextTheme();
  else if (event.key === "c") {
    const next = COLOURINGS[(COLOURINGS.indexOf(root.dataset.colouring) + 1) % COLOURINGS.length];
    choose("colouring", next);
    setColouring(next);
  } else if (event.key.startsWith("Arrow") && moveFocus(event.key)) event.preventDefault();
}

function onClick(event) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "theme") nextTheme();
  else if (button.dataset.colouring) {
    choose("colouring", button.dataset.colouring);
    setColouring(button.dataset.colouring);
  } else if (button.dataset.copy) copyText(button.dataset.copy, button);
  else if (button.dataset.copyCsv) {
    fetch(button.dataset.copyCsv).then((answer) => answer.text()).then((text) => copyText(text, button));
  }
}

setTheme(chosen("theme", ""));
setColouring(chosen("colouring", "team"));
document.addEventListener("keydown", onKey);
document.addEventListener("click", onClick);
filter.addEventListener("input", () => applyFilter(main));
main.addEventListener("pointermove", (event) => {
  const tile = event.target.closest(".tile");
  if (tile) wantHover(tile, gpuAt(tile, event.clientX)); else if (!hover.hidden) hideHover();
});
main.addEventListener("pointerleave", hideHover);
main.addEventListener("focusin", (event) => {
  if (event.target.matches(".tile:focus-visible")) wantHover(event.target, -1); else hideHover();
});
addEventListener("scroll", hideHover, { passive: true });
document.addEventListener("selectionchange", () => {
  for (const [id, markup] of [...waiting]) replacePart(id, markup);
});
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else follow(); });
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
load(main);
follow();

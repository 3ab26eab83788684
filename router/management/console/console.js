// The console: asks its router twice a second, and shows what it says. Nothing comes from anywhere else.

import { Model, bytes, isFresh, isGrave, isNotice, number, perSecond, plainKey, span } from "/model.js";
import { Picture } from "/picture.js";
import { TABLES, Tables } from "/tables.js";

const PAUSE_MS = 500;
const ANSWER_MS = 5000;  // for which a router may take its time
const by = (id) => document.getElementById(id);
const model = new Model();
let chosen = null, table = "Routers", lastWords = "";
let fault = null;  // why nothing is known of now: words for the pill, and a sentence
let knownAt = new Date();  // when the router last answered; at first, with this page

function choose(kind, name) {
  chosen = kind ? { kind, name } : null;
  if (kind && by("filter").value) by("filter").value = "";
  show();
  if (kind) by("detail-title").scrollIntoView({ block: "nearest" });
}

const picture = new Picture(by("picture"), choose);
const tables = new Tables(by("table-part"), choose);

// Light and dark

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme(name) { document.documentElement.dataset.theme = name; }
theme(localStorage.getItem("theme") || (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => { if (!localStorage.getItem("theme")) theme(dark.matches ? "dark" : "light"); });
by("theme").addEventListener("click", () => {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", name);
  theme(name);
});

// Tabs

Object.keys(TABLES).forEach((name, at, names) => {
  const tab = document.createElement("button");
  Object.assign(tab, { type: "button", id: `tab-${name}`, textContent: name });
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", "table-part");
  const open = (other) => { table = other; show(); };
  tab.addEventListener("click", () => open(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) { const other = names[(at + step + names.length) % names.length]; open(other); by(`tab-${other}`).focus(); }
  });
  by("tabs").append(tab);
});
by("filter").addEventListener("input", () => show());
by("detail-close").addEventListener("click", () => choose(null));
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && chosen) choose(null); });

// Showing

function element(name, words, classes = "") {
  const made = document.createElement(name);
  made.textContent = words;
  made.className = classes;
  return made;
}

function facts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([name, value, title]) => {
    if (value === undefined || value === null || value === "") return [];
    const term = element("dt", name);
    if (title) term.title = title;
    return [term, element("dd", String(value))];
  }));
}

function showHead() {
  const { state } = model, { notices } = state.totals;
  const found = state.totals.problems - notices;
  const absent = state.totals.routers - state.totals.routers_here;
  by("mesh-name").textContent = state.mesh || "amqp-mesh";
  document.title = `${fault ? "(?) " : found ? `(${found}) ` : ""}${state.mesh || "amqp-mesh"} – ${state.me}`;
  by("where").textContent = `seen from router ${state.me}, version ${state.version}, up ${span(state.uptime)}`;
  const counted = (count, noun) => `${count} ${noun}${count > 1 ? "s" : ""}`;
  const isBack = state.problems.some((it) => isFresh(it, state.at));
  const words = (found ? counted(found, "problem") : isBack ? "just recovered" : "all is well") + (notices ? ` · ${counted(notices, "notice")}` : "");
  const level = !found ? (isBack ? "warn" : "ok") : absent || state.problems.some((it) => isGrave(it.kind)) ? "bad" : "warn";
  if (!fault) say(words, level);
  const total = (name, value) => { const made = document.createElement("div"); made.append(element("dt", name), element("dd", value)); return made; };
  by("totals").replaceChildren(
    total("routers", `${state.totals.routers_here} of ${state.totals.routers}`),
    total("entering here", perSecond(model.rate("me", "in"))),
    total("leaving here", perSecond(model.rate("me", "out"))),
    total("waiting", waiting(state.routers)),
    total("connections here", number(state.totals.connections)),
    total("held", `${bytes(state.totals.held_bytes)}`),
  );
}

// Messages that wait, here and at the routers that have told, and where.
function waiting(routers) {
  const told = routers.map((it) => [model.waitingAt(it) || 0, it.id]).filter(([count]) => count).sort((a, b) => b[0] - a[0]);
  if (!told.length) return "0";
  const sum = told.reduce((so_far, [count]) => so_far + count, 0), [most, where] = told[0];
  const place = told.length === 1 ? `at ${where}` : 2 * most > sum ? `most at ${where}` : `at ${told.length} routers`;
  return `${number(sum)}, ${place}`;
}

function say(words, level) {
  const pill = by("state");
  if (words + level === lastWords) return;  // else a screen reader says it each second
  lastWords = words + level;
  pill.textContent = words;
  pill.className = `pill ${level}`;
}

// Shown even before the first answer: the page may be there, and the router refuse to say more.
function showFault() {
  document.body.classList.toggle("stale", Boolean(fault));
  by("fault").hidden = !fault;
  if (!fault) return;
  const words = `Nothing is known since ${knownAt.toTimeString().slice(0, 8)}: ${fault.sentence}.`;
  if (by("fault-words").textContent !== words) by("fault-words").textContent = words;  // else it is read out each time
  by("fault-meta").textContent = model.state ? "What is grey was so then. This page goes on asking." : "This page goes on asking.";
  say(fault.pill, "bad");
}

function showProblems() {
  const { problems, at } = model.state, list = by("problem-list");
  const more = model.state.totals.problems - problems.length;
  const told = JSON.stringify([Boolean(fault), more, problems.map((it) => [it.router, it.sentence, it.beside, it.also])]);
  const ages = problems.map((it) => `${it.since ? `since ${span(at - it.since)} · ` : ""}${it.last ? `last ${ago(at - it.last)} · ` : ""}told by router ${it.router}${it.also.length ? ` · publishers wait for it at router${it.also.length > 1 ? "s" : ""} ${it.also.slice(0, 6).join(", ")}${it.also.length > 6 ? " ..." : ""} too` : ""}`);
  if (list.dataset.told !== told) {
    list.dataset.told = told;
    list.replaceChildren(...problems.map((it) => {
      const line = element("li", "", isGrave(it.kind) ? "bad" : isNotice(it.kind) ? "notice" : "");
      line.dataset.kind = it.kind;
      const command = element("div", "", "meta");
      if (it.command) command.append(element("code", it.command));
      line.append(element("div", sentence(it.sentence)), ...(it.beside || []).map((words) => element("div", sentence(words), "beside")), element("div", "", "meta age"), command);
      return line;
    }));
    if (more > 0) list.append(element("li", `And ${number(more)} more, less urgent.`, "none"));
    if (!problems.length && !fault) list.append(element("li", "Nothing: every router and link that is expected is here, and nobody waits.", "none"));
  }
  list.querySelectorAll(".age").forEach((line, number_) => { line.textContent = ages[number_]; });
}

const ago = (seconds) => (seconds < 1 ? "just now" : `${span(seconds)} ago`);
const sentence = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "");

function showDetail() {
  by("detail").hidden = !chosen;
  if (!chosen) return;
  const { state } = model, { kind, name } = chosen;
  by("detail-title").textContent = { router: `Router ${name}`, link: `Link ${name}`, address: plainKey(name), connection: `Connection ${name}` }[kind];
  by("detail-facts").replaceChildren();
  const list = { router: state.routers, link: state.links, address: state.addresses, connection: state.connections }[kind];
  const row = list.find((it) => name === { router: it.id, link: `${it.one} - ${it.other}`, address: it.key, connection: it.id }[kind]);
  if (!row) { facts(by("detail-facts"), [["state", "gone"]]); return; }
  const words = { router: `router ${name}`, link: `link ${name}`, address: `address ${plainKey(name)}`, connection: `client ${row.container} at ${state.me}` }[kind];
  const isOwn = (it) => it.about[0] === words || it.explains.includes(words) || (kind === "router" && it.router === name);
  const own = state.problems.filter(isOwn).map((it) => ["problem", sentence(it.sentence)]);
  const named = { router: "Routers", link: "Links", address: "Addresses", connection: "Connections" }[kind];
  const shown = TABLES[named].columns(model).map((column) => [column.name, column.show(column.of(row)), column.title]);
  const links = kind === "router" ? state.links.filter((it) => it.one === name || it.other === name).map((it) => [`link to ${it.one === name ? it.other : it.one}`, `${it.state}, cost ${it.cost ?? it.configured_cost ?? "?"}${model.linkRate(it) ? `, ${perSecond(model.linkRate(it))}` : ""}`]) : [];
  facts(by("detail-facts"), [...own, ...shown, ...links]);
}

function show() {
  showFault();
  if (!model.state) return;
  showHead();
  picture.draw(model, chosen);
  showProblems();
  showDetail();
  for (const tab of by("tabs").children) {
    const isOpen = tab.id === `tab-${table}`;
    tab.setAttribute("aria-selected", isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
  }
  by("table-part").setAttribute("aria-labelledby", `tab-${table}`);
  tables.draw(model, table, by("filter").value.trim().toLowerCase());
  const known = TABLES[table].rows(model).length, total = TABLES[table].total(model);
  by("shown").textContent = total > known ? `${number(known)} listed of ${number(total)}, those that matter most` : "";
  showMore();
}

// A table that is wider than its part says so: not every browser shows a scroll bar.
function showMore() {
  const part = by("table-part"), isMore = part.scrollLeft + part.clientWidth < part.scrollWidth - 2;
  part.classList.toggle("more", isMore);
  by("more").hidden = !isMore;
}
by("table-part").addEventListener("scroll", showMore);
new ResizeObserver(showMore).observe(by("table-part"));

// What the router says of itself and of the mesh; what keeps it from saying so, if anything does.
async function asked() {
  const router = model.state ? `router ${model.state.me}` : "this router";
  let answer, text;
  try {
    answer = await fetch("/api/mesh", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    text = await answer.text();
  } catch {
    return { fault: { pill: "does not answer", sentence: `${router} does not answer` } };
  }
  if (answer.status === 401) return { fault: { pill: "sign in again", sentence: `${router} wants to know who asks: reload this page, and sign in` } };
  const said = text.split("\n", 1)[0];
  if (answer.status < 500 && !answer.ok) return { fault: { pill: "refused", sentence: `${router} refuses to tell: ${said || answer.status}` } };
  if (!answer.ok) return { fault: { pill: `error ${answer.status}`, sentence: `${router} answers with error ${answer.status}${said ? `: ${said}` : ""}` } };
  try {
    return { state: JSON.parse(text) };
  } catch {
    return { fault: { pill: "answer unreadable", sentence: `what ${router} answers can't be read: reload this page` } };
  }
}

async function ask() {
  const found = await asked(), before = model.state;
  setTimeout(ask, document.hidden ? 5 * PAUSE_MS : PAUSE_MS);
  fault = found.fault || null;
  try {
    if (found.state) model.take(found.state);
    show();
    if (found.state) knownAt = new Date();
  } catch (error) {  // what stands there was so before, and must not pass for now
    console.error(error);
    model.state = before;
    fault = { pill: "can't be shown", sentence: "what the router answers can't be shown: reload this page" };
    show();
  }
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) show(); });
ask();

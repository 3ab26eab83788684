// Tables beside the picture: the same for who does not see it, and more for who looks closer.

import { bytes, number, perSecond, plainKey, span } from "/model.js";

const text = (name, of, more = {}) => ({ name, of, show: (value) => value ?? "", ...more });
const count = (name, of, show = number, more = {}) => ({ name, of, show, isNumber: true, ...more });

// Why it is absent; of what is back, why it was.
const why = (row) => row.reason || (row.last_reason ? `last loss: ${row.last_reason}` : "");

export const TABLES = {
  Routers: {
    rows: (model) => model.state.routers,
    key: (row) => row.id,
    level: (row, model) => model.routerLevel(row),
    choose: (row) => ["router", row.id],
    total: (model) => model.state.totals.routers,
    columns: (model) => [
      text("router", (row) => row.id),
      text("state", (row) => (row.id === model.state.me ? "this router" : row.here ? "here" : "absent")),
      count("since", (row) => model.state.at - row.since, span),
      count("cost", (row) => row.cost),
      text("next hop", (row) => (row.hop === "(self)" ? "" : row.hop)),
      count("entering", (row) => model.rate(row.id === model.state.me ? "me" : `router ${row.id}`, "in"), perSecond),
      count("leaving", (row) => model.rate(row.id === model.state.me ? "me" : `router ${row.id}`, "out"), perSecond),
      count("passing", (row) => model.rate(row.id === model.state.me ? "me" : `router ${row.id}`, "transit"), perSecond, { title: "Messages from one neighbor to another" }),
      count("waiting", (row) => model.waitingAt(row)),
      count("connections", (row) => (row.id === model.state.me ? model.state.totals.connections : row.connections)),
      count("addresses", (row) => row.addresses),
      count("losses", (row) => row.flaps),
      text("why", why, { isLong: true }),
    ],
  },
  Links: {
    rows: (model) => model.state.links,
    key: (row) => `${row.one} - ${row.other}`,
    level: (row, model) => (row.state === "absent" ? "bad" : model.wasLostLately(row) ? "warn" : "ok"),
    choose: (row) => ["link", `${row.one} - ${row.other}`],
    total: (model) => model.state.totals.links,
    columns: (model) => [
      text("link", (row) => `${row.one} – ${row.other}`),
      text("state", (row) => row.state),
      count("since", (row) => model.state.at - row.since, span),
      count("cost", (row) => row.cost),
      count("messages →", (row) => model.rate(`link ${row.one} ${row.other}`, "there"), perSecond),
      count("messages ←", (row) => model.rate(`link ${row.one} ${row.other}`, "back"), perSecond),
      count("bytes →", (row) => model.rate(`link ${row.one} ${row.other}`, "bytes_there"), (value) => (value === undefined ? "–" : `${bytes(value)}/s`)),
      count("bytes ←", (row) => model.rate(`link ${row.one} ${row.other}`, "bytes_back"), (value) => (value === undefined ? "–" : `${bytes(value)}/s`)),
      count("losses", (row) => row.flaps),
      count("in 5 minutes", (row) => row.recent, number, { title: "Losses in the last five minutes" }),
      text("why", why, { isLong: true }),
    ],
  },
  Addresses: {
    rows: (model) => model.state.addresses.filter((row) => !row.own),
    key: (row) => row.key,
    level: (row) => (row.blocked || row.waiting ? "warn" : "ok"),
    choose: (row) => ["address", row.key],
    total: (model) => model.state.totals.addresses - model.state.addresses.filter((row) => row.own).length,
    columns: (model) => [
      text("address", (row) => plainKey(row.key), { isLong: true }),
      text("treatment", (row) => row.treatment),
      count("publishers", (row) => row.publishers),
      count("blocked", (row) => row.blocked, number, { title: "Publishers that have no credit" }),
      count("for", (row) => row.blocked_s, (value) => (value ? span(value) : ""), { title: "Time for which some publisher has had no credit" }),
      count("subscribers", (row) => row.subscribers),
      text("elsewhere", (row) => row.remotes.join(", "), { isLong: true, title: "Other routers with subscribers" }),
      count("credit", (row) => row.granted, number, { title: "Messages that subscribers and neighbors have room for" }),
      count("waiting", (row) => row.waiting),
      count("oldest", (row) => row.oldest_s, (value) => (value ? span(value) : "")),
      count("unsettled", (row) => row.unsettled),
      count("entering", (row) => model.rate(`address ${row.key}`, "in"), perSecond),
      count("leaving", (row) => model.rate(`address ${row.key}`, "out"), perSecond),
      count("dropped", (row) => row.dropped),
    ],
  },
  Connections: {
    rows: (model) => model.state.connections,
    key: (row) => row.id,
    level: (row) => (row.reading !== "all" || row.sending !== "all" ? "bad" : "ok"),
    choose: (row) => ["connection", row.id],
    total: (model) => model.state.totals.connections,
    columns: (model) => [
      text("container", (row) => row.container || "(not said yet)", { isLong: true }),
      text("who", (row) => (row.neighbor ? `router ${row.neighbor}` : row.user)),
      text("from", (row) => row.host),
      count("since", (row) => row.since, span),
      count("links", (row) => row.links),
      count("messages in", (row) => model.rate(`connection ${row.id}`, "in"), perSecond),
      count("messages out", (row) => model.rate(`connection ${row.id}`, "out"), perSecond),
      count("bytes in", (row) => model.rate(`connection ${row.id}`, "bytes_in"), (value) => (value === undefined ? "–" : `${bytes(value)}/s`)),
      count("bytes out", (row) => model.rate(`connection ${row.id}`, "bytes_out"), (value) => (value === undefined ? "–" : `${bytes(value)}/s`)),
      count("held for it", (row) => row.held_bytes, bytes, { title: "Memory that is charged to it" }),
      text("is read", (row) => row.reading, { title: "What the router reads of it: all, no messages (it has sent more than is taken), or nothing" }),
      text("is sent", (row) => row.sending, { title: "What the router sends to it: all, or nothing (it does not read what was sent already)" }),
    ],
  },
};

function cell(name, content, classes) {
  const made = document.createElement(name);
  made.className = classes;
  made.append(content);
  return made;
}

export class Tables {
  constructor(part, choose) { this.part = part; this.choose = choose; this.sorted = {}; }

  draw(model, name, filter) {
    const table = TABLES[name], columns = table.columns(model), sorted = this.sorted[name];
    const value = (row, column) => column.of(row);
    let rows = table.rows(model);
    if (filter) rows = rows.filter((row) => columns.some((column) => !column.isNumber && String(value(row, column) ?? "").toLowerCase().includes(filter)));
    if (sorted) {
      const column = columns[sorted.at], less = sorted.isDown ? 1 : -1;
      rows = [...rows].sort((a, b) => {
        const [one, other] = [value(a, column) ?? "", value(b, column) ?? ""];
        return (one < other ? less : one > other ? -less : 0);
      });
    }
    const focused = document.activeElement?.dataset?.row;
    const made = document.createElement("table");
    made.createCaption().className = "skip";
    made.caption.textContent = name;
    const head = made.createTHead().insertRow();
    columns.forEach((column, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = column.name + (sorted?.at === at ? (sorted.isDown ? " ▾" : " ▴") : "");
      button.dataset.row = `sort ${at}`;
      if (column.title) button.title = column.title;
      button.addEventListener("click", () => {
        this.sorted[name] = { at, isDown: sorted?.at === at ? !sorted.isDown : Boolean(column.isNumber) };
        this.draw(model, name, filter);
      });
      const th = cell("th", button, column.isNumber ? "number" : "");
      th.scope = "col";
      if (sorted?.at === at) th.setAttribute("aria-sort", sorted.isDown ? "descending" : "ascending");
      head.append(th);
    });
    const body = made.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      line.className = table.level(row, model);
      columns.forEach((column, at) => {
        const shown = String(column.show(value(row, column)));
        const classes = column.isNumber ? "number" : column.isLong ? "long" : "";
        if (at) { line.append(cell("td", shown, classes)); return; }
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = shown;
        button.dataset.row = `row ${table.key(row)}`;
        button.addEventListener("click", () => this.choose(...table.choose(row)));
        line.append(cell("td", button, classes));
      });
    }
    if (!rows.length) { const none = body.insertRow().insertCell(); none.colSpan = columns.length; none.className = "empty"; none.textContent = "none"; }
    const { scrollTop, scrollLeft } = this.part;
    this.part.replaceChildren(made);
    Object.assign(this.part, { scrollTop, scrollLeft });
    if (focused) this.part.querySelector(`[data-row="${CSS.escape(focused)}"]`)?.focus();
  }
}

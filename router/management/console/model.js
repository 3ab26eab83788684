// The state of the mesh as last told, with rates worked out from the totals of the one before.

const LEAST_S = 0.9;  // between two totals that make a rate
const WAITS_S = 1;  // for so long messages wait at a router before it shows: bursts do for less
const OLD_S = 10;  // a rate that nobody has told of for so long says nothing of now
const OWN_RATE = 6;  // messages a second between this console's router and another: questions and answers
const AT_ONCE = 40;  // routers that are asked at one time
const FRESH_S = 60;  // after a loss, in which it may happen again

export class Model {
  constructor() { this.state = null; this.before = new Map(); this.rates = new Map(); this.waitsSince = new Map(); }

  take(state) {
    const { at } = state;
    if (this.state && at < this.state.at) this.waitsSince.clear();  // the router's clock was set back
    this.state = state;
    const told = (key, when, totals) => {
      if (when < this.before.get(key)?.at) this.forget(key);
      const known = this.before.get(key);
      if (known && when - known.at < LEAST_S) return;  // the same answer again, or too soon for a rate
      if (known && when - known.at < 60) {
        const rates = {};
        for (const [name, value] of Object.entries(totals)) {
          if (typeof value === "number" && typeof known.totals[name] === "number")
            rates[name] = Math.max(0, (value - known.totals[name]) / (when - known.at));
        }
        this.rates.set(key, rates);
      }
      this.before.set(key, { at: when, totals, seen: at });
    };
    for (const it of state.routers) {
      if (!it.here || !this.waitingAt(it)) this.waitsSince.delete(it.id);
      else if (!this.waitsSince.has(it.id)) this.waitsSince.set(it.id, at);
    }
    const pick = (row, names) => Object.fromEntries(names.map((name) => [name, row[name]]));
    told("me", at, pick(state.totals, ["in", "out", "transit"]));
    for (const it of state.routers)
      if (it.told_at) told(`router ${it.id}`, it.told_at, pick(it, ["in", "out", "transit"]));
    for (const it of state.links)
      if (it.told_at) told(`link ${it.one} ${it.other}`, it.told_at, pick(it, ["there", "back", "bytes_there", "bytes_back"]));
    for (const it of state.addresses) told(`address ${it.key}`, state.tables_at ?? at, pick(it, ["in", "out", "transit"]));
    for (const it of state.connections) told(`connection ${it.id}`, state.tables_at ?? at, pick(it, ["in", "out", "bytes_in", "bytes_out"]));
    for (const it of state.routers) if (!it.here) this.forget(`router ${it.id}`);
    for (const it of state.links) if (it.state !== "up") this.forget(`link ${it.one} ${it.other}`);
    this.own = this.ownRates();
    for (const [key, known] of this.before) {
      if (at - known.at > OLD_S) this.rates.delete(key);
      if (at - known.seen > 120) this.forget(key);
    }
  }

  // What is absent, or gone, has no rate.
  forget(key) { this.before.delete(key); this.rates.delete(key); }

  rate(key, name) { return this.rates.get(key)?.[name]; }

  // Messages a second of a router, of a link in both directions; undefined where nobody has told.
  routerRate(id) {
    const key = id === this.state.me ? "me" : `router ${id}`;
    const rates = this.rates.get(key);
    return rates && (rates.in || 0) + (rates.transit || 0) + (rates.out || 0);
  }
  linkRate(link) {
    const rates = this.rates.get(`link ${link.one} ${link.other}`);
    return rates && (rates.there || 0) + (rates.back || 0);
  }

  // The same without the console's own questions and answers: an idle mesh is idle.
  linkLoad(link) { return loadOf(this.linkRate(link), this.own.links.get(`${link.one} ${link.other}`)); }
  routerLoad(id) { return loadOf(this.routerRate(id), id === this.state.me ? 0 : this.own.routers.get(id)); }

  // Messages a second that the console makes for itself, by link and by router that they pass: about, along shortest paths.
  ownRates() {
    const { routers, links, me } = this.state, here = routers.filter((it) => it.here && it.id !== me);
    const rate = OWN_RATE * Math.min(1, AT_ONCE / Math.max(1, here.length));
    const cost = new Map([[me, 0], ...here.map((it) => [it.id, it.cost])]), toward = new Map();
    for (const link of links) {
      for (const [near, far] of [[link.one, link.other], [link.other, link.one]])
        if (link.state === "up" && far !== me && cost.get(near) + link.cost === cost.get(far) && !toward.has(far)) toward.set(far, { near, link });
    }
    const own = { links: new Map(), routers: new Map() };
    for (const { id } of [...here].sort((a, b) => b.cost - a.cost)) {
      const way = toward.get(id), passing = (own.routers.get(id) || 0) + rate;
      if (!way) continue;
      own.links.set(`${way.link.one} ${way.link.other}`, passing);
      own.routers.set(way.near, (own.routers.get(way.near) || 0) + passing);
    }
    return own;
  }

  // Messages that wait for a subscriber or neighbor at a router; undefined where nobody has told.
  waitingAt(router) { return router.id === this.state.me ? this.state.totals.waiting : router.waiting; }

  // Whether a router or link was lost several times of late, or is back for so short a time that it may go again.
  wasLostLately(row) {
    const isBack = (row.here ?? row.state === "up") && this.state.at - row.since < FRESH_S;
    return row.recent >= 2 || (row.recent === 1 && isBack);
  }

  // Messages that wait at a router, and have not only come just now; else 0.
  stillWaitingAt(router) {
    return this.state.at - this.waitsSince.get(router.id) >= WAITS_S ? this.waitingAt(router) : 0;
  }

  // "bad", "warn" or "ok"
  routerLevel(router) {
    if (!router.here) return "bad";
    if (this.wasLostLately(router)) return "warn";
    const mine = this.state.problems.some((it) => !ABOUT_MESH.includes(it.kind) && [it.router, ...it.also, ...(it.at || [])].includes(router.id));
    return mine || this.stillWaitingAt(router) ? "warn" : "ok";
  }
}

// What is left of a rate without the console's own part, of which it is known about.
const loadOf = (rate, own = 0) => Math.max(0, (rate || 0) - 1.25 * own);

// What concerns others than the router that tells of it: those are shown where they are.
const ABOUT_MESH = ["router-absent", "link-absent", "flapping", "connector-failed", "router-drained", "lost-for-a-while"];

export const isNotice = (kind) => kind === "lost-for-a-while";

// Whether what a notice tells of is over for so short a time that it may begin again.
export const isFresh = (notice, at) => isNotice(notice.kind) && at - notice.since < FRESH_S;
export const isGrave = (kind) => ["router-absent", "memory", "dropped", "no-subscriber"].includes(kind);

export function number(value) {
  if (value === undefined || value === null) return "–";
  if (value === 0) return "0";
  if (value < 10) return value.toFixed(1).replace(/\.0$/, "");
  if (value < 10000) return Math.round(value).toLocaleString("en");
  return value < 1e6 ? `${(value / 1e3).toFixed(0)} k` : value < 1e9 ? `${(value / 1e6).toFixed(1)} M` : `${(value / 1e9).toFixed(1)} G`;
}
export function bytes(value) {
  if (value === undefined || value === null) return "–";
  if (value < 1024) return `${Math.round(value)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let at = -1;
  do { value /= 1024; at += 1; } while (value >= 1024 && at < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
export function span(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds < 1) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}
export const perSecond = (value) => (value === undefined ? "–" : `${number(value)}/s`);
export function plainKey(key) {  // as clients name an address
  if (key.startsWith("M0")) return key.slice(2);
  return key.startsWith("L") || key.startsWith("R") ? `${key.slice(1)} (${key[0] === "L" ? "local" : "reply"})` : key;
}

// The mesh as a picture: places by springs, worked out anew only when a router or link comes that was not there.

import { around, boxFor, curve, fitted, isInside, shortName, springs, ties, wordsAt } from "/layout.js";
import { number, perSecond } from "/model.js";

const NS = "http://www.w3.org/2000/svg";
const QUIET = 5;  // messages a second, up to which a link or router has nothing to do
const SOME_PIXELS = 20;  // by which the width of the box changes before all is placed anew: a scroll bar is narrower

// Pixels; the same at each time and in each mesh: 4 for a hundred messages a second, 8 for ten thousand.
export const linkWidth = (rate) => (rate > QUIET ? Math.min(12, 2 * Math.log10(rate)) : 1.5);

const costWords = (link) => `cost ${link.cost ?? link.configured_cost ?? "?"}`;

function part(name, attributes, parent) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

export class Picture {
  constructor(svg, choose) {
    this.svg = svg;
    this.choose = choose;
    this.places = new Map();
    this.known = "";
    this.nodes = new Map();
    this.edges = new Map();
    this.width = 0;
    this.again = () => {};
    new ResizeObserver(() => { if (this.isOfOtherWidth()) this.again(); }).observe(svg);
  }

  isOfOtherWidth() { return Math.abs(this.svg.getBoundingClientRect().width - this.width) >= SOME_PIXELS; }

  draw(model, chosen) {
    this.again = () => this.draw(model, chosen);
    const { routers, links } = model.state;
    const names = JSON.stringify([routers.map((it) => it.id), links.map((it) => [it.one, it.other])]);
    const isOther = names !== this.known;
    if (isOther) {
      this.known = names;
      this.layOut(routers, links);
    }
    if (isOther || this.isOfOtherWidth()) this.make(routers, links);
    links.forEach((link) => this.drawLink(link, model));
    for (const router of routers) this.drawRouter(router, model, chosen);
    const absent = routers.filter((it) => !it.here).length;
    this.svg.setAttribute("aria-label", `${routers.length} routers, ${absent} of them absent, and ${links.length} links; the table Routers has the same`);
  }

  // Springs do without the size of the box: it may change at any time.
  layOut(routers, links) {
    this.ids = routers.map((it) => it.id).sort();
    const index = new Map(this.ids.map((id, at) => [id, at]));
    this.pairs = links.map((it) => [index.get(it.one), index.get(it.other)]).filter(([a, b]) => a !== undefined && b !== undefined);
    this.points = springs(this.ids.length, [...this.pairs, ...ties(this.ids.length, this.pairs)]);
  }

  make(routers, links) {
    this.width = this.svg.getBoundingClientRect().width;
    const box = boxFor(Math.max(200, Math.round(this.width)), this.ids);
    const found = fitted(this.points, this.pairs, box);
    this.places = new Map(this.ids.map((id, at) => [id, found[at]]));
    this.isSmall = box.radius >= 20;
    const focused = document.activeElement?.dataset?.router;
    this.svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    this.svg.setAttribute("class", box.radius < 13 ? "many" : "");
    this.svg.replaceChildren();
    this.nodes.clear();
    this.edges.clear();
    const lines = part("g", {}, this.svg), labels = part("g", {}, this.svg), dots = part("g", {}, this.svg);
    const taken = routers.flatMap((router) => this.makeRouter(router, box, dots));
    const ends = links.filter((it) => this.places.has(it.one) && this.places.has(it.other));
    const curves = ends.map((link) => {
      const [from, to] = [this.places.get(link.one), this.places.get(link.other)];
      return curve(from, to, found.filter((it) => it !== from && it !== to), box);
    });
    ends.forEach((link, at) => this.makeLink(link, curves[at], lines, this.makeWords(link, curves[at], curves, taken, box, labels)));
    if (focused !== undefined) this.nodes.get(focused)?.node.focus();
  }

  makeWords(link, own, curves, taken, box, labels) {
    const place = (words) => wordsAt(own, this.isSmall ? curves : [], this.isSmall ? taken : [], { width: 6.4 * words.length, height: 16 }, box);
    const cost = costWords(link);
    let { rect, anchor, isCrowded } = place(`${cost} · 9,999/s`);
    const isBrief = this.isSmall && isCrowded;
    if (isBrief) ({ rect, anchor, isCrowded } = place(cost));
    const isShown = this.isSmall && !isCrowded, x = { start: rect.left, end: rect.right, middle: (rect.left + rect.right) / 2 }[anchor];
    if (isShown) taken.push(rect);
    const label = part("text", { class: "edge-label", x: x.toFixed(1), y: (rect.bottom - 4).toFixed(1), "text-anchor": anchor }, labels);
    return { label, isShown, isBrief };
  }

  makeLink(link, { from, to, by }, lines, words) {
    const d = `M${from.x} ${from.y}Q${by.x.toFixed(1)} ${by.y.toFixed(1)} ${to.x} ${to.y}`;
    const line = part("path", { class: "edge", d }, lines), hit = part("path", { class: "edge-hit", d }, lines);
    const title = part("title", {}, hit), name = `${link.one} - ${link.other}`;
    hit.addEventListener("click", () => this.choose("link", name));
    this.edges.set(name, { line, title, ...words });
  }

  // Returns: what it takes of the picture.
  makeRouter(router, box, dots) {
    const { radius } = box, place = this.places.get(router.id);
    const node = part("g", { class: "node", tabindex: "0", role: "button", transform: `translate(${place.x},${place.y})` }, dots);
    node.dataset.router = router.id;
    const title = part("title", {}, node);
    part("circle", { r: radius }, node);
    const isWithin = isInside(router.id, radius), words = isWithin ? 16 : 32, side = this.sideOfWords(router.id);
    const [near, far] = side > 0 ? [radius + 14, radius + 28] : [-radius - 6, -radius - 20];
    const name = part("text", { class: isWithin ? "within" : "", y: isWithin ? 5 : near }, node);
    name.textContent = shortName(router.id);
    const sub = part("text", { class: "sub", y: isWithin ? near : far }, node);
    const choose = () => this.choose("router", router.id);
    node.addEventListener("click", choose);
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
    });
    this.nodes.set(router.id, { node, title, sub });
    const width = isWithin ? 60 : Math.max(60, 8 * name.textContent.length);
    return [around(place.x, place.y, 2 * radius + 8, 2 * radius + 8), around(place.x, place.y + side * (radius + 2 + words / 2), width, words)];
  }

  // Below a router (1), or above (-1) where fewer of its links go up than down.
  sideOfWords(id) {
    const own = this.ids.indexOf(id), from = this.places.get(id);
    let down = 0, up = 0;
    for (const [a, b] of this.pairs) {
      if (a !== own && b !== own) continue;
      const to = this.places.get(this.ids[a === own ? b : a]), steep = (to.y - from.y) / (Math.hypot(to.x - from.x, to.y - from.y) || 1);
      if (steep > 0.3) down += steep; else if (steep < -0.3) up -= steep;
    }
    return up < down ? -1 : 1;
  }

  drawLink(link, model) {
    const made = this.edges.get(`${link.one} - ${link.other}`);
    if (!made) return;
    const wasLost = model.wasLostLately(link), load = model.linkLoad(link), told = model.linkRate(link);
    const level = link.state === "absent" ? "absent" : link.state === "unknown" ? "unknown" : wasLost ? "warn" : load > QUIET ? "busy" : "";
    made.line.setAttribute("class", `edge ${level}`);
    made.line.setAttribute("stroke-width", (link.state === "up" ? linkWidth(load) : 2).toFixed(1));
    const words = [costWords(link)];
    if (link.state !== "up") words.unshift(link.state);
    else if (load > QUIET) words.push(perSecond(told));
    if (wasLost) words.push(link.recent === 1 ? "lost, and just back" : `lost ${link.recent} times of late`);
    const isTold = link.state === "absent" || wasLost;
    made.label.textContent = isTold || (made.isShown && !made.isBrief) ? words.join(" · ") : made.isShown ? words.at(link.state === "up" ? 0 : 1) : "";
    made.title.textContent = `${link.one} - ${link.other}: ${words.join(", ")}${link.reason ? `; ${link.reason}` : ""}`;
  }

  drawRouter(router, model, chosen) {
    const made = this.nodes.get(router.id);
    const level = model.routerLevel(router);
    const isChosen = chosen?.kind === "router" && chosen.name === router.id, isMe = router.id === model.state.me;
    made.node.setAttribute("class", `node ${level}${isMe ? " me" : ""}${isChosen ? " chosen" : ""}`);
    const rate = model.routerRate(router.id);
    const waits = router.here && model.stillWaitingAt(router);  // what waits shows in the color too
    const told = [model.routerLoad(router.id) > QUIET ? perSecond(rate) : "", waits ? `${number(waits)} wait` : ""].filter(Boolean).join(" · ");
    made.sub.textContent = !router.here ? "absent" : this.isSmall ? told : "";
    const words = !router.here
      ? [`absent: ${router.reason || "no path to it"}`]
      : [isMe ? "this router" : `cost ${router.cost}`, rate !== undefined && `${number(rate)} messages a second`, waits && `${number(waits)} messages wait`];
    const said = words.filter(Boolean).join(", ");
    made.title.textContent = `${router.id}: ${said}`;
    made.node.setAttribute("aria-label", [`Router ${router.id}`, { ok: "well", warn: "with a problem" }[level], said].filter(Boolean).join(", "));
  }
}

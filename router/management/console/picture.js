// The mesh as a picture: places by springs, worked out anew only when a router comes that was not there.

import { number, perSecond } from "/model.js";

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 1000, HEIGHT = 640;

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
  }

  draw(model, chosen) {
    const { routers, links } = model.state;
    const names = JSON.stringify([routers.map((it) => it.id), links.map((it) => [it.one, it.other])]);
    if (names !== this.known) {
      this.known = names;
      this.layOut(routers, links);
      this.make(routers, links);
    }
    this.isSmall = routers.length <= 30;
    const rates = links.map((it) => model.linkRate(it) || 0);
    const most = Math.max(1, ...rates);
    links.forEach((link, at) => this.drawLink(link, rates[at], most, model));
    for (const router of routers) this.drawRouter(router, model, chosen);
    const absent = routers.filter((it) => !it.here).length;
    this.svg.setAttribute("aria-label", `${routers.length} routers, ${absent} of them absent, and ${links.length} links; the table Routers has the same`);
  }

  make(routers, links) {
    this.svg.replaceChildren();
    this.svg.setAttribute("class", routers.length > 60 ? "many" : "");
    this.nodes.clear();
    this.edges.clear();
    const lines = part("g", {}, this.svg), labels = part("g", {}, this.svg), dots = part("g", {}, this.svg);
    for (const link of links) {
      const from = this.places.get(link.one), to = this.places.get(link.other);
      if (!from || !to) continue;
      const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
      const line = part("line", { class: "edge", ...ends }, lines);
      const hit = part("line", { class: "edge-hit", ...ends }, lines);
      const title = part("title", {}, hit);
      const name = `${link.one} - ${link.other}`;
      hit.addEventListener("click", () => this.choose("link", name));
      // Beside the line, and not all at the same part of it, or labels of lines that cross would lie on each other.
      const [dx, dy] = [to.x - from.x, to.y - from.y], far = Math.hypot(dx, dy) || 1;
      const side = dx >= 0 ? -1 : 1, share = 0.42;
      const label = part("text", { class: "edge-label", x: from.x + dx * share - (dy / far) * side * 15, y: from.y + dy * share + (dx / far) * side * 15 + 4 }, labels);
      this.edges.set(name, { line, title, label });
    }
    const radius = routers.length > 60 ? 11 : routers.length > 30 ? 15 : 24;
    for (const router of routers) {
      const place = this.places.get(router.id);
      const node = part("g", { class: "node", tabindex: "0", role: "button", transform: `translate(${place.x},${place.y})` }, dots);
      const title = part("title", {}, node);
      part("circle", { r: radius }, node);
      const isInside = radius > 20 && router.id.length <= 4;
      const name = part("text", { y: isInside ? 5 : radius + 16 }, node);
      name.textContent = router.id.length > 18 ? `${router.id.slice(0, 17)}…` : router.id;
      const sub = part("text", { class: "sub", y: radius + (isInside ? 15 : 31) }, node);
      const choose = () => this.choose("router", router.id);
      node.addEventListener("click", choose);
      node.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
      });
      this.nodes.set(router.id, { node, title, sub });
    }
  }

  drawLink(link, rate, most, model) {
    const made = this.edges.get(`${link.one} - ${link.other}`);
    if (!made) return;
    const wasLost = model.wasLostLately(link);
    const level = link.state === "absent" ? "absent" : link.state === "unknown" ? "unknown" : wasLost ? "warn" : rate > 5 ? "busy" : "";
    made.line.setAttribute("class", `edge ${level}`);
    made.line.setAttribute("stroke-width", (2 + 8 * Math.log1p(rate) / Math.log1p(most)).toFixed(1));
    const told = model.linkRate(link);
    const words = [`cost ${link.cost ?? link.configured_cost ?? "?"}`];
    if (link.state !== "up") words.unshift(link.state);
    else if (told !== undefined && told > 5) words.push(perSecond(told));
    if (wasLost) words.push(link.recent === 1 ? "lost, and just back" : `lost ${link.recent} times of late`);
    made.label.textContent = this.isSmall || link.state === "absent" || wasLost ? words.join(" · ") : "";
    made.title.textContent = `${link.one} - ${link.other}: ${words.join(", ")}${link.reason ? `; ${link.reason}` : ""}`;
  }

  drawRouter(router, model, chosen) {
    const made = this.nodes.get(router.id);
    const level = model.routerLevel(router);
    const isChosen = chosen?.kind === "router" && chosen.name === router.id;
    made.node.setAttribute("class", `node ${level}${router.id === model.state.me ? " me" : ""}${isChosen ? " chosen" : ""}`);
    const rate = model.routerRate(router.id);
    const waits = router.here && model.stillWaitingAt(router);  // what waits shows in the color too
    const told = [rate !== undefined && rate > 5 ? perSecond(rate) : "", waits ? `${number(waits)} wait` : ""].filter(Boolean).join(" · ");
    made.sub.textContent = !router.here ? "absent" : this.isSmall ? told : "";
    const words = router.here ? `${router.id === model.state.me ? "this router" : `cost ${router.cost}`}${rate !== undefined ? `, ${number(rate)} messages a second` : ""}${waits ? `, ${number(waits)} messages wait` : ""}` : `absent: ${router.reason || "no path to it"}`;
    made.title.textContent = `${router.id}: ${words}`;
    made.node.setAttribute("aria-label", `Router ${router.id}, ${level === "ok" ? "well" : level === "warn" ? "with a problem" : ""} ${words}`);
  }

  // Springs along links, and a push between all; begins with a circle in the order of names, so it comes out alike.
  layOut(routers, links) {
    const ids = routers.map((it) => it.id).sort();
    const count = ids.length;
    const index = new Map(ids.map((id, at) => [id, at]));
    const isNew = ids.some((id) => !this.places.has(id));
    const x = [], y = [];
    ids.forEach((id, at) => {
      const angle = (2 * Math.PI * at) / count - Math.PI / 2;
      const place = !isNew && this.places.get(id);
      x.push(place ? place.x : WIDTH / 2 + 380 * Math.cos(angle) + ((at * 7919) % 13));
      y.push(place ? place.y : HEIGHT / 2 + 250 * Math.sin(angle) + ((at * 104729) % 11));
    });
    const pairs = links.map((it) => [index.get(it.one), index.get(it.other)]).filter(([a, b]) => a !== undefined && b !== undefined);
    const ideal = 0.8 * Math.sqrt((WIDTH * HEIGHT) / Math.max(1, count));
    const rounds = isNew ? 300 : 0;
    for (let round = 0; round < rounds; round += 1) {
      const dx = new Float64Array(count), dy = new Float64Array(count);
      for (let a = 0; a < count; a += 1) {
        for (let b = a + 1; b < count; b += 1) {
          const ax = x[a] - x[b], ay = y[a] - y[b], far2 = Math.max(ax * ax + ay * ay, 1);
          const push = (ideal * ideal) / far2;
          dx[a] += ax * push; dy[a] += ay * push; dx[b] -= ax * push; dy[b] -= ay * push;
        }
      }
      for (const [a, b] of pairs) {
        const ax = x[a] - x[b], ay = y[a] - y[b], pull = Math.hypot(ax, ay) / ideal;
        dx[a] -= ax * pull; dy[a] -= ay * pull; dx[b] += ax * pull; dy[b] += ay * pull;
      }
      const heat = 60 * (1 - round / rounds) + 1;
      for (let a = 0; a < count; a += 1) {
        const size = Math.max(Math.hypot(dx[a], dy[a]), 0.01), step = Math.min(size, heat);
        x[a] += (dx[a] / size) * step; y[a] += (dy[a] / size) * step;
      }
    }
    const fit = (values, low, high) => {
      const least = Math.min(...values), most = Math.max(...values);
      return (value) => (most - least < 1 ? (low + high) / 2 : low + ((value - least) / (most - least)) * (high - low));
    };
    const fitX = fit(x, 70, WIDTH - 70), fitY = fit(y, 50, HEIGHT - 65);
    for (let a = 0; a < count; a += 1) [x[a], y[a]] = [fitX(x[a]), fitY(y[a])];
    if (isNew) apart(x, y, count > 60 ? 34 : count > 30 ? 48 : 80);
    this.places = new Map(ids.map((id, at) => [id, { x: Math.round(x[at]), y: Math.round(y[at]) }]));
  }
}

// Moves those apart that lie on each other, and keeps all within the picture.
function apart(x, y, least) {
  for (let round = 0; round < 120; round += 1) {
    let isDone = true;
    for (let a = 0; a < x.length; a += 1) {
      for (let b = a + 1; b < x.length; b += 1) {
        const dx = x[a] - x[b] || 0.1 * (a - b), dy = y[a] - y[b] || 0.1, far = Math.hypot(dx, dy);
        if (far >= least) continue;
        isDone = false;
        const step = (least - far) / far / 2;
        x[a] += dx * step; y[a] += dy * step; x[b] -= dx * step; y[b] -= dy * step;
      }
    }
    for (let a = 0; a < x.length; a += 1) {
      x[a] = Math.min(WIDTH - 45, Math.max(45, x[a]));
      y[a] = Math.min(HEIGHT - 50, Math.max(35, y[a]));
    }
    if (isDone) return;
  }
}

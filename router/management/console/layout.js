// Places of routers, links and words in a picture: springs, then room for each, in a box of so many pixels.

const GAP = 9;  // between a router and a link that is not its own
const STEPS = 4e7;  // looks at a router and a link together: for so many nobody waits
const BENDS = [0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8];

// Height of a box of that width, and sizes in it that can be read: both in pixels.
export function boxFor(width, names) {
  const count = Math.max(1, names.length);
  const least = Math.max(240, 0.62 * width), most = Math.max(least, Math.min(1.7 * width, 680), Math.min(900, (count * 55 * 55) / width));
  const height = Math.round(Math.min(most, Math.max(least, (count * 150 * 150) / width)));
  const space = Math.sqrt((width * height) / count);
  const radius = space >= 95 ? 20 : space >= 75 ? 13 : 9;
  const longest = Math.max(0, ...names.map((it) => (isInside(it, radius) ? 0 : shortName(it).length)));
  return { width, height, space, radius, sideways: Math.max(48, longest * (radius > 9 ? 4 : 2.9) + 4), upright: radius + 40 };
}

export const shortName = (id) => (id.length > 18 ? `${id.slice(0, 17)}…` : id);
export const isInside = (id, radius) => radius >= 20 && id.length <= 3;

// Springs along links, and a push between all; begins with a circle in the order of names, so it comes out alike.
export function springs(count, pairs) {
  const x = [], y = [];
  for (let at = 0; at < count; at += 1) {
    const angle = (2 * Math.PI * at) / count - Math.PI / 2;
    x.push(500 + 380 * Math.cos(angle) + ((at * 7919) % 13));
    y.push(320 + 250 * Math.sin(angle) + ((at * 104729) % 11));
  }
  const ideal = 0.8 * Math.sqrt(640000 / Math.max(1, count)), rounds = 300;
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
  return x.map((each, at) => ({ x: each, y: y[at] }));
}

// Links that are none, for springs alone: they keep routers that have no path to most others near them.
// Returns: one for each part of the mesh but the largest, to a router of that.
export function ties(count, pairs) {
  const part = Array.from({ length: count }, (_, at) => at);
  const root = (at) => { while (part[at] !== at) at = part[at] = part[part[at]]; return at; };
  for (const [a, b] of pairs) part[Math.max(root(a), root(b))] = Math.min(root(a), root(b));
  const members = new Map();
  for (let at = 0; at < count; at += 1) members.set(root(at), [...(members.get(root(at)) || []), at]);
  const [most, ...others] = [...members.values()].sort((a, b) => b.length - a.length || a[0] - b[0]);
  return others.map((it, at) => [most[at % most.length], it[0]]);
}

// The same places in a box: all of it used, the longer side along its longer side, and each router clear of others' links.
export function fitted(points, pairs, box) {
  const spread = (values) => Math.max(...values) - Math.min(...values);
  let x = points.map((it) => it.x), y = points.map((it) => it.y);
  if (spread(x) > spread(y) * 1.1 !== box.width > box.height) [x, y] = [y, x];
  const fit = (values, low, high) => {
    const least = Math.min(...values), size = spread(values);
    return values.map((value) => (size < 1 ? (low + high) / 2 : low + ((value - least) / size) * (high - low)));
  };
  [x, y] = [fit(x, box.sideways, box.width - box.sideways), fit(y, box.upright, box.height - box.upright)];
  return cleared(x, y, pairs, box).map((it) => ({ x: Math.round(it.x), y: Math.round(it.y) }));
}

// Moves routers away from each other and from links of others; the best of all rounds, as not every mesh has room.
function cleared(x, y, pairs, box) {
  const count = x.length, clear = box.radius + GAP, apart = 0.6 * box.space;
  const rounds = Math.max(2, Math.min(250, Math.floor(STEPS / (count * (pairs.length + count) + 1))));
  let best = null, least = Infinity;
  for (let round = 0; round < rounds; round += 1) {
    const dx = new Float64Array(count), dy = new Float64Array(count);
    let lack = 0;
    for (let a = 0; a < count; a += 1) {
      for (let b = a + 1; b < count; b += 1) {
        const ax = x[a] - x[b] || 0.1 * (a - b), ay = y[a] - y[b] || 0.1, far = Math.hypot(ax, ay);
        if (far >= apart) continue;
        lack += apart - far;
        const step = (0.4 * (apart - far)) / far;
        dx[a] += ax * step; dy[a] += ay * step; dx[b] -= ax * step; dy[b] -= ay * step;
      }
    }
    for (const [a, b] of pairs) {
      for (let c = 0; c < count; c += 1) {
        if (c === a || c === b) continue;
        const ux = x[b] - x[a], uy = y[b] - y[a], long2 = ux * ux + uy * uy || 1;
        const share = Math.min(1, Math.max(0, ((x[c] - x[a]) * ux + (y[c] - y[a]) * uy) / long2));
        let ax = x[c] - x[a] - share * ux, ay = y[c] - y[a] - share * uy, far = Math.hypot(ax, ay);
        if (far >= clear) continue;
        lack += 3 * (clear - far);
        if (far < 0.5) { const long = Math.sqrt(long2); ax = -uy / long; ay = ux / long; far = 1; }
        const step = (0.5 * Math.max(clear - far, 1)) / far;
        dx[c] += ax * step; dy[c] += ay * step;
        dx[a] -= ax * step * (1 - share); dy[a] -= ay * step * (1 - share);
        dx[b] -= ax * step * share; dy[b] -= ay * step * share;
      }
    }
    if (lack < least) { least = lack; best = x.map((each, at) => ({ x: each, y: y[at] })); }
    if (lack === 0) break;
    for (let a = 0; a < count; a += 1) {
      x[a] = Math.min(box.width - box.sideways, Math.max(box.sideways, x[a] + Math.max(-20, Math.min(20, dx[a]))));
      y[a] = Math.min(box.height - box.upright, Math.max(box.upright, y[a] + Math.max(-20, Math.min(20, dy[a]))));
    }
  }
  return best ?? [];
}

// The curve of a link: straight, or bent as little as keeps it clear of routers that are not its ends.
export function curve(from, to, others, box) {
  const long = Math.hypot(to.x - from.x, to.y - from.y) || 1, [nx, ny] = [-(to.y - from.y) / long, (to.x - from.x) / long];
  const clear = box.radius + 4;
  const near = others.filter((it) => Math.hypot(it.x - from.x, it.y - from.y) + Math.hypot(it.x - to.x, it.y - to.y) < 1.5 * long + 8 * clear);
  const bent = (by) => ({ from, to, by: { x: (from.x + to.x) / 2 + nx * by * clear, y: (from.y + to.y) / 2 + ny * by * clear } });
  let best = null, least = Infinity;
  for (const by of BENDS) {
    const made = bent(by);
    let lack = 0;
    for (let step = 1; step < 32 && near.length; step += 1) {
      const it = at(made, step / 32);
      if (it.x < 4 || it.y < 4 || it.x > box.width - 4 || it.y > box.height - 4) lack += clear;
      for (const other of near) lack += Math.max(0, clear - Math.hypot(it.x - other.x, it.y - other.y));
    }
    if (lack < least - 1e-6) { least = lack; best = made; }
    if (lack === 0) break;
  }
  return best;
}

// The point of a curve at a share of it, 0 to 1.
export function at({ from, to, by }, share) {
  const rest = 1 - share, mix = (axis) => rest * rest * from[axis] + 2 * rest * share * by[axis] + share * share * to[axis];
  return { x: mix("x"), y: mix("y") };
}

const CROWDED = 30;  // square pixels that others have of the place of words
const SHARES = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74];

// Where a link's words stand: beside it, where the least of routers, other links and words is in the way.
// Returns: the rectangle, the side of it at which they begin or end, and whether others are in the way everywhere.
export function wordsAt(own, curves, taken, size, box) {
  const dx = own.to.x - own.from.x, dy = own.to.y - own.from.y, long = Math.hypot(dx, dy) || 1;
  const aside = (Math.abs(dy) * size.width + Math.abs(dx) * size.height) / long / 2 + 3;
  let best = null, least = Infinity;
  SHARES.forEach((share, rank) => {
    const on = at(own, share);
    for (const side of dx >= 0 ? [1, -1, 0] : [-1, 1, 0]) {
      const x = on.x + (dy / long) * side * aside, y = on.y - (dx / long) * side * aside;
      const rect = around(x, y, size.width, size.height);
      if (rect.left < 0 || rect.right > box.width || rect.top < 0 || rect.bottom > box.height) continue;
      let cost = rank + (side === 0 ? 12 : 0), lost = 0;
      for (const other of taken) lost += overlap(rect, other);
      cost += lost / 8;
      for (const other of curves) {
        if (other === own) continue;
        for (let step = 1; step < 24; step += 1) if (isIn(at(other, step / 24), rect)) cost += 5;
      }
      const isSteep = side !== 0 && Math.abs(dy) > 0.4 * Math.abs(dx);
      if (cost < least) { least = cost; best = { rect, anchor: !isSteep ? "middle" : x > on.x ? "start" : "end", isCrowded: lost > CROWDED }; }
    }
  });
  const { x, y } = at(own, 0.5);
  return best ?? { rect: around(x, y, size.width, size.height), anchor: "middle", isCrowded: true };
}

export const around = (x, y, width, height) => ({ left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 });
const isIn = (it, rect) => it.x > rect.left && it.x < rect.right && it.y > rect.top && it.y < rect.bottom;
const overlap = (one, other) =>
  Math.max(0, Math.min(one.right, other.right) - Math.max(one.left, other.left)) * Math.max(0, Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top));

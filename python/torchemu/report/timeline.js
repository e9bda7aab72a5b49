// Bars has all that happened: bar k's start, length and name are at place k of its columns.
class Bars {
  constructor(data, buffer, about) {
    const n = this.count = data.count;
    this.starts = new Float64Array(buffer, 0, n);
    this.lengths = new Float64Array(buffer, 8 * n, n);
    [this.names, this.calls, this.sites, this.notes] = [0, 1, 2, 3].map(i => new Int32Array(buffer, (16 + 4 * i) * n, n));
    this.words = data, this.about = about;
    this.rows = data.ranks.flatMap(rank => rank.rows.map(row => Object.assign(row, { rank: rank.n })));
  }
  end(k) { return this.starts[k] + this.lengths[k]; }
  name(k) { return this.words.names[this.names[k]][0]; }
  kind(k) { return this.words.names[this.names[k]][1]; }
  row(k) {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].at <= k) low = middle; else high = middle - 1;
    }
    return this.rows[low];
  }
  // The first bar of a row that ends after a time. Bars may overlap: what is in order is the latest end so far.
  firstAfter(row, time) {
    if (row.ends === undefined) {
      row.ends = new Float64Array(row.count);
      for (let i = 0, last = -Infinity; i < row.count; i++) row.ends[i] = last = Math.max(last, this.end(row.at + i));
    }
    let low = 0, high = row.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.ends[middle] > time) high = middle; else low = middle + 1;
    }
    return row.at + low;
  }
  at(row, time, slack) {
    let found = -1;
    for (let k = this.firstAfter(row, time - slack); k < row.at + row.count && this.starts[k] <= time + slack; k++)
      if (found < 0 || this.starts[k] <= time) found = k;
    return found;
  }
  told(k) {
    const row = this.row(k), call = this.calls[k], from = this.starts[k];
    const lines = [call >= 0 && row.kind !== "steps" ? this.about[call] : this.name(k)];
    lines.push(`rank ${row.rank}, ${row.name}: ${timeText(this.lengths[k], 4)}, from ${timeText(from)} on`);
    const note = this.words.notes[this.notes[k]], site = this.words.sites[this.sites[k]];
    if (note && call < 0) lines.push(note);
    if (site && !lines[0].includes(site)) lines.push(site);
    return lines.join("\n");
  }
  // What a text is found in: a bar's name, its place in the program or what is said of its collective.
  search(text) {
    const wanted = text.toLowerCase(), has = word => word.toLowerCase().includes(wanted);
    const names = this.words.names.map(([name]) => has(name)), sites = this.words.sites.map(has), calls = this.about.map(has);
    const hit = new Uint8Array(this.count), list = [];
    for (let k = 0; k < this.count; k++)
      if (names[this.names[k]] || sites[this.sites[k]] || calls[this.calls[k]]) { hit[k] = 1; list.push(k); }
    list.sort((a, b) => this.starts[a] - this.starts[b] || a - b);
    return { hit, list };
  }
}

// Lines are the rows that are shown, from above, and where.
class Lines {
  constructor(data) {
    this.ranks = data.ranks;
    this.open = new Set();
    this.all = false;
    const n = data.ranks.length;
    this.lane = n <= 8 ? 13 : n <= 16 ? 9 : n <= 64 ? 6 : 4;
    this.lay();
  }
  lay() {
    this.list = [];
    let y = 0;
    for (const rank of this.ranks) {
      const open = this.all || this.open.has(rank.n), first = this.list.length, top = y;
      y = open ? this.unfolded(rank, y) : this.folded(rank, y);
      for (const line of this.list.slice(first)) Object.assign(line, { rank, top, bottom: y, isFirst: line === this.list[first] });
      y += open ? 8 : Math.max(2, this.lane / 3);
    }
    this.height = y;
  }
  unfolded(rank, y) {
    for (const row of rank.rows) { this.list.push({ rows: [row], y, height: 15, open: true }); y += 17; }
    if (!rank.rows.length) { this.list.push({ rows: [], y, height: 15, open: true }); y += 17; }
    return y;
  }
  // A folded rank has a lane for each stream and group, the last of them for all others.
  folded(rank, y) {
    const lanes = [];
    for (const row of rank.rows.filter(row => row.main)) {
      if (lanes.length < 5) lanes.push([row]); else lanes[4].push(row);
    }
    if (!lanes.length) lanes.push([]);
    for (const rows of lanes) { this.list.push({ rows, y, height: this.lane - (this.lane > 6 ? 1 : 0), open: false }); y += this.lane; }
    return y;
  }
  near(y) { return this.list.find(line => y < line.y + line.height + 2) || null; }
  of(row) { return this.list.find(line => line.rows.includes(row)); }
}

const colours = new Map();
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || "#888");
  return colours.get(name);
}

class Timeline {
  constructor(data, bars) {
    Object.assign(this, { data, bars, hot: -1, pinned: -1, found: null, chosen: -1, path: false, charts: [] });
    this.lines = new Lines(data);
    this.box = at("rows"), this.tip = at("tip");
    this.from = data.first, this.to = data.last;
    this.makeCharts();
    this.listen();
    this.show(this.from, this.to);
  }
  get labels() { return innerWidth < 720 ? 62 : 132; }
  get width() { return this.box.clientWidth; }
  shownHeight() { return Math.min(this.lines.height + 36, Math.max(260, Math.min(620, innerHeight - 160))); }

  makeCharts() {
    for (const chart of this.charts) chart.destroy();
    this.narrow = this.labels;
    const whole = [[this.data.first, this.data.last], [null, null]];
    this.main = this.chart(at("timeline"), this.shownHeight(), [{}], whole, { draw: [u => this.paint(u)], setCursor: [u => this.hover(u)] });
    this.charts = [this.main];
    const memory = this.data.memory, links = this.data.links;
    if (memory.length) this.charts.push(this.curves("memory", memory.map(m => [`rank ${m.n}`, m.t, m.bytes]), sizeText, Array.from({ length: 60 }, (_, i) => 2 ** i)));
    if (links.length) {
      const [start, end] = this.data.span, n = links[0][1].length, times = links[0][1].map((_, i) => start + (end - start) * i / n);
      this.charts.push(this.curves("links", links.map(([name, parts]) => [name, times, parts.map(x => 100 * x)]), x => Number(x.toPrecision(3)) + " %"));
    }
    at("spacer").style.height = Math.max(0, this.lines.height + 36 - this.shownHeight()) + "px";
    at("timeline").style.height = this.shownHeight() + "px";
  }
  chart(target, height, series, data, hooks, values = () => [], steps = undefined) {
    const isCurve = data.length > 2 || series[0].label !== undefined;
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), size: 4 }, font: "11px system-ui, sans-serif" };
    return new uPlot({
      width: this.width, height, padding: [4, 14, 0, 0], legend: { show: false },
      scales: { x: { time: false, range: (_, min, max) => this.within(min, max) }, y: { range: (_, min, max) => [0, max > 0 ? max * 1.08 : 1] } },
      axes: [
        { ...axis, size: 30, space: 80, values: (_, splits) => splits.map(t => timeText(t)) },
        { ...axis, size: this.labels, values, incrs: steps, grid: { ...axis.grid, show: isCurve }, ticks: { ...axis.ticks, show: isCurve } },
      ],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 4, uni: 0 }, sync: { key: "run", setSeries: false } },
      series: [{}, ...series],
      hooks: { ...hooks, setScale: [(u, key) => { if (key === "x") this.moved(u); }] },
    }, data, target);
  }
  curves(id, list, text, steps) {
    const target = at(id), hues = ["#2f7ed8", "#e4572e", "#1b998b", "#8e5bd0", "#c28b00", "#d81e82", "#3c8f4f", "#6b7f2a"];
    const { first, last } = this.data;
    const tables = list.map(([, times, values]) => [[...times, last], [...values, values[values.length - 1]]]);
    const joined = uPlot.join([...tables, [[first, last], [null, null]]], [...tables.map(() => [2]), [2]]).slice(0, -1);
    for (const column of joined.slice(1)) for (let i = 1; i < column.length; i++) if (column[i] == null) column[i] = column[i - 1];
    const series = list.map(([label], i) => ({ label, stroke: hues[i % hues.length], width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }));
    const hooks = { setCursor: [u => {
      for (const [i, part] of [...target.parentNode.querySelectorAll(".value")].entries()) {
        const value = u.cursor.idx == null ? null : u.data[i + 1][u.cursor.idx];
        part.textContent = value == null ? "" : text(value);
      }
    }] };
    target.replaceChildren();
    const chart = this.chart(target, 150, series, joined, hooks, (_, splits) => splits.map(text), steps);
    const key = target.parentNode.querySelector(".key");
    key.replaceChildren(...list.map(([label], i) => {
      const item = document.createElement("span"), dot = document.createElement("i"), value = document.createElement("b");
      dot.className = "swatch", dot.style.background = hues[i % hues.length], value.className = "value";
      item.append(dot, label + " ", value);
      return item;
    }));
    return chart;
  }

  // Times
  within(min, max) {
    const { first, last } = this.data, whole = last - first;
    if (min == null || !(max > min)) return [this.from, this.to];
    const span = Math.min(Math.max(max - min, whole / 1e6, 1e-5), whole);
    const start = Math.min(Math.max(min, first), last - span);
    return [start, start + span];
  }
  moved(chart) {
    const { min, max } = chart.scales.x;
    if (this.moving || (min === this.from && max === this.to)) return;
    this.show(min, max);
  }
  show(from, to) {
    [this.from, this.to] = this.within(from, to);
    this.moving = true;
    for (const chart of this.charts) chart.setScale("x", { min: this.from, max: this.to });
    this.moving = false;
    Object.assign(this.box.dataset, { from: this.from, to: this.to });
  }
  zoom(factor, around = (this.from + this.to) / 2) { this.show(around - (around - this.from) * factor, around + (this.to - around) * factor); }
  pan(part) { const by = part * (this.to - this.from); this.show(this.from + by, this.to + by); }

  // Drawing, in pixels of the canvas
  paint(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio, scroll = this.box.scrollTop;
    const view = { left: bbox.left, right: bbox.left + bbox.width, ratio, x: t => bbox.left + (t - this.from) / (this.to - this.from) * bbox.width };
    ctx.save();
    ctx.beginPath(), ctx.rect(0, bbox.top, u.ctx.canvas.width, bbox.height), ctx.clip();
    const shown = this.lines.list.filter(line => line.y + line.height >= scroll - 20 && line.y <= scroll + bbox.height / ratio);
    let labelled = -Infinity;
    for (const line of shown) {
      view.top = bbox.top + (line.y - scroll) * ratio, view.height = line.height * ratio;
      ctx.fillStyle = colour("row");
      ctx.fillRect(view.left, view.top, bbox.width, view.height);
      const place = line.open ? line.y + 4 : (line.top + line.bottom) / 2 - 7;
      if ((line.open || line.isFirst) && place >= labelled) { this.label(ctx, line, bbox.top + (place - scroll) * ratio, view); labelled = place + 12; }
    }
    ctx.beginPath(), ctx.rect(view.left, bbox.top, bbox.width, bbox.height), ctx.clip();
    for (const line of shown) {
      view.top = bbox.top + (line.y - scroll) * ratio, view.height = line.height * ratio;
      for (const row of line.rows) this.paintRow(ctx, row, view);
    }
    if (this.path) this.paintPath(ctx, bbox, view, scroll);
    if (this.pinned >= 0) this.outline(ctx, this.pinned, bbox, view, scroll, 2);
    ctx.restore();
  }
  label(ctx, line, y, view) {
    const { ratio } = view, name = `${line.open ? "▾" : "▸"} rank ${line.rank.n}`, narrow = this.labels < 100;
    ctx.fillStyle = colour("soft"), ctx.font = `${11 * ratio}px system-ui, sans-serif`, ctx.textBaseline = "top";
    ctx.textAlign = "left";
    if (line.isFirst && this.data.ranks.length) ctx.fillText(narrow ? name.replace("rank ", "") : name, 4 * ratio, y);
    if (!line.open || !line.rows.length) return;
    ctx.textAlign = "right";
    const own = line.rows[0].name.replace("collectives of ", "group "), room = narrow ? 6 : line.isFirst ? 10 : 19;
    ctx.fillText(own.length > room ? own.slice(0, room - 1) + "…" : own, view.left - 6 * ratio, y);
  }
  isLit(k) {
    if (this.found) return this.found.hit[k] === 1;
    return this.hot < 0 || this.bars.calls[k] === this.hot;
  }
  // What is narrower than a pixel is as opaque as it fills the pixel, together with its neighbours of the same colour.
  paintRow(ctx, row, view) {
    const bars = this.bars, sums = new Map();
    let pixel = NaN;
    const flush = () => {
      for (const [look, cover] of sums) this.fill(ctx, look >> 1, look & 1, Math.min(1, Math.max(cover, .1)), pixel, 1, view);
      sums.clear();
    };
    for (let k = bars.firstAfter(row, this.from); k < row.at + row.count && bars.starts[k] < this.to; k++) {
      const left = Math.max(view.x(bars.starts[k]), view.left - 9), right = Math.min(view.x(bars.end(k)), view.right + 9);
      const look = bars.names[k] * 2 + (this.isLit(k) ? 1 : 0);
      if (right - left >= 1) {
        flush(), pixel = NaN;
        this.fill(ctx, look >> 1, look & 1, 1, left, right - left - (right - left > 5 ? .6 * view.ratio : 0), view);
        if (right - left > 36 * view.ratio && view.height >= 10 * view.ratio) this.write(ctx, bars.name(k), bars.kind(k), left, right, view);
        continue;
      }
      if (Math.floor(left) !== pixel) { flush(); pixel = Math.floor(left); }
      sums.set(look, (sums.get(look) || 0) + right - left);
    }
    flush();
  }
  fill(ctx, name, lit, opacity, x, width, view) {
    const kind = this.data.names[name][1];
    ctx.globalAlpha = lit ? opacity : .22 * opacity;
    ctx.fillStyle = colour(kind);
    ctx.fillRect(x, view.top, width, view.height);
    if (kind === "hang" && width > 8) this.hatch(ctx, x, width, view);
    ctx.globalAlpha = 1;
  }
  hatch(ctx, x, width, view) {
    ctx.save();
    ctx.beginPath(), ctx.rect(x, view.top, width, view.height), ctx.clip();
    ctx.strokeStyle = colour("card"), ctx.lineWidth = 1.5 * view.ratio, ctx.beginPath();
    for (let i = x - view.height; i < x + width; i += 7 * view.ratio) ctx.moveTo(i, view.top + view.height), ctx.lineTo(i + view.height, view.top);
    ctx.stroke();
    ctx.restore();
  }
  write(ctx, text, kind, left, right, view) {
    const size = Math.min(11, view.height / view.ratio - 2), start = Math.max(left, view.left);
    ctx.font = `${size * view.ratio}px system-ui, sans-serif`, ctx.textBaseline = "middle", ctx.textAlign = "left";
    ctx.fillStyle = kind === "wait" || kind === "annotation" ? "#1c2430" : "#fff";
    const room = Math.floor((Math.min(right, view.right) - start - 6 * view.ratio) / (size * .56 * view.ratio));
    if (room >= 4) ctx.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, start + 3 * view.ratio, view.top + view.height / 2);
  }
  outline(ctx, k, bbox, view, scroll, thickness) {
    const line = this.lines.of(this.bars.row(k));
    if (!line) return;
    const x = view.x(this.bars.starts[k]), width = Math.max(view.x(this.bars.end(k)) - x, 1);
    ctx.strokeStyle = colour("ink"), ctx.lineWidth = thickness * view.ratio;
    ctx.strokeRect(x, bbox.top + (line.y - scroll) * view.ratio, width, line.height * view.ratio);
  }
  paintPath(ctx, bbox, view, scroll) {
    let last = null;
    ctx.strokeStyle = ctx.fillStyle = colour("ink"), ctx.lineWidth = 1.5 * view.ratio;
    for (const [rank, k, start, end, kind] of this.data.path) {
      const own = k >= 0 && this.lines.of(this.bars.row(k)), line = own || this.lines.list.find(line => line.rank.n === rank);
      if (!line) continue;
      const middle = bbox.top + (line.y + line.height / 2 - scroll) * view.ratio, left = view.x(start), right = view.x(end);
      if (left < view.right && right > view.left) {
        ctx.globalAlpha = kind === "host" || kind === "idle" ? .45 : 1;
        ctx.fillRect(left, middle - view.ratio, Math.max(right - left, 1), 2 * view.ratio);
        if (last && last.middle !== middle) { ctx.globalAlpha = .45; ctx.beginPath(), ctx.moveTo(left, last.middle), ctx.lineTo(left, middle), ctx.stroke(); }
      }
      last = { middle };
    }
    ctx.globalAlpha = 1;
  }
  redraw() { this.main.redraw(false, false); }

  // Under the mouse
  under(u) {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return -1;
    const y = top + this.box.scrollTop, line = this.lines.near(y);
    if (!line || y < line.y - 2) return -1;
    const time = u.posToVal(left, "x"), slack = 2 * (this.to - this.from) / Math.max(u.bbox.width / devicePixelRatio, 1);
    for (const row of [...line.rows].reverse()) { const k = this.bars.at(row, time, slack); if (k >= 0) return k; }
    return -1;
  }
  hover(u) {
    const k = this.over ? this.under(u) : -1, hot = k >= 0 ? this.bars.calls[k] : -1;
    this.tip.style.display = k >= 0 ? "block" : "none";
    if (k >= 0) {
      this.tip.textContent = this.bars.told(k);
      const place = u.over.getBoundingClientRect(), x = place.left + u.cursor.left, y = place.top + u.cursor.top;
      this.tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - this.tip.offsetWidth - 8)) + "px";
      this.tip.style.top = Math.max(8, y + 18 + this.tip.offsetHeight > innerHeight ? y - this.tip.offsetHeight - 12 : y + 18) + "px";
    }
    if (hot !== this.hot && this.pinned < 0) { this.hot = hot; this.redraw(); }
  }
  pin(k) {
    this.pinned = k, this.hot = k >= 0 ? this.bars.calls[k] : -1;
    at("pinned").hidden = k < 0;
    if (k >= 0) at("pinned-text").textContent = this.bars.told(k);
    this.redraw();
  }
  // Brings a bar into sight.
  reveal(k) {
    const row = this.bars.row(k), span = this.to - this.from, length = this.bars.lengths[k];
    if (!this.lines.of(row)) { this.lines.open.add(row.rank); this.relay(); }
    const line = this.lines.of(row), middle = this.bars.starts[k] + length / 2;
    const wanted = length < span / 60 || length > span ? Math.max(length * 12, (this.data.last - this.data.first) / 1e5) : span;
    if (line.y < this.box.scrollTop || line.y + 40 > this.box.scrollTop + this.shownHeight()) this.box.scrollTop = line.y - this.shownHeight() / 3;
    if (wanted !== span || this.bars.starts[k] < this.from || this.bars.end(k) > this.to) this.show(middle - wanted / 2, middle + wanted / 2);
    this.pin(k);
  }
  relay() {
    this.lines.lay();
    const height = this.shownHeight();
    at("spacer").style.height = Math.max(0, this.lines.height + 36 - height) + "px";
    at("timeline").style.height = height + "px";
    this.main.setSize({ width: this.width, height });
    this.redraw();
  }
  search(text) {
    this.found = text ? this.bars.search(text) : null;
    this.chosen = -1;
    this.count();
    this.redraw();
  }
  step(by) {
    const list = this.found ? this.found.list : [];
    if (!list.length) return;
    this.chosen = this.chosen < 0 && by < 0 ? list.length - 1 : (this.chosen + by + list.length) % list.length;
    this.reveal(list[this.chosen]);
    this.count();
  }
  count() {
    const n = this.found ? this.found.list.length : 0;
    at("found").textContent = !this.found ? "" : !n ? "not found" : this.chosen < 0 ? `${n} found` : `${this.chosen + 1} of ${n}`;
  }

  // What people do
  listen() {
    this.listenToMain();
    this.box.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => this.fit()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); this.rebuild(); });
    document.addEventListener("keydown", event => this.key(event));
    const buttons = { "zoom-in": () => this.zoom(.5), "zoom-out": () => this.zoom(2), whole: () => this.show(this.data.first, this.data.last),
      previous: () => this.step(-1), next: () => this.step(1), unpin: () => this.pin(-1),
      "all-rows": () => { this.lines.all = this.toggle("all-rows"); this.lines.open.clear(); this.relay(); },
      path: () => { this.path = this.toggle("path"); this.redraw(); },
      png: () => this.png(), csv: () => save("timeline.csv", "text/csv", this.csv()),
      json: () => save("report.json", "application/json", at("summary").textContent) };
    for (const id in buttons) at(id).addEventListener("click", buttons[id]);
    at("search").addEventListener("input", event => this.search(event.target.value.trim()));
    at("search").addEventListener("keydown", event => { if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1); });
  }
  listenToMain() {
    const over = this.main.over;
    over.addEventListener("mouseenter", () => { this.over = true; });
    over.addEventListener("mouseleave", () => { this.over = false; this.hover(this.main); });
    over.addEventListener("wheel", event => this.wheel(event), { passive: false });
    let began = null;
    over.addEventListener("mousedown", event => { began = [event.clientX, event.clientY]; });
    over.addEventListener("click", event => {
      if (began && Math.hypot(event.clientX - began[0], event.clientY - began[1]) < 4) this.pin(this.under(this.main));
    });
    this.main.root.addEventListener("click", event => this.fold(event));
    this.touch(over);
  }
  // A click on a rank's name shows all its rows, or only those of its device.
  fold(event) {
    const place = this.main.over.getBoundingClientRect();
    if (event.clientX >= place.left || event.clientY > place.bottom) return;
    const line = this.lines.near(event.clientY - place.top + this.box.scrollTop);
    if (!line || this.lines.all) return;
    if (!this.lines.open.delete(line.rank.n)) this.lines.open.add(line.rank.n);
    this.relay();
  }
  // Two fingers zoom, one moves; up and down it scrolls.
  touch(over) {
    const fingers = new Map();
    const spread = () => { const xs = [...fingers.values()]; return [Math.min(...xs), Math.max(...xs)]; };
    over.addEventListener("pointerdown", event => { if (event.pointerType === "touch") fingers.set(event.pointerId, event.clientX); });
    for (const gone of ["pointerup", "pointercancel", "pointerleave"]) over.addEventListener(gone, event => fingers.delete(event.pointerId));
    over.addEventListener("pointermove", event => {
      if (!fingers.has(event.pointerId)) return;
      const place = over.getBoundingClientRect(), time = x => this.from + (x - place.left) / place.width * (this.to - this.from);
      const [left, right] = spread().map(time);
      fingers.set(event.pointerId, event.clientX);
      const [a, b] = spread().map(x => (x - place.left) / place.width);
      if (b - a < .02) { this.show(this.from + left - time(a * place.width + place.left), this.to + left - time(a * place.width + place.left)); return; }
      const span = (right - left) / (b - a);
      this.show(left - a * span, left + (1 - a) * span);
    });
  }
  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    const turned = event.deltaY || event.deltaX;
    if (!event.ctrlKey) { this.pan((event.deltaX || turned) / 500); return; }
    const place = this.main.over.getBoundingClientRect();
    this.zoom(Math.exp(turned / 300), this.from + (event.clientX - place.left) / place.width * (this.to - this.from));
  }
  key(event) {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) { if (event.key === "Escape") event.target.blur(); return; }
    const keys = { ArrowLeft: () => this.pan(-.2), ArrowRight: () => this.pan(.2), "+": () => this.zoom(.5), "=": () => this.zoom(.5), "-": () => this.zoom(2),
      0: () => this.show(this.data.first, this.data.last), "/": () => at("search").focus(), n: () => this.step(1), p: () => this.step(-1), Escape: () => this.pin(-1) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }
  toggle(id) {
    const on = at(id).getAttribute("aria-pressed") !== "true";
    at(id).setAttribute("aria-pressed", on);
    return on;
  }
  fit() {
    if (this.labels !== this.narrow) { this.rebuild(); return; }
    for (const chart of this.charts) if (chart.width !== this.width) chart.setSize({ width: this.width, height: chart.height });
  }
  rebuild() { this.makeCharts(); this.listenToMain(); this.show(this.from, this.to); }
  png() {
    const from = this.main.ctx.canvas, copy = document.createElement("canvas");
    copy.width = from.width, copy.height = from.height;
    const ctx = copy.getContext("2d");
    ctx.fillStyle = colour("card"), ctx.fillRect(0, 0, copy.width, copy.height), ctx.drawImage(from, 0, 0);
    copy.toBlob(blob => save("timeline.png", "image/png", blob));
  }
  csv() {
    const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text, lines = ["rank,row,name,start_us,duration_us,called_at"];
    for (const row of this.bars.rows) for (let k = row.at; k < row.at + row.count; k++)
      lines.push([row.rank, quoted(row.name), quoted(this.bars.name(k)), +this.bars.starts[k].toFixed(6), +this.bars.lengths[k].toFixed(6), quoted(this.data.sites[this.bars.sites[k]])].join());
    return lines.join("\n") + "\n";
  }
}

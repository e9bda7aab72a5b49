// Under the mouse a collective is lit on all ranks, and a box says what it is.
const about = JSON.parse(document.getElementById("collectives").textContent);
const box = document.getElementById("tip");
for (const chart of document.querySelectorAll(".timeline")) {
  let lit = [];
  const dark = () => { lit.forEach(bar => bar.classList.remove("hot")); lit = []; chart.classList.remove("dim"); box.style.display = "none"; };
  chart.addEventListener("mouseover", event => {
    dark();
    const number = event.target.dataset.c;
    if (number === undefined) return;
    lit = [...chart.querySelectorAll(`[data-c="${number}"]`)];
    lit.forEach(bar => bar.classList.add("hot"));
    chart.classList.add("dim");
    box.textContent = about[number];
    box.style.display = "block";
  });
  chart.addEventListener("mousemove", event => {
    box.style.left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8) + "px";
    box.style.top = Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 8) + "px";
  });
  chart.addEventListener("mouseleave", dark);
}

// A timeline shows a part of its time: what is between two moments, in microseconds.
const TIME_UNITS = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"], [0, "ps"]];
const SVG = "http://www.w3.org/2000/svg";
function timeText(us) {
  if (us === 0) return "0";
  const [size, unit] = TIME_UNITS.find(([size]) => us >= size * (1 - 1e-9));
  return Number((us / (size || 1e-6)).toPrecision(6)) + " " + unit;
}
function drawn(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}
class Zoom {
  constructor(chart) {
    this.chart = chart;
    this.bars = chart.querySelector(".scaled");
    this.axis = chart.querySelector(".axis");
    this.names = [...chart.querySelectorAll(".annotation-name")];
    this.duration = Number(this.bars.dataset.duration);
    this.left = this.bars.x.baseVal.value;
    this.width = this.bars.width.baseVal.value;
    this.height = this.bars.height.baseVal.value;
    this.first = this.axis.innerHTML;
    this.show(0, this.duration);
    chart.addEventListener("wheel", event => this.wheel(event), { passive: false });
    chart.addEventListener("pointerdown", event => this.press(event));
    chart.addEventListener("pointermove", event => this.drag(event));
    chart.addEventListener("pointerup", event => this.release(event));
    chart.addEventListener("dblclick", () => this.show(0, this.duration));
  }
  x(event) {
    const place = this.chart.getBoundingClientRect();
    const x = (event.clientX - place.left) * this.chart.viewBox.baseVal.width / place.width;
    return Math.min(Math.max(x, this.left), this.left + this.width);
  }
  time(x) { return this.from + (x - this.left) / this.width * (this.to - this.from); }
  show(from, to) {
    const shortest = Math.max(this.duration / 1e5, 1e-6), span = Math.min(Math.max(to - from, shortest), this.duration);
    this.from = Math.min(Math.max(from, 0), this.duration - span);
    this.to = this.from + span;
    const scale = this.width / (this.duration || 1);
    this.bars.setAttribute("viewBox", `${this.left + this.from * scale} 0 ${span * scale || this.width} ${this.height}`);
    this.place();
    this.ticks();
  }
  place() {
    const factor = this.duration / (this.to - this.from), start = this.left + this.from * this.width / this.duration;
    const within = x => Math.min(Math.max(this.left + (x - start) * factor, this.left), this.left + this.width);
    for (const name of this.names) {
      const left = within(name.dataset.left), right = within(name.dataset.right);
      name.setAttribute("x", (left + right) / 2);
      name.setAttribute("display", right - left > 7 * name.textContent.length ? "inline" : "none");
    }
  }
  ticks() {
    if (this.to - this.from >= this.duration) { this.axis.innerHTML = this.first; return; }
    this.axis.replaceChildren();
    const power = 10 ** Math.floor(Math.log10((this.to - this.from) / 9));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= (this.to - this.from) / 9 * (1 - 1e-9));
    const top = this.axis.dataset.top, bottom = this.axis.dataset.bottom;
    for (let i = Math.ceil(this.from / step - 1e-9); i * step <= this.to + 1e-9 * step; i++) {
      const x = this.left + (i * step - this.from) / (this.to - this.from) * this.width;
      this.axis.append(drawn("line", { x1: x, x2: x, y1: top, y2: bottom, class: "grid" }));
      const last = x > this.left + this.width - 24;
      const place = { x: x, y: Number(bottom) + 14, class: "tick", style: last ? "text-anchor: end" : "" };
      this.axis.append(drawn("text", place, timeText(i * step)));
    }
  }
  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const turned = event.deltaY || event.deltaX, span = this.to - this.from;
    if (event.shiftKey) { this.show(this.from + turned / 500 * span, this.to + turned / 500 * span); return; }
    const factor = Math.exp(turned / 300), at = this.time(this.x(event));
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  press(event) {
    if (event.button !== 0) return;
    this.began = this.x(event);
    this.chosen = drawn("rect", { x: this.began, y: 0, width: 0, height: this.height, class: "chosen" });
    this.chart.append(this.chosen);
  }
  drag(event) {
    if (this.chosen === undefined) return;
    const x = this.x(event);
    this.chosen.setAttribute("x", Math.min(x, this.began));
    this.chosen.setAttribute("width", Math.abs(x - this.began));
  }
  release(event) {
    if (this.chosen === undefined) return;
    const times = [this.began, this.x(event)].map(x => this.time(x)).sort((a, b) => a - b);
    if (Math.abs(this.x(event) - this.began) > 4) this.show(...times);
    this.chosen.remove();
    this.chosen = undefined;
  }
}
for (const chart of document.querySelectorAll(".timeline")) chart.zoom = new Zoom(chart);

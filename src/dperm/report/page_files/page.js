"use strict";
(async () => {
  // Packed, for there is much of it; a browser that cannot read it shows the still pictures.
  if (!("DecompressionStream" in window)) {
    document.querySelectorAll(".charts noscript").forEach(each => { each.parentNode.innerHTML = each.textContent; });
    return;
  }
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt(0));
  const FIGURES = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const BANDS = JSON.parse(document.getElementById("bands").textContent);
  const W = 360, H = 250, M = { l: 58, r: 10, t: 8, b: 40 };
  const NS = "http://www.w3.org/2000/svg";

  function svg(tag, attributes, parent) {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  }
  function html(tag, attributes, parent, text) {
    const node = document.createElement(tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }
  const format = v => v === null || v === undefined ? "" :
    v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? v.toExponential(2) : String(+v.toPrecision(4));

  // --- scales -------------------------------------------------------------------------
  function extent(values, log) {
    let kept = values.filter(v => v !== null && (!log || v > 0));
    if (!kept.length) return log ? [0.1, 1] : [0, 1];
    let low = kept.reduce((a, b) => Math.min(a, b)), high = kept.reduce((a, b) => Math.max(a, b));
    if (low === high) { low = log ? low / 2 : low - 0.5; high = log ? high * 2 : high + 0.5; }
    return [low, high];
  }
  function padded([low, high], log) {
    if (log) { const f = (high / low) ** 0.04; return [low / f, high * f]; }
    const d = (high - low) * 0.04; return [low - d, high + d];
  }
  function scale([low, high], log, from, to) {
    const f = log ? Math.log : v => v, a = f(low), b = f(high);
    const place = v => v === null || (log && v <= 0) ? null : from + (f(v) - a) / (b - a) * (to - from);
    place.back = p => { const v = a + (p - from) / (to - from) * (b - a); return log ? Math.exp(v) : v; };
    return place;
  }
  function ticks([low, high], log) {
    if (log) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9), found = [];
      const step = Math.max(1, Math.ceil((last - first + 1) / 6));
      const within = Math.log10(high / low) < 2.2 ? [1, 2, 5] : [1];
      for (let e = first - 1; e <= last; e += step) for (const k of within) found.push(+(k * 10 ** e).toPrecision(3));
      const kept = found.filter(v => v >= low * 0.999 && v <= high * 1.001);
      if (kept.length >= 2) return kept;
      low = Math.max(low, 1e-300);
    }
    const raw = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(k => k * unit).find(k => k >= raw), found = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) found.push(+v.toPrecision(10));
    return log ? found.filter(v => v > 0) : found;
  }

  // --- one chart ----------------------------------------------------------------------
  class Chart {
    constructor(panel, parent) {
      panel.curves.forEach((c, i) => { c.x = c.x || panel.curves[i - 1].x; });
      this.panel = panel; this.off = new Set(); this.at = [0, 0]; this.view = null;
      const ys = panel.curves.flatMap(c => c.mean), xs = panel.curves.flatMap(c => c.x);
      const timed = panel.x.includes("seconds");  // 0 seconds have no place there
      this.log = { x: (timed || !xs.includes(0)) && this.wide(xs.filter(x => !timed || x), 12), y: this.wide(ys, 8) };
      this.bands = Object.keys(BANDS).filter(key => panel.curves.some(c => key in c)).concat("");
      this.band = this.bands[0];
      const node = html("div", { class: "chart" }, parent);
      html("p", { class: "top" }, node, panel.name);
      const tools = html("div", { class: "tools" }, node);
      this.buttons = {};
      for (const key of ["x", "y"]) {
        this.buttons[key] = this.button(tools, "log " + key, () => { this.log[key] = !this.log[key]; this.view = null; this.draw(); });
      }
      for (const [text, factor, title] of [["+", 1 / 1.5, "zoom in"], ["−", 1.5, "zoom out"]]) {
        this.button(tools, text, () => this.step(factor)).setAttribute("aria-label", title);
      }
      this.button(tools, "all", () => { this.view = null; this.draw(); }).setAttribute("title", "show all");
      if (this.bands.length > 1) this.named = this.button(tools, "", () => {
        this.band = this.bands[(this.bands.indexOf(this.band) + 1) % this.bands.length]; this.draw();
      });
      this.svg = svg("svg", { viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "application", "aria-roledescription": "chart",
        "aria-label": `${panel.name}: ${panel.y} against ${panel.x}; ${panel.curves.map(c => c.name).join(", ")}. Arrow keys read the values.` });
      node.appendChild(this.svg);
      const legend = html("ul", { class: "legend" }, node);
      panel.curves.forEach((curve, i) => {
        const b = this.button(html("li", {}, legend), "", () => {
          this.off.has(i) ? this.off.delete(i) : this.off.add(i);
          b.setAttribute("aria-pressed", String(!this.off.has(i))); this.draw();
        });
        b.setAttribute("aria-pressed", "true");
        const key = svg("svg", { class: `key ${curve.look}`, viewBox: "0 0 30 10", "aria-hidden": "true" }, b);
        if (!curve.star) svg("path", { d: "M0 5H30", "stroke-dasharray": curve.dash }, key);
        if (curve.mark) svg("use", { href: "#" + curve.mark, x: 15, y: 5 }, key);
        b.append(curve.cost ? `${curve.name}, ${curve.cost}` : curve.name);
      });
      parent.legends = parent.legends || new Set();  // on paper each legend once
      if (parent.legends.has(legend.textContent)) legend.classList.add("again");
      parent.legends.add(legend.textContent);
      this.tip = html("div", { class: "tip", "aria-live": "polite" }, node, "Point at a curve, or press an arrow key, to read it.");
      this.events(); this.draw();
    }
    wide(values, factor) {
      const kept = values.filter(v => v !== null);
      if (!kept.length || kept.some(v => v < 0)) return false;
      const up = kept.filter(v => v > 0);
      return up.length > 1 && (kept.length - up.length) * 20 <= kept.length && extent(up, true)[1] / extent(up, true)[0] > factor;
    }
    button(parent, text, act) {
      const b = html("button", { type: "button" }, parent, text);
      b.addEventListener("click", act);
      return b;
    }
    shown() { return this.panel.curves.map((c, i) => [c, i]).filter(([, i]) => !this.off.has(i)); }
    whole() {
      const curves = this.shown().map(([c]) => c);
      const xs = curves.flatMap(c => c.x), ys = curves.flatMap(c => c.mean);
      const ends = this.band ? curves.flatMap(c => (c[this.band] || []).flat()) : [];
      const spread = ends.filter(v => v !== null && (!this.log.y || v > 0));
      const [low, high] = extent(ys, this.log.y);
      const near = this.log.y ? spread.filter(v => v >= low / 4 && v <= high * 4) : spread;
      return { x: padded(extent(xs, this.log.x), this.log.x), y: padded(extent([...ys, ...near], this.log.y), this.log.y) };
    }
    draw() {
      for (const key of ["x", "y"]) this.buttons[key].setAttribute("aria-pressed", String(this.log[key]));
      if (this.named) this.named.textContent = `band: ${this.band ? BANDS[this.band] : "none"}`;
      const view = this.now = this.view || this.whole();
      this.sx = scale(view.x, this.log.x, M.l, W - M.r); this.sy = scale(view.y, this.log.y, H - M.b, M.t);
      this.svg.replaceChildren();
      const id = "c" + (Chart.count = (Chart.count || 0) + 1);
      svg("rect", { x: M.l, y: M.t, width: W - M.l - M.r, height: H - M.t - M.b }, svg("clipPath", { id }, svg("defs", {}, this.svg)));
      this.axes(view);
      const inside = svg("g", { "clip-path": `url(#${id})` }, this.svg);
      for (const [curve, i] of this.shown()) this.curve(inside, curve, i);
      this.cursor = svg("g", {}, this.svg);
    }
    axes(view) {
      for (const v of ticks(view.x, this.log.x)) {
        const x = this.sx(v); if (x === null || x < M.l - 1 || x > W - M.r + 1) continue;
        svg("line", { class: "axis", x1: x, x2: x, y1: M.t, y2: H - M.b }, this.svg);
        svg("text", { x, y: H - M.b + 14, "text-anchor": "middle" }, this.svg).textContent = format(v);
      }
      for (const v of ticks(view.y, this.log.y)) {
        const y = this.sy(v); if (y === null || y < M.t - 1 || y > H - M.b + 1) continue;
        svg("line", { class: "axis", x1: M.l, x2: W - M.r, y1: y, y2: y }, this.svg);
        svg("text", { x: M.l - 5, y: y + 4, "text-anchor": "end" }, this.svg).textContent = format(v);
      }
      svg("text", { x: (M.l + W - M.r) / 2, y: H - 6, "text-anchor": "middle" }, this.svg).textContent = this.panel.x;
      svg("text", { transform: `translate(11 ${(H - M.b) / 2}) rotate(-90)`, "text-anchor": "middle" }, this.svg).textContent = this.panel.y;
    }
    curve(parent, curve, i) {
      const group = svg("g", { class: `${curve.look} line` }, parent), f = v => v.toFixed(1), floor = this.sy(this.now.y[0]);
      const band = this.band && curve[this.band], [low, high] = band || [curve.mean, curve.mean];
      const points = curve.x.map((x, k) => [this.sx(x), this.sy(curve.mean[k]), this.sy(high[k]), this.sy(low[k])])
        .filter(p => p[0] !== null && p[1] !== null).sort((a, b) => a[0] - b[0]);
      if (!points.length) return;
      const up = points.map(p => `${f(p[0])},${f(p[2] === null ? p[1] : p[2])}`);
      const down = points.map(p => `${f(p[0])},${f(p[3] === null ? (p[2] === null ? p[1] : floor + 50) : p[3])}`).reverse();
      if (points.length > 1 && !curve.star) {
        if (band) svg("polygon", { points: [...up, ...down].join(" "), class: "band" }, group);
        svg("polyline", { points: points.map(p => `${f(p[0])},${f(p[1])}`).join(" "), fill: "none", stroke: "currentColor",
          "stroke-dasharray": curve.dash }, group);
      } else for (const p of points) if (p[2] !== null && p[3] !== null && p[2] !== p[3])
        svg("line", { x1: p[0], x2: p[0], y1: p[2], y2: p[3], stroke: "currentColor" }, group);
      const every = Math.max(1, Math.floor(points.length / 8));
      points.forEach((p, k) => { if (curve.mark && (k % every === 0 || k === points.length - 1))
        svg("use", { href: "#" + curve.mark, x: f(p[0]), y: f(p[1]), class: curve.star ? "star" : "" }, group); });
    }
    mark(i, k) {
      const curve = this.panel.curves[i];
      this.at = [i, k]; this.cursor.replaceChildren();
      const x = this.sx(curve.x[k]), y = this.sy(curve.mean[k]);
      this.cursor.setAttribute("class", curve.look);
      if (x !== null && y !== null) svg("circle", { cx: x, cy: y, r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2.5 }, this.cursor);
      const reading = ([key, name]) => {
        const [low, high] = (curve[key] || [[], []]).map(end => end[k]);
        return low !== high ? `, ${name} ${format(low)} to ${format(high)}` : "";
      };
      const set = [curve.cost, curve.setting].filter(Boolean).join(", ");
      this.tip.textContent = `${curve.name}: ${format(curve.mean[k])} at ${this.panel.x} ${format(curve.x[k])}` +
        Object.entries(BANDS).map(reading).join("") + (set ? ` · ${set}` : "");
    }
    nearest(px, py) {
      let best = null, least = Infinity;
      for (const [curve, i] of this.shown()) curve.x.forEach((v, k) => {
        const x = this.sx(v), y = this.sy(curve.mean[k]);
        if (x === null || y === null) return;
        const d = (x - px) ** 2 + ((y - py) ** 2) / 4;
        if (d < least) { least = d; best = [i, k]; }
      });
      return best;
    }
    place(event) {
      const box = this.svg.getBoundingClientRect();
      return [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * H / box.height];
    }
    events() {
      let start = null, box = null;
      this.svg.addEventListener("pointerdown", e => { if (e.pointerType !== "touch" && e.button === 0) start = this.place(e); });
      this.svg.addEventListener("pointermove", e => {
        const p = this.place(e);
        if (start) {
          if (!box) { box = svg("rect", { class: "box" }, this.svg); this.svg.setPointerCapture(e.pointerId); }
          const [a, b] = [Math.min(start[0], p[0]), Math.min(start[1], p[1])];
          for (const [key, v] of [["x", a], ["y", b], ["width", Math.abs(p[0] - start[0])], ["height", Math.abs(p[1] - start[1])]]) box.setAttribute(key, v);
          return;
        }
        const near = this.nearest(...p); if (near) this.mark(...near);
      });
      this.svg.addEventListener("pointerup", e => {
        const p = this.place(e), from = start; start = null;
        if (box) { box.remove(); box = null; }
        if (from && Math.abs(p[0] - from[0]) > 8 && Math.abs(p[1] - from[1]) > 8) this.zoom(from, p);
        else { const near = this.nearest(...p); if (near) this.mark(...near); }
      });
      this.svg.addEventListener("pointercancel", () => { start = null; if (box) { box.remove(); box = null; } });
      this.svg.addEventListener("dblclick", () => { this.view = null; this.draw(); });
      this.svg.addEventListener("keydown", e => this.key(e));
    }
    zoom(a, b) {
      const xs = [a[0], b[0]].map(this.sx.back).sort((p, q) => p - q), ys = [a[1], b[1]].map(this.sy.back).sort((p, q) => p - q);
      this.view = { x: xs, y: ys }; this.draw();
    }
    key(event) {
      const shown = this.shown().map(([, i]) => i); if (!shown.length) return;
      let [i, k] = this.at; if (!shown.includes(i)) i = shown[0];
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key], other = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move) k += move;
      else if (other) i = shown[(shown.indexOf(i) + other + shown.length) % shown.length];
      else if (event.key === "+" || event.key === "-" || event.key === "=") { event.preventDefault(); return this.step(event.key === "-" ? 1.5 : 1 / 1.5); }
      else if (event.key === "0") { this.view = null; return this.draw(); }
      else return;
      event.preventDefault();
      k = Math.max(0, Math.min(this.panel.curves[i].x.length - 1, k));
      this.mark(i, k);
    }
    step(factor) {
      const [i, k] = this.at, curve = this.panel.curves[i];
      const at = [this.sx(curve.x[k]), this.sy(curve.mean[k])].map((v, n) => v === null ? [W / 2, H / 2][n] : v);
      const w = (W - M.l - M.r) * factor / 2, h = (H - M.t - M.b) * factor / 2;
      this.zoom([at[0] - w, at[1] - h], [at[0] + w, at[1] + h]); this.mark(i, k);
    }
  }

  // --- the page -----------------------------------------------------------------------
  // A chart is drawn when it comes into view; all are before they are printed.
  const all = new Set(document.querySelectorAll(".charts[data-key]"));
  function open(charts) {
    if (!all.delete(charts)) return;
    charts.replaceChildren();
    for (const panel of FIGURES[charts.dataset.key]) new Chart(panel, charts);
  }
  addEventListener("beforeprint", () => all.forEach(open));
  if ("IntersectionObserver" in window && !location.hash.includes("draw-all")) {
    const watch = new IntersectionObserver(seen => {
      for (const entry of seen) if (entry.isIntersecting) { open(entry.target); watch.unobserve(entry.target); }
    }, { rootMargin: "300px" });
    all.forEach(charts => watch.observe(charts));
  } else all.forEach(open);
})();

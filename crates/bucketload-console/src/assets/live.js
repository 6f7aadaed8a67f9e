'use strict';
// Charts of a running workload, drawn with charts.js. The server sends at most 360 points per phase, and only
// those are kept here. Lines differ in colour and in dash pattern.
const DASHES = ['', '7 4', '2 3', '9 3 2 3', '5 2', '1 4', '12 4', '4 2 1 2'];

// Merges new points into the series of the shown phase: {phase, width_s, classes, points}.
function merge(held, part) {
  const same = held && held.phase === part.phase && held.width_s === part.width_s && part.from <= held.points.length;
  if (!same || part.from === 0) return {phase: part.phase, width_s: part.width_s, classes: part.classes, points: part.points};
  held.classes = part.classes;
  held.points.length = part.from;
  held.points.push(...part.points);
  return held;
}

// Selects the best unit for a time axis.
function timeAxis(series) {
  const last = series.points.length ? series.points[series.points.length - 1].t_s + series.width_s : 1;
  const [factor, unit] = last > 10800 ? [3600, 'h'] : last > 300 ? [60, 'min'] : [1, 's'];
  return {factor, axis: {label: 'time in the phase', unit}};
}

// The lines of a chart, one per operation class; pick(class) returns the value.
function linesOf(series, pick, style) {
  return series.classes.map((name, i) => ({
    name: (style && style.prefix || '') + name, color: i % 6, dash: DASHES[(i + (style && style.shift || 0)) % DASHES.length],
    points: series.points.map(p => [p.t_s, p.classes[i] ? pick(p.classes[i]) : null]),
  }));
}

const CHART_KINDS = [
  {title: 'Throughput', y: {label: 'operations', unit: '/s'}, lines: s => [...linesOf(s, c => c.ops_per_s),
    {name: 'offered', color: 'x', dash: '3 3', points: s.points.map(p => [p.t_s, p.offered_per_s])}]},
  {title: 'Response time, p50 and p99', y: {label: 'response time', unit: 'ns', log: true}, lines: s => [
    ...linesOf(s, c => c.p99_ns || null, {prefix: 'p99 '}), ...linesOf(s, c => c.p50_ns || null, {prefix: 'p50 ', shift: 2})]},
  {title: 'Bytes', y: {label: 'object bytes', unit: 'B/s'}, lines: s => linesOf(s, c => c.bytes_per_s)},
  {title: 'Failures and operations in flight', y: {label: 'failed, in flight', unit: ''}, lines: s => [
    ...linesOf(s, c => c.failed_per_s, {prefix: 'failed/s '}),
    {name: 'in flight', color: 'x', dash: '3 3', points: s.points.map(p => [p.t_s, p.in_flight])}]},
];

// A chart that stays in the page and is redrawn with new data.
class LiveChart {
  constructor(kind, parent) {
    this.kind = kind;
    this.fig = el('figure', {}, parent);
    const cap = el('figcaption', {}, this.fig);
    el('span', {}, cap, kind.title);
    this.legend = el('span', {class: 'legend'}, cap);
    this.svg = el('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', tabindex: '0', 'aria-label': kind.title}, this.fig);
    this.tip = el('div', {class: 'tip'}, this.fig, ' ');
    this.at = null;
    this.svg.addEventListener('pointermove', e => {
      const r = this.svg.getBoundingClientRect();
      this.point((e.clientX - r.left) / r.width * W);
    });
    this.svg.addEventListener('pointerleave', () => this.point(null));
    this.svg.addEventListener('blur', () => this.point(null));
    this.svg.addEventListener('keydown', e => {
      const step = {ArrowLeft: -12, ArrowRight: 12}[e.key];
      if (!step) return;
      e.preventDefault();
      this.point(Math.min(Math.max((this.at ?? W - M.r) + step, M.l), W - M.r));
    });
  }

  point(x) {
    this.at = x !== null && x >= M.l && x <= W - M.r ? x : null;
    this.mark();
  }

  mark() {
    if (!this.sx) return;
    if (this.cursor) this.cursor.remove();
    this.cursor = null;
    if (this.at === null) { this.tip.textContent = ' '; return; }
    this.cursor = el('line', {class: 'cursor', x1: this.at, x2: this.at, y1: M.t, y2: H - M.b}, this.svg);
    const x = this.sx.back(this.at);
    this.tip.textContent = `${fmt(x, this.unit)}: ` + this.lines.filter(l => l.points.length)
      .map(l => `${l.name} ${fmt(nearest(l.points, x)[1], this.kind.y.unit)}`).join(', ');
  }

  draw(series) {
    const {factor, axis} = timeAxis(series);
    this.unit = axis.unit;
    this.lines = this.kind.lines(series).map(l => ({...l, points: l.points.map(([x, y]) => [x / factor, y])}));
    const values = this.lines.flatMap(l => l.points.map(p => p[1])), xs = this.lines.flatMap(l => l.points.map(p => p[0]));
    const chart = {x: axis, y: this.kind.y};
    this.sx = makeScale(axis, ...extent(axis, xs), M.l, W - M.r);
    const sy = makeScale(this.kind.y, ...extent(this.kind.y, values), H - M.b, M.t);
    this.svg.replaceChildren();
    frame(this.svg, chart, this.sx, sy);
    for (const l of this.lines) {
      el('path', {d: path(l.points, this.sx, sy), class: 'c' + l.color, fill: 'none', 'stroke-width': 1.8, 'stroke-linejoin': 'round', 'stroke-dasharray': l.dash}, this.svg);
      if (l.points.length === 1 && l.points[0][1] !== null) {
        const [x, y] = l.points[0], px = this.sx.at(x), py = sy.at(y);
        el('path', {d: `M${px} ${py}h4`, class: 'c' + l.color, 'stroke-width': 3}, this.svg);
      }
    }
    const names = this.lines.map(l => l.name).join('\n');
    if (names !== this.names) {
      this.names = names;
      this.legend.replaceChildren();
      for (const l of this.lines) {
        const item = el('span', {}, this.legend), swatch = el('svg', {viewBox: '0 0 30 8', 'aria-hidden': 'true'}, item);
        el('path', {d: 'M0 4H30', class: 'c' + l.color, fill: 'none', 'stroke-width': 2.4, 'stroke-dasharray': l.dash}, swatch);
        item.append(l.name);
      }
    }
    const latest = series.points[series.points.length - 1];
    if (latest) this.svg.setAttribute('aria-label', `${this.kind.title}. Latest: ` + this.lines
      .map(l => `${l.name} ${fmt((l.points[l.points.length - 1] || [])[1], this.kind.y.unit)}`).join(', '));
    this.mark();
  }
}

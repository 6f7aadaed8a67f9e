'use strict';
// Charts as SVG, without a library. A chart is {kind, title, note, x, y, series, marks}; kind is
// "lines", "bars" (horizontal, stacked; see drawBars) or "heat". An axis is {label, unit, log}; units are "s", "ns", "B", "B/s", "/s", "%"
// or "" and decide how ticks are written.
const SVG = 'http://www.w3.org/2000/svg';
const W = 640, H = 300, M = {l: 82, r: 14, t: 10, b: 40};

function el(name, attrs, parent, text) {
  const svg = ['svg', 'g', 'path', 'line', 'text', 'rect', 'title'].includes(name);
  const e = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const k in attrs || {}) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
}

function scaled(v, steps) {
  const a = Math.abs(v);
  let i = steps.length - 1;
  while (i > 0 && a < steps[i][0]) i--;
  const [f, u] = steps[i];
  const x = v / f, ax = Math.abs(x);
  const digits = ax >= 100 || x === 0 ? 0 : ax >= 10 ? 1 : ax >= 1 ? 2 : 3;
  return String(parseFloat(x.toFixed(digits))) + u;
}

function fmt(v, unit) {
  if (v === null || v === undefined || !isFinite(v)) return '–';
  switch (unit) {
    case 'ns': return scaled(v, [[1, ' ns'], [1e3, ' µs'], [1e6, ' ms'], [1e9, ' s']]);
    case 's': return scaled(v, [[1, ' s']]);
    case 'B': return scaled(v, [[1, ' B'], [1024, ' KiB'], [1048576, ' MiB'], [1073741824, ' GiB']]);
    case 'B/s': return scaled(v, [[1, ' B/s'], [1024, ' KiB/s'], [1048576, ' MiB/s'], [1073741824, ' GiB/s']]);
    case '%': return scaled(v * 100, [[1, ' %']]);
    case '/s': return scaled(v, [[1, '/s'], [1e3, 'k/s'], [1e6, 'M/s']]);
    default: return scaled(v, [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']]) + (unit ? ' ' + unit : '');
  }
}

function linearTicks(lo, hi, unit) {
  const base = (unit === 'B' || unit === 'B/s') ? 1024 : 1000;
  let f = 1;
  if (base === 1024) while (Math.abs(hi) / f >= 1024) f *= 1024;
  const span = (hi - lo) / f || 1, raw = span / 5, mag = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map(m => m * mag).find(s => s >= raw) * f;
  const out = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + step * 1e-6; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out;
}

function logTicks(lo, hi, unit) {
  if (unit === 'B' || unit === 'B/s') {
    // Powers of two, whose labels are round: 1, 32 KiB and the like.
    const l = Math.log2(lo), h = Math.log2(hi), out = [];
    const k = [1, 2, 5, 10].find(k => (h - l) / k <= 6) || 20;
    for (let e = Math.ceil((l - 1e-6) / k) * k; e <= h + 1e-6; e += k) out.push(Math.pow(2, e));
    if (out.length > 1) return out;
  }
  const out = [], from = Math.floor(Math.log10(lo)), to = Math.ceil(Math.log10(hi));
  const subs = to - from <= 2 ? [1, 2, 5] : [1];
  for (let d = from; d <= to; d++) for (const s of subs) {
    const v = s * Math.pow(10, d);
    if (v >= lo * 0.999 && v <= hi * 1.001) out.push(v);
  }
  return out;
}

function makeScale(axis, lo, hi, a, b) {
  if (axis.log) {
    const l = Math.log10(lo), h = Math.log10(hi);
    const at = v => a + (Math.log10(Math.max(v, lo)) - l) / ((h - l) || 1) * (b - a);
    return {at, back: p => Math.pow(10, l + (p - a) / (b - a) * (h - l)), ticks: logTicks(lo, hi, axis.unit)};
  }
  const at = v => a + (v - lo) / ((hi - lo) || 1) * (b - a);
  return {at, back: p => lo + (p - a) / (b - a) * (hi - lo), ticks: linearTicks(lo, hi, axis.unit)};
}

function extent(axis, values) {
  let lo = Infinity, hi = -Infinity;
  for (const v of values) {
    if (v === null || !isFinite(v) || (axis.log && v <= 0)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  if (axis.min !== undefined && axis.min !== null) lo = axis.min;
  if (axis.max !== undefined && axis.max !== null) hi = axis.max;
  if (!isFinite(lo) || !isFinite(hi)) { lo = axis.log ? 1 : 0; hi = axis.log ? 10 : 1; }
  if (axis.log) { if (lo === hi) { lo /= 2; hi *= 2; } } else {
    if (axis.zero !== false && lo > 0) lo = 0;
    if (lo === hi) hi = lo + 1;
  }
  return [lo, hi];
}

function frame(svg, chart, sx, sy) {
  const g = el('g', {class: 'axis'}, svg);
  let last = -1e9;
  for (const t of sx.ticks) {
    const x = sx.at(t), label = fmt(t, chart.x.unit);
    el('line', {x1: x, x2: x, y1: M.t, y2: H - M.b}, g);
    if (x - last < label.length * 6.4 + 8) continue;
    last = x;
    // The last label ends with the picture.
    const out = x + label.length * 3.2 > W - 2;
    el('text', {x: out ? W - 2 : x, y: H - M.b + 15, 'text-anchor': out ? 'end' : 'middle'}, g, label);
  }
  for (const t of sy.ticks) {
    const y = sy.at(t);
    el('line', {x1: M.l, x2: W - M.r, y1: y, y2: y}, g);
    el('text', {x: M.l - 6, y: y + 4, 'text-anchor': 'end'}, g, fmt(t, chart.y.unit));
  }
  el('text', {x: (M.l + W - M.r) / 2, y: H - 6, 'text-anchor': 'middle'}, g, chart.x.label);
  el('text', {x: 12, y: (M.t + H - M.b) / 2, 'text-anchor': 'middle', transform: `rotate(-90 12 ${(M.t + H - M.b) / 2})`}, g, chart.y.label);
}

function marks(svg, chart, sx) {
  const g = el('g', {class: 'mark'}, svg);
  for (const m of chart.marks || []) {
    const x = sx.at(m.x);
    el('line', {x1: x, x2: x, y1: M.t, y2: H - M.b}, g);
    // On the left where it would leave the chart on the right; a letter is 6 px wide.
    const fits = x + 4 + 6 * m.label.length < W;
    const at = fits ? {x: x + 4} : {x: x - 4, 'text-anchor': 'end'};
    el('text', {...at, y: M.t + 11}, g, m.label);
  }
}

function path(points, sx, sy, step) {
  let d = '', pen = false, before = null;
  for (const [x, y] of points) {
    if (y === null || !isFinite(y)) { pen = false; continue; }
    const px = sx.at(x).toFixed(1), py = sy.at(y).toFixed(1);
    // A point between two gaps is a dot: a line of no length with round ends.
    d += !pen ? `M${px} ${py}h0` : step ? `L${px} ${before}L${px} ${py}` : `L${px} ${py}`;
    before = py;
    pen = true;
  }
  return d;
}

// The parts of a band between the gaps of its line.
function parts(band, points) {
  const gaps = (points || []).filter(p => p[1] === null).map(p => p[0]);
  const found = [];
  let at = 0, last = null;
  for (const p of band) {
    let cut = last === null;
    while (at < gaps.length && gaps[at] < p[0]) { cut = cut || gaps[at] > last; at++; }
    if (cut) found.push([]);
    found[found.length - 1].push(p);
    last = p[0];
  }
  return found;
}

function drawLines(svg, chart) {
  const xs = [], ys = [];
  for (const s of chart.series) {
    for (const p of s.points || []) { xs.push(p[0]); ys.push(p[1]); }
    for (const p of s.band || []) { xs.push(p[0]); ys.push(p[1], p[2]); }
  }
  const sx = makeScale(chart.x, ...extent(chart.x, xs), M.l, W - M.r);
  const sy = makeScale(chart.y, ...extent(chart.y, ys), H - M.b, M.t);
  frame(svg, chart, sx, sy);
  chart.series.forEach((s, i) => {
    const c = `var(--s${(s.color ?? i) % 6})`;
    for (const band of parts(s.band || [], s.points)) {
      const up = path(band.map(p => [p[0], p[2]]), sx, sy);
      const down = path(band.map(p => [p[0], p[1]]).reverse(), sx, sy).replace(/^M/, 'L');
      el('path', {d: up + down + 'Z', fill: c, 'fill-opacity': .18, ...(band.length > 1 ? {stroke: 'none'} : {stroke: c, 'stroke-opacity': .18, 'stroke-width': 3})}, svg);
    }
    if (s.bars) {
      const w = s.bars;
      for (const [x, y] of s.points) {
        if (!y) continue;
        const a = sx.at(x), b = sx.at(x + w);
        el('rect', {x: a, width: Math.max(b - a - .5, .5), y: sy.at(y), height: Math.max(H - M.b - sy.at(y), 0), fill: c, 'fill-opacity': .45}, svg);
      }
    } else if (s.points) {
      el('path', {d: path(s.points, sx, sy, s.step), fill: 'none', stroke: c, 'stroke-width': 1.7, 'stroke-linejoin': 'round', 'stroke-linecap': 'round', ...(s.dash ? {'stroke-dasharray': '6 4'} : {})}, svg);
    }
  });
  marks(svg, chart, sx);
  return {sx, sy};
}

function drawHeat(svg, chart) {
  // chart.heat: {x0, dx, edges: [y edges], rows: [[counts per y] per x]}
  const h = chart.heat, n = h.rows.length;
  const sx = makeScale(chart.x, h.x0, h.x0 + n * h.dx, M.l, W - M.r);
  const sy = makeScale(chart.y, h.edges[0], h.edges[h.edges.length - 1], H - M.b, M.t);
  const top = Math.max(1, ...h.rows.flat());
  frame(svg, chart, sx, sy);
  h.rows.forEach((row, i) => row.forEach((count, j) => {
    if (!count) return;
    const x = sx.at(h.x0 + i * h.dx), w = sx.at(h.x0 + (i + 1) * h.dx) - x;
    const y = sy.at(h.edges[j + 1]), hh = sy.at(h.edges[j]) - y;
    el('rect', {x, y, width: w + .3, height: hh + .3, fill: 'var(--s0)', 'fill-opacity': (0.08 + 0.92 * Math.log1p(count) / Math.log1p(top)).toFixed(3)}, svg);
  }));
  marks(svg, chart, sx);
  return {sx, sy};
}

const BAR = 26;

function shade(color) {
  return {c: `var(--s${color % 6})`, o: color < 6 ? .8 : .4};
}

function drawBars(svg, chart, height) {
  // chart.bars: {rows: [names], series: [{name, values: [per row], color}], notes, shares, unit}
  const b = chart.bars, sums = b.rows.map((_, i) => b.series.reduce((t, s) => t + s.values[i], 0));
  const room = Math.min(Math.max(...b.rows.map(r => r.length), 4) * 6.6 + 12, W * .42), left = Math.max(M.l, room);
  const right = b.notes.length ? 74 : 18, bottom = height - M.b;
  const hi = b.shares ? 1 : Math.max(...sums, ...(chart.marks || []).map(m => m.x), 1e-12);
  const sx = makeScale(chart.x, 0, hi, left, W - right), g = el('g', {class: 'axis'}, svg);
  let last = -1e9;
  for (const t of sx.ticks) {
    const x = sx.at(t), label = fmt(t, chart.x.unit);
    el('line', {x1: x, x2: x, y1: M.t, y2: bottom}, g);
    if (x - last < label.length * 6.4 + 8) continue;
    last = x;
    el('text', {x, y: bottom + 15, 'text-anchor': 'middle'}, g, label);
  }
  el('text', {x: (left + W - right) / 2, y: height - 6, 'text-anchor': 'middle'}, g, chart.x.label);
  b.rows.forEach((row, i) => {
    const y = M.t + i * BAR + 4;
    const most = Math.floor((left - 12) / 6.2);
    el('text', {x: left - 6, y: y + 13, 'text-anchor': 'end'}, g, row.length > most ? '…' + row.slice(1 - most) : row);
    let from = 0;
    for (const s of b.series) {
      const v = s.values[i], to = from + (b.shares ? v / (sums[i] || 1) : v), {c, o} = shade(s.color);
      if (v > 0) {
        const r = el('rect', {x: sx.at(from), y, width: Math.max(sx.at(to) - sx.at(from), .5), height: BAR - 8, fill: c, 'fill-opacity': o}, svg);
        el('title', {}, r, `${row}: ${b.series.length > 1 ? s.name + ' ' : ''}${fmt(v, b.unit)}` + (b.shares ? ` (${fmt(v / (sums[i] || 1), '%')})` : ''));
      }
      from = to;
    }
    if (b.notes.length) el('text', {x: W - right + 6, y: y + 13}, g, b.notes[i]);
  });
  const m = el('g', {class: 'mark'}, svg);
  for (const mark of chart.marks || []) {
    const x = sx.at(mark.x);
    el('line', {x1: x, x2: x, y1: M.t, y2: bottom}, m);
    el('text', {x: x - 4, y: bottom - 2, 'text-anchor': 'end'}, m, mark.label);
  }
  return {sx};
}

function nearest(points, x) {
  let lo = 0, hi = points.length - 1;
  while (lo < hi) { const m = (lo + hi) >> 1; if (points[m][0] < x) lo = m + 1; else hi = m; }
  if (lo > 0 && Math.abs(points[lo - 1][0] - x) < Math.abs(points[lo][0] - x)) lo--;
  return points[lo];
}

function hover(svg, fig, chart, sx) {
  const tip = el('div', {class: 'tip'}, fig, ' ');
  if (!chart.series || !chart.series.some(s => s.points && s.points.length)) return;
  const cursor = el('line', {class: 'cursor', y1: M.t, y2: H - M.b, visibility: 'hidden'}, svg);
  svg.addEventListener('pointermove', e => {
    const r = svg.getBoundingClientRect(), px = (e.clientX - r.left) / r.width * W;
    if (px < M.l || px > W - M.r) return;
    cursor.setAttribute('x1', px); cursor.setAttribute('x2', px); cursor.setAttribute('visibility', 'visible');
    const x = sx.back(px);
    tip.textContent = `${chart.x.label} ${fmt(x, chart.x.unit)}: ` + chart.series.filter(s => s.points && s.points.length)
      .map(s => `${s.name} ${fmt(nearest(s.points, x)[1], chart.y.unit)}`).join(', ');
  });
  svg.addEventListener('pointerleave', () => { cursor.setAttribute('visibility', 'hidden'); tip.textContent = ' '; });
}

function drawChart(chart, parent) {
  const fig = el('figure', chart.wide ? {class: 'wide'} : {}, parent);
  const cap = el('figcaption', {}, fig);
  el('h3', {}, cap, chart.title);
  if (chart.note) el('div', {class: 'muted'}, cap, chart.note);
  if (chart.series && chart.series.length) {
    const legend = el('div', {class: 'legend'}, fig);
    chart.series.forEach((s, i) => {
      const item = el('span', {}, legend);
      el('i', {class: s.dash ? 'dash' : '', style: `border-color: var(--s${(s.color ?? i) % 6})`}, item);
      item.append(s.name);
    });
  }
  if (chart.bars && chart.bars.series.length > 1) {
    const legend = el('div', {class: 'legend'}, fig);
    for (const s of chart.bars.series) {
      const item = el('span', {}, legend), {c, o} = shade(s.color);
      el('i', {style: `border-color: ${c}; opacity: ${o}; border-top-width: 9px; width: 12px`}, item);
      item.append(s.name);
    }
  }
  const height = chart.bars ? M.t + chart.bars.rows.length * BAR + M.b : H;
  const svg = el('svg', {viewBox: `0 0 ${W} ${height}`, role: 'img', 'aria-label': chart.title + (chart.note ? '. ' + chart.note : '')}, fig);
  const {sx} = chart.kind === 'heat' ? drawHeat(svg, chart) : chart.kind === 'bars' ? drawBars(svg, chart, height) : drawLines(svg, chart);
  hover(svg, fig, chart, sx);
}

'use strict';
// Drawing functions for live.js: elements, formatted numbers, axes and lines as SVG, without a library. An axis is
// {label, unit, log}; the unit ("s", "ns", "B", "B/s", "/s", "%" or "") decides the format of its ticks.
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
    // Powers of two have round labels: 1, 32 KiB and so on.
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
    // Keeps the last label inside the picture.
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

function path(points, sx, sy) {
  let d = '', pen = false;
  for (const [x, y] of points) {
    if (y === null || !isFinite(y)) { pen = false; continue; }
    const px = sx.at(x).toFixed(1), py = sy.at(y).toFixed(1);
    // A point between two gaps becomes a dot: a line of length 0 with round ends.
    d += pen ? `L${px} ${py}` : `M${px} ${py}h0`;
    pen = true;
  }
  return d;
}

function nearest(points, x) {
  let lo = 0, hi = points.length - 1;
  while (lo < hi) { const m = (lo + hi) >> 1; if (points[m][0] < x) lo = m + 1; else hi = m; }
  if (lo > 0 && Math.abs(points[lo - 1][0] - x) < Math.abs(points[lo][0] - x)) lo--;
  return points[lo];
}

'use strict';
// Shows the values of all lines under the pointer, and adds a button that copies a source. The page is complete
// without this script: it reads the lines back from the drawing and from the scales beside it.
const STEPS = {
  ns: [[1, ' ns'], [1e3, ' µs'], [1e6, ' ms'], [1e9, ' s']],
  B: [[1, ' B'], [1024, ' KiB'], [1048576, ' MiB'], [1073741824, ' GiB']],
  '%': [[0.01, ' %']], s: [[1, ' s']],
};
const PLAIN = [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']];

function shown(value, unit) {
  const [base, per] = unit.split('/'), steps = STEPS[base] || PLAIN;
  const [factor, name] = [...steps].reverse().find(([f]) => Math.abs(value) >= f) || steps[0];
  return parseFloat((value / factor).toPrecision(3)) + name + (per ? '/' + per : '');
}

function scale(text) {
  const [log, low, high, from, to, unit] = text.split(' ');
  const [l, h] = log === 'log' ? [Math.log(low), Math.log(high)] : [+low, +high];
  return {from: +from, to: +to, text: at => {
    const v = l + (at - from) / (to - from) * (h - l);
    return shown(log === 'log' ? Math.exp(v) : v, unit || '');
  }};
}

// Vertices of a path: M x y, L x y, H x, V y.
function vertices(d) {
  const out = [];
  for (const [, command, a, b] of d.matchAll(/([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?/g)) {
    const last = out[out.length - 1];
    if (command === 'V') out.push([last[0], +a]);
    else out.push([+a, command === 'H' ? last[1] : +b]);
  }
  return out;
}

for (const scales of document.querySelectorAll('g.scales')) {
  const svg = scales.closest('svg'), figure = svg.closest('figure');
  const x = scale(scales.dataset.x), y = scale(scales.dataset.y);
  const lines = [...svg.querySelectorAll('path.line[data-name]')]
    .map(path => ({name: path.dataset.name, points: vertices(path.getAttribute('d'))}))
    .filter(line => line.points.length);
  if (!lines.length) continue;
  const tip = figure.querySelector('.tip') || document.createElement('div');
  tip.className = 'tip';
  figure.append(tip);
  svg.addEventListener('pointermove', event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    if (at < x.from || at > x.to) return;
    const nearest = points => points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
    tip.textContent = `${x.text(at)}: ` + lines.map(l => `${l.name} ${y.text(nearest(l.points)[1])}`).join(', ');
  });
  svg.addEventListener('pointerleave', () => { tip.textContent = ''; });
}

for (const source of document.querySelectorAll('.source')) {
  const pre = source.querySelector('pre'), button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = 'Copied';
    } catch {
      // Without access to the clipboard, the text is selected for the reader to copy.
      getSelection().selectAllChildren(pre);
      button.textContent = 'Selected';
    }
  });
  source.append(button);
}

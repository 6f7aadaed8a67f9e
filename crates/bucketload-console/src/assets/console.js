'use strict';
// Updates a page from the controller's events. All markup arrives rendered, by the controller's templates and with the
// drawings of the reports; hover.js, which reports use too, reads values back from a drawing.
(() => {
  const $ = id => document.getElementById(id);
  const root = $('live');
  if (!root) return;
  const compact = root.dataset.compact === '1', job = root.dataset.job;
  const state = {phase: null, job: null, source: null, spoken: '', pointer: null};

  function say(text) {
    if (text === state.spoken) return;
    state.spoken = text;
    $('status').textContent = text;
  }

  // Replaces a part of the page if it has changed, and keeps the keyboard focus and the position of what scrolls.
  function part(id, html) {
    const box = $(id);
    if (!box || box.dataset.html === html) return;
    const focused = document.activeElement && box.contains(document.activeElement) ? document.activeElement.id : '';
    const scrolled = [...box.querySelectorAll('.scroll')].map(e => e.scrollLeft);
    box.dataset.html = html;
    box.innerHTML = html;
    [...box.querySelectorAll('.scroll')].forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
    if (focused && $(focused)) $(focused).focus({preventScroll: true});
  }

  function live(message) {
    state.job = message.job;
    $('idle').hidden = true;
    $('live-body').hidden = false;
    part('live-body', message.html);
    say(message.spoken);
    tip();
    document.body.dataset.points = String(message.points);
    document.body.dataset.live = 'yes';
  }

  // Shows the values under the pointer, also after the chart has been drawn again.
  function tip() {
    const at = state.pointer, svg = at && document.elementFromPoint(at.x, at.y)?.closest('#live-charts svg');
    const scales = svg && svg.querySelector('g.scales');
    let text = '';
    if (scales) {
      const x = scale(scales.dataset.x), y = scale(scales.dataset.y);
      const place = new DOMPoint(at.x, at.y).matrixTransform(svg.getScreenCTM().inverse()).x;
      const near = points => points.reduce((a, b) => Math.abs(b[0] - place) < Math.abs(a[0] - place) ? b : a);
      const lines = [...svg.querySelectorAll('path.line[data-name]')]
        .map(line => ({name: line.dataset.name, points: vertices(line.getAttribute('d'))})).filter(line => line.points.length);
      if (lines.length && place >= x.from && place <= x.to)
        text = `${x.text(place)}: ` + lines.map(l => `${l.name} ${y.text(near(l.points)[1])}`).join(', ');
    }
    const box = $('tip');
    if (!box) return;
    box.textContent = text;
    box.hidden = !text;
  }

  function jobState(now) {
    if (!now) {
      if (compact) { $('idle').hidden = false; $('idle').textContent = 'No workload is running.'; $('live-body').hidden = true; }
      return;
    }
    const [id, word, cancelling] = now;
    if (compact && word === 'processing' && state.job !== id) { $('idle').hidden = false; $('idle').textContent = `Workload ${id} is starting.`; $('live-body').hidden = true; }
    if (compact || id !== job) return;
    if (word === 'processing') $('idle').textContent = 'The run is starting.';
    const text = cancelling && word === 'processing' ? 'processing, being cancelled' : word;
    $('state').firstElementChild.lastChild.textContent = ' ' + text;
    document.body.dataset.state = word;
    if (!['queuing', 'processing'].includes(word)) {
      close();
      // The page of an ended workload shows its result.
      location.reload();
    }
  }

  function close() {
    if (state.source) state.source.close();
    state.source = null;
  }

  function connect() {
    close();
    const query = new URLSearchParams();
    if (job) query.set('job', job);
    if (state.phase !== null) query.set('phase', state.phase);
    if (root.dataset.lists) query.set('lists', 'true');
    if (root.dataset.agents) query.set('agents', 'true');
    if (compact) query.set('compact', 'true');
    const source = state.source = new EventSource('/events?' + query);
    source.addEventListener('live', e => live(JSON.parse(e.data)));
    source.addEventListener('state', e => jobState(JSON.parse(e.data)));
    source.addEventListener('lists', e => { const d = JSON.parse(e.data); part('queue', d.queue); part('history', d.history); });
    source.addEventListener('agents', e => part('fleet', JSON.parse(e.data).html));
  }

  root.addEventListener('click', e => {
    const button = e.target.closest('button[data-phase]');
    if (!button) return;
    state.phase = button.dataset.follow ? null : button.dataset.phase;
    connect();
  });
  root.addEventListener('pointermove', e => { state.pointer = {x: e.clientX, y: e.clientY}; tip(); });
  root.addEventListener('pointerleave', () => { state.pointer = null; tip(); });
  // Hidden pages disconnect, because browsers allow few connections to one host.
  document.addEventListener('visibilitychange', () => document.hidden ? close() : connect());
  if (!document.hidden) connect();
})();

'use strict';
// Updates a page from the controller's events. Text is set as text; the lists of the overview and of the agents
// arrive as HTML, rendered by the controller with the same templates as the page.
(() => {
  const $ = id => document.getElementById(id);
  const root = $('live');
  if (!root) return;
  const compact = root.dataset.compact === '1', job = root.dataset.job;
  const state = {series: null, phase: null, run: null, job: null, source: null, charts: null, spoken: ''};

  function say(text) {
    if (text === state.spoken) return;
    state.spoken = text;
    $('status').textContent = text;
  }

  // Replaces a list if it has changed, and keeps the keyboard focus.
  function list(id, html) {
    const box = $(id);
    if (!box || box.dataset.html === html) return;
    const focused = document.activeElement && box.contains(document.activeElement) ? document.activeElement.id : '';
    box.dataset.html = html;
    box.innerHTML = html;
    if (focused && $(focused)) $(focused).focus();
  }

  function span(s) {
    s = Math.floor(s);
    const two = n => String(n).padStart(2, '0');
    return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s % 3600 / 60))}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
  }

  function facts(run) {
    const points = state.series ? state.series.points : [], phase = run.phases[run.current];
    // The last point may still grow, but its rates are per measured second.
    const last = points[points.length - 1], classes = last ? last.classes.filter(Boolean) : [];
    const sum = f => classes.reduce((t, c) => t + f(c), 0), top = f => classes.reduce((t, c) => Math.max(t, f(c)), 0);
    const all = [
      ['operations', fmt(sum(c => c.ops_per_s), '/s')], ['bytes', fmt(sum(c => c.bytes_per_s), 'B/s')],
      ['p99, slowest class', classes.length ? fmt(top(c => c.p99_ns), 'ns') : '–'], ['failed in the phase', phase ? String(phase.failed) : '–'],
      ['in flight', String(run.in_flight)], ['busiest load thread', run.busiest_share === null ? '–' : fmt(run.busiest_share, '%')],
    ];
    const box = $('live-facts');
    if (box.children.length !== all.length) {
      box.replaceChildren();
      for (const [name] of all) { const f = el('div', {class: 'fact'}, box); el('b', {}, f); el('span', {}, f, name); }
    }
    all.forEach(([, value], i) => { box.children[i].firstChild.textContent = value; });
  }

  function signs(run) {
    const box = $('live-signs'), text = JSON.stringify(run.signs);
    if (box.dataset.text === text) return;
    box.dataset.text = text;
    box.replaceChildren();
    for (const s of run.signs) { const li = el('li', {class: 'bad'}, box); el('b', {}, li, '✕ ' + s.name); li.append(' ' + s.text); }
    if (!run.signs.length) { const li = el('li', {class: 'good'}, box); el('b', {}, li, '✓ no problems so far'); li.append('; the verdict comes at the end of the run'); }
  }

  function phases(run) {
    const box = $('phases');
    if (!box) return;
    const shown = state.phase ?? run.current;
    if (box.children.length !== run.phases.length) {
      box.replaceChildren();
      run.phases.forEach((p, i) => {
        const b = el('button', {type: 'button'}, el('li', {}, box));
        el('span', {'aria-hidden': 'true'}, b); el('span', {}, b, p.name); el('span', {class: 'muted'}, b);
        b.addEventListener('click', () => { state.phase = i === state.run.current ? null : i; state.series = null; connect(); });
      });
    }
    run.phases.forEach((p, i) => {
      const b = box.children[i].firstChild, [mark, , about] = b.children;
      mark.textContent = {waiting: '○', running: '▶', done: '✓'}[p.state];
      about.textContent = p.state === 'waiting' ? 'waiting' : `${span(p.elapsed_s)}${p.end ? ', ' + p.end : ''}`;
      b.setAttribute('aria-pressed', String(i === shown));
      b.disabled = !p.has_series && i !== run.current;
    });
  }

  function table() {
    const body = $('live-table') && $('live-table').tBodies[0];
    if (!body || !state.series) return;
    const s = state.series, last = s.points[s.points.length - 1];
    body.replaceChildren();
    s.classes.forEach((name, i) => {
      const c = last && last.classes[i], row = el('tr', {}, body);
      el('th', {scope: 'row'}, row, name);
      (c ? [fmt(c.ops_per_s, '/s'), fmt(c.bytes_per_s, 'B/s'), fmt(c.failed_per_s, '/s'), fmt(c.p50_ns, 'ns'), fmt(c.p95_ns, 'ns'), fmt(c.p99_ns, 'ns'), fmt(c.max_ns, 'ns')]
        : Array(7).fill('–')).forEach(t => el('td', {}, row, t));
    });
  }

  function live(message) {
    if (state.job !== message.job) { state.series = null; state.job = message.job; }
    const run = state.run = message.run, phase = run.phases[run.current];
    state.series = merge(state.series, message.series);
    $('idle').hidden = true;
    $('live-body').hidden = false;
    if ($('live-link')) { $('live-link').textContent = `${message.job} ${run.workload}`; $('live-link').href = '/jobs/' + message.job; }
    const of = phase && phase.limit_s ? ` of ${span(phase.limit_s)}` : '';
    $('live-phase').textContent = phase ? `phase ${phase.name}, ${run.current + 1} of ${run.phases.length}, ${span(phase.elapsed_s)}${of}, against ${run.target}` : '';
    const bar = $('live-progress');
    bar.hidden = !phase || phase.share === null;
    if (!bar.hidden) bar.value = phase.share;
    facts(run); signs(run); phases(run);
    if (!state.charts) state.charts = CHART_KINDS.slice(0, compact ? 2 : 4).map(kind => new LiveChart(kind, $('live-charts')));
    if (state.series) state.charts.forEach(c => c.draw(state.series));
    table();
    const messages = $('live-messages');
    if (messages && messages.dataset.n !== JSON.stringify(run.messages)) {
      messages.dataset.n = JSON.stringify(run.messages);
      messages.replaceChildren();
      (run.messages.length ? run.messages : ['none']).forEach(m => el('li', {}, messages, m));
    }
    say(phase ? `Workload ${message.job}, phase ${phase.name} ${phase.state}` + (run.signs.length ? `; ${run.signs.map(s => s.name).join(', ')}` : '') : '');
    document.body.dataset.points = String(state.series ? state.series.points.length : 0);
    document.body.dataset.live = 'yes';
  }

  function jobState(now) {
    if (!now) {
      if (compact) { $('idle').hidden = false; $('idle').textContent = 'No workload is running.'; $('live-body').hidden = true; state.series = null; }
      return;
    }
    const [id, word, cancelling] = now;
    if (compact && word === 'processing' && state.job !== id) { $('idle').hidden = false; $('idle').textContent = `Workload ${id} is starting.`; $('live-body').hidden = true; }
    if (compact || id !== job) return;
    if (word === 'processing') $('idle').textContent = 'The run is starting.';
    const text = cancelling && word === 'processing' ? 'processing, being cancelled' : word;
    $('state').firstElementChild.lastChild.textContent = ' ' + text;
    if (!['queuing', 'processing'].includes(word)) {
      $('over-state').textContent = word;
      $('over').hidden = false;
      if ($('cancel')) $('cancel').hidden = true;
      close();
    }
    document.body.dataset.state = word;
  }

  function close() {
    if (state.source) state.source.close();
    state.source = null;
  }

  function connect() {
    close();
    const query = new URLSearchParams();
    if (job) query.set('job', job);
    if (state.phase !== null) query.set('phase', String(state.phase));
    if (root.dataset.lists) query.set('lists', 'true');
    if (root.dataset.agents) query.set('agents', 'true');
    const source = state.source = new EventSource('/events?' + query);
    source.addEventListener('live', e => live(JSON.parse(e.data)));
    source.addEventListener('state', e => jobState(JSON.parse(e.data)));
    source.addEventListener('lists', e => { const d = JSON.parse(e.data); list('queue', d.queue); list('history', d.history); });
    source.addEventListener('agents', e => list('fleet', JSON.parse(e.data).html));
    // A new stream sends all points again.
    source.addEventListener('open', () => { state.series = null; });
  }

  // Hidden pages disconnect, because browsers allow few connections to one host.
  document.addEventListener('visibilitychange', () => document.hidden ? close() : connect());
  if (!document.hidden) connect();
})();

// Builds the page from the embedded data: title, verdict, facts, then sections of charts and tables.
function drawTable(table, parent) {
  const box = el('div', {class: 'scroll'}, parent);
  const t = el('table', table.text ? {class: 'text'} : {}, box);
  if (table.title) el('caption', {style: 'text-align:left;font-weight:600'}, t, table.title);
  if (table.head && table.head.length) {
    const row = el('tr', {}, el('thead', {}, t));
    table.head.forEach(h => el('th', {scope: 'col'}, row, h));
  }
  const body = el('tbody', {}, t);
  for (const r of table.rows) {
    const row = el('tr', {}, body);
    r.forEach(c => el('td', {}, row, c));
  }
  if (table.note) el('p', {class: 'muted'}, parent, table.note);
}

function draw(data) {
  const page = document.getElementById('page');
  page.replaceChildren();
  el('h1', {}, page, data.title);
  el('p', {class: 'muted'}, page, data.subtitle);
  const v = el('div', {class: 'verdict ' + data.verdict.tone, role: 'status'}, page);
  el('strong', {}, v, data.verdict.word);
  el('span', {}, v, ' ' + data.verdict.meaning);
  if (data.verdict.reasons.length) {
    const list = el('ul', {}, v);
    data.verdict.reasons.forEach(r => el('li', {}, list, r));
  }
  const facts = el('div', {class: 'facts'}, page);
  for (const [name, value] of data.facts) {
    const f = el('div', {class: 'fact'}, facts);
    el('b', {}, f, value);
    el('span', {}, f, name);
  }
  for (const s of data.sections) {
    const section = el('section', {}, page);
    el('h2', {}, section, s.title);
    if (s.intro) el('p', {class: 'muted'}, section, s.intro);
    (s.tables || []).forEach(t => drawTable(t, section));
    if (s.charts && s.charts.length) {
      const grid = el('div', {class: 'grid'}, section);
      s.charts.forEach(c => drawChart(c, grid));
    }
  }
  document.body.dataset.charts = String(document.querySelectorAll('figure svg').length);
  document.body.dataset.ready = 'yes';
}

draw(JSON.parse(document.getElementById('data').textContent));

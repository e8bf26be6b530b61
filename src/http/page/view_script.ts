/** Rendering: state in, DOM out. All text goes through textContent, so that no name can become markup. */
export const viewScript: string = String.raw`
const $ = (id) => document.getElementById(id);
const laneMs = 120000;
const state = { members: null, singletons: [], ready: null, lanes: new Map(), moves: [], rates: new Map(), shown: {} };

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** The label is shown where rows are too narrow for columns. */
function cell(label, text, className) {
  const made = element('td', text, className);
  made.setAttribute('role', 'cell');
  made.dataset.label = label;
  return made;
}

function rowElement(key, name, className) {
  const row = element('tr');
  row.setAttribute('role', 'row');
  row.dataset.key = key;
  const head = element('th', name, className);
  head.scope = 'row';
  head.setAttribute('role', 'rowheader');
  row.append(head);
  return [row, head];
}

function button(label, key, run) {
  const made = element('button', label, 'operation');
  made.type = 'button';
  made.dataset.key = key;
  made.addEventListener('click', run);
  return made;
}

function duration(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + ' ms';
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + seconds % 60 + ' s';
  return Math.floor(seconds / 3600) + ' h ' + Math.floor(seconds % 3600 / 60) + ' min';
}

function hue(text) {
  let hash = 7;
  for (const char of text) hash = (hash * 31 + char.codePointAt(0)) % 100003;
  // The golden angle: neighbours in number are far apart in colour.
  return hash * 137 % 360;
}

/** Replaces the rows only when their data changed, and keeps the focus on the button that had it. */
function renderRows(id, data, makeRow) {
  const text = JSON.stringify(data);
  if (state.shown[id] === text) return;
  state.shown[id] = text;
  const focused = document.activeElement && document.activeElement.dataset.key;
  const before = new Map([...$(id).children].map((row) => [row.dataset.key, row.dataset.content]));
  const rows = data.map((item) => {
    const row = makeRow(item);
    row.dataset.content = JSON.stringify(item);
    if (before.size > 0 && before.get(row.dataset.key) !== row.dataset.content) row.classList.add('fresh');
    return row;
  });
  if (rows.length === 0) {
    const row = element('tr');
    row.setAttribute('role', 'row');
    const only = cell('', 'None yet.', 'quiet');
    only.colSpan = 8;
    row.append(only);
    rows.push(row);
  }
  $(id).replaceChildren(...rows);
  if (focused) for (const found of $(id).querySelectorAll('[data-key]')) if (found.dataset.key === focused) found.focus();
}

function singletonRow(item) {
  const [row, name] = rowElement('singleton ' + item.name, item.name);
  if (item.role) name.append(' ', element('span', item.role, 'tag'));
  const host = item.host ? cell('Host', item.host, 'address') : cell('Host', item.problem || 'nobody yet', 'bad');
  const since = cell('Hosted for', item.host ? '' : '–');
  if (item.host && item.since !== null) since.dataset.since = String(item.since);
  const rate = cell('Messages per second');
  rate.dataset.rate = item.name;
  const buffered = cell('Buffered');
  buffered.dataset.buffered = item.name;
  const operation = cell('', undefined, 'operation');
  operation.append(button('Move…', 'move ' + item.name, () => askMove(item)));
  row.append(host, cell('This node', item.state), cell('Epoch', item.epoch === null ? '–' : String(item.epoch)), since, rate,
    buffered, operation);
  return row;
}

const statusClass = { joining: 'warn', up: 'good', leaving: 'warn', exiting: 'warn', down: 'bad' };

function memberRow(item) {
  const { self, leader } = state.members;
  const [row, name] = rowElement('member ' + item.uid);
  const link = element('a', item.address);
  link.href = location.protocol + '//' + item.address + '/';
  name.append(item.address === self ? item.address : link, ' ');
  if (item.address === self) name.append(element('span', 'this node', 'tag'));
  if (item.address === leader) name.append(element('span', 'leader', 'tag'));
  const operation = cell('', undefined, 'operation');
  operation.append(button('Down…', 'down ' + item.address, () => askDown(item)));
  row.append(
    cell('Status', item.status, statusClass[item.status]),
    cell('Age', item.upNumber === 0 ? '–' : String(item.upNumber)),
    cell('Roles', item.roles.join(', ') || '–'),
    cell('Runtime', item.runtime),
    cell('Reachable', item.reachable ? 'yes' : 'no', item.reachable ? '' : 'bad'),
    operation,
  );
  return row;
}

function moveRow(item) {
  const [row] = rowElement('move ' + item.singleton + item.epoch + item.at, clock(item.at));
  row.append(
    cell('Singleton', item.singleton),
    cell('From', item.from || '–', 'address'),
    cell('To', item.address, 'address'),
    cell('Why', item.reason || '–'),
    cell('Gap', item.gapMs === undefined ? 'not known here' : duration(item.gapMs)),
    cell('Epoch', String(item.epoch)),
  );
  return row;
}

/** Messages per second since the last look, smoothed a little. */
function noteRates(now) {
  for (const { name, told, handled } of state.singletons) {
    const before = state.rates.get(name);
    const seconds = before ? (now - before.at) / 1000 : 0;
    if (before && seconds < 0.5) continue;
    const rate = (count, last) => before && count >= last ? (count - last) / seconds : 0;
    const sent = rate(told, before && before.told);
    const done = rate(handled, before && before.handled);
    state.rates.set(name, { at: now, told, handled, sent, done });
  }
  for (const name of state.rates.keys()) if (!state.singletons.some((item) => item.name === name)) state.rates.delete(name);
}

function perSecond(rate) { return rate < 10 ? String(Math.round(rate * 10) / 10) : String(Math.round(rate)); }

function renderRates() {
  for (const { name, active, buffered } of state.singletons) {
    const rate = state.rates.get(name);
    if (!rate) continue;
    const texts = { rate: perSecond(rate.sent) + ' sent' + (active ? ', ' + perSecond(rate.done) + ' handled' : ''), buffered: String(buffered) };
    for (const kind of ['rate', 'buffered']) for (const found of document.querySelectorAll('[data-' + kind + ']')) {
      if (found.dataset[kind] === name && found.textContent !== texts[kind]) found.textContent = texts[kind];
    }
  }
}

function noteHosts(now) {
  for (const { name, host, since } of state.singletons) {
    const spans = state.lanes.get(name) || [];
    state.lanes.set(name, spans);
    const last = spans.at(-1);
    if (!last || last.host !== host) {
      if (last) last.to = now;
      // What was there before this page was opened is known from when it began.
      spans.push({ host, from: last || since === null ? now : Math.min(now, since), to: null });
    }
    while (spans.length > 0 && spans[0].to !== null && spans[0].to < now - laneMs) spans.shift();
  }
  for (const name of state.lanes.keys()) if (!state.singletons.some((item) => item.name === name)) state.lanes.delete(name);
}

function renderLanes() {
  const now = Date.now();
  const lanes = [...state.lanes].slice(0, 40).map(([name, spans]) => {
    const lane = element('div', undefined, 'lane');
    const track = element('div', undefined, 'track');
    track.setAttribute('role', 'img');
    const told = spans.map((span) => (span.host || 'nobody') + ' for ' + duration((span.to === null ? now : span.to) - span.from));
    track.setAttribute('aria-label', name + ': ' + told.join(', then '));
    for (const span of spans) {
      const from = Math.max(0, 1 - (now - span.from) / laneMs);
      const to = span.to === null ? 1 : Math.max(0, 1 - (now - span.to) / laneMs);
      const bar = element('div', span.host || '', span.host ? 'span' : 'span nobody');
      bar.style.left = from * 100 + '%';
      bar.style.width = (to - from) * 100 + '%';
      if (span.host) bar.style.setProperty('--hue', String(hue(span.host)));
      bar.title = span.host || 'nobody hosts it, as this node sees it';
      track.append(bar);
    }
    lane.append(element('div', name, 'name'), track);
    return lane;
  });
  if (lanes.length === 0) lanes.push(element('p', 'No singleton is known yet.', 'quiet'));
  $('lanes').replaceChildren(...lanes);
}

function renderTimes() {
  for (const found of document.querySelectorAll('[data-since]')) {
    const text = duration(Date.now() - Number(found.dataset.since));
    if (found.textContent !== text) found.textContent = text;
  }
}

function badge(id, text, className) {
  if ($(id).textContent !== text) $(id).textContent = text;
  $(id).className = 'badge ' + className;
}

function render() {
  const { members, singletons, ready } = state;
  if (members) {
    const self = members.members.find((member) => member.address === members.self);
    $('self').textContent = members.self + (self ? ' on ' + self.runtime : '');
    document.title = 'Singlet ' + members.self;
    renderRows('members', members.members.map((member) => ({
      ...member,
      leader: member.address === members.leader,
    })), memberRow);
  }
  if (ready) badge('ready', ready.ready ? 'ready' : 'not ready: ' + ready.reasons.join(' '), ready.ready ? 'good' : 'warn');
  // What changes all the time is filled in, so that a row is new only when something has happened.
  renderRows('singletons', singletons.map(({ told, handled, buffered, ...item }) => item), singletonRow);
  renderRows('moves', state.moves, moveRow);
  noteHosts(Date.now());
  noteRates(performance.now());
  renderRates();
  renderLanes();
  renderTimes();
}

const eventClass = { 'member-down': 'bad', 'member-unreachable': 'warn', warning: 'warn', 'self-removed': 'bad' };

function clock(at) {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false }) + '.' + String(at % 1000).padStart(3, '0');
}

function addEvent(event) {
  if (event.singleton && (event.kind === 'singleton-hosted' || event.kind === 'hand-over')) {
    state.moves = [event, ...state.moves].slice(0, 20);
    renderRows('moves', state.moves, moveRow);
  }
  const item = element('li');
  const time = element('time', clock(event.at));
  time.dateTime = new Date(event.at).toISOString();
  item.append(time, element('span', event.text, eventClass[event.kind] || ''));
  $('events').prepend(item);
  while ($('events').children.length > 200) $('events').lastChild.remove();
}

function notice(text, good) {
  $('notice').hidden = text === '';
  $('notice').className = good ? 'notice good' : 'notice';
  $('notice').textContent = text;
}
`;

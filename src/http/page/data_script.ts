/** Data: the event stream says when to read again; without it the page polls. `fetch` is used for the stream because an
 * EventSource cannot carry a token. */
export const dataScript: string = String.raw`
const base = location.pathname.endsWith('/') ? location.pathname : location.pathname + '/';
let live = false;
let reading = false;
let again = false;
let stream = new AbortController();
let lastId = '';

function headers(more) {
  return token.value === '' ? more : { ...more, authorization: 'Bearer ' + token.value };
}

async function read(path) {
  const response = await fetch(base + path, { headers: headers({}), cache: 'no-store', signal: AbortSignal.timeout(5000) });
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error.message);
  return answer;
}

async function refresh() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const [members, singletons, ready] = await Promise.all([read('cluster/members'), read('cluster/singletons'), read('ready')]);
    Object.assign(state, { members, singletons: singletons.singletons, ready });
    if (!live) badge('feed', 'polling', 'warn');
    if ($('notice').dataset.gone) {
      delete $('notice').dataset.gone;
      notice('');
    }
    render();
  } catch (error) {
    badge('feed', 'no answer', 'bad');
    $('notice').dataset.gone = 'yes';
    notice('This node does not answer (' + error.message + '). What is shown is its last answer; the other members have pages of their own.');
  }
  reading = false;
  if (again) {
    again = false;
    refreshSoon();
  }
}

let soon = 0;
function refreshSoon() {
  if (soon === 0) soon = setTimeout(() => {
    soon = 0;
    refresh();
  }, 60);
}

function take(block) {
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) lastId = line.slice(4);
    if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (data === '') return;
  const event = JSON.parse(data);
  if (event.kind !== 'reset') addEvent(event);
  refreshSoon();
}

async function follow(signal) {
  const response = await fetch(base + 'cluster/events' + (lastId === '' ? '?replay=100' : ''), {
    headers: headers(lastId === '' ? {} : { 'last-event-id': lastId }),
    cache: 'no-store',
    signal,
  });
  if (!response.ok) throw new Error('no event stream');
  live = true;
  badge('feed', 'live', 'good');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    blocks.forEach(take);
  }
}

async function followForEver() {
  for (;;) {
    const { signal } = stream;
    try {
      await follow(signal);
    } catch { /* The poll below says whether the node still answers. */ }
    live = false;
    refreshSoon();
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function restartStream() {
  stream.abort();
  stream = new AbortController();
}

showOperations();
refresh();
followForEver();
let ticks = 0;
setInterval(() => {
  ticks += 1;
  // The stream says when something has happened; the counts are looked at besides, while somebody does look.
  if (!live || (ticks % 2 === 0 && !document.hidden)) refresh();
}, 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshSoon(); });
setInterval(() => { renderLanes(); renderTimes(); }, 500);
`;

/** Operations: each is confirmed in a dialog that says what will happen. */
export const operationsScript: string = String.raw`
const token = $('token');
try { token.value = sessionStorage.getItem('singlet-token') || ''; } catch { /* No storage: the token lives in the field. */ }

function showOperations() {
  document.body.classList.toggle('operator', token.value !== '');
}

token.addEventListener('input', () => {
  try { sessionStorage.setItem('singlet-token', token.value); } catch { /* As above. */ }
  showOperations();
  restartStream();
  refreshSoon();
});

async function operate(path, body, done) {
  try {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { authorization: 'Bearer ' + token.value, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (response.ok) notice(done(answer), true);
    else notice(answer.error.message + ' ' + answer.error.hint);
  } catch (error) {
    notice('This node does not answer: ' + error.message);
  }
  refreshSoon();
}

let proceed = () => {};

function ask(title, text, label, targets, run) {
  $('confirm-title').textContent = title;
  $('confirm-text').textContent = text;
  $('proceed').textContent = label;
  $('confirm-target').hidden = targets.length === 0;
  $('target').replaceChildren(...targets.map((target) => {
    const option = element('option', target || 'the next eligible member');
    option.value = target;
    return option;
  }));
  proceed = run;
  $('confirm').showModal();
  $('cancel').focus();
}

$('cancel').addEventListener('click', () => $('confirm').close());
$('proceed').addEventListener('click', () => {
  $('confirm').close();
  proceed($('target').value);
});

function askMove(item) {
  const others = state.members.members.filter((member) => member.status === 'up' && member.address !== item.host);
  ask('Move ' + item.name + '?', 'It stops on ' + (item.host || 'its host') + ' and starts on the new host, which keeps it ' +
    'until it leaves. No message is lost.', 'Move', ['', ...others.map((member) => member.address)], (to) => {
    operate('cluster/singletons/' + encodeURIComponent(item.name) + '/move', to ? { to } : {}, (answer) =>
      item.name + ' moved to ' + answer.to + '.');
  });
}

function askDown(item) {
  ask('Down ' + item.address + '?', 'It is removed from the cluster and what it hosts starts elsewhere. If it still runs, it ' +
    'stops its singletons and must join again as a new member.', 'Down', [], () => {
    operate('cluster/down', { address: item.address }, () => item.address + ' is down.');
  });
}

$('leave').addEventListener('click', () => {
  ask('Make this node leave?', 'It hands its singletons over, leaves the cluster and stops answering.', 'Leave', [], () => {
    operate('cluster/leave', {}, () => 'This node is leaving.');
  });
});
`;

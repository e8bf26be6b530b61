import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { nothingSeldom, Seldom } from '../../src/actor/cell_seldom.ts';
import { acting, fixture, recording, spawnManaged } from './system_fixture.ts';

test('actors that fail, stash, watch, wait and end change nothing that they share', async () => {
  const { env, system } = fixture();
  let open = true;
  let opened = (): void => {};
  const failing = system.spawn(recording([]), 'failing');
  failing.tell(new Error('broken'));
  const stashing = system.spawn(acting<string>((_message, { stash }) => void stash), 'stashing', {
    mailbox: { capacity: 1 },
  });
  const source = acting<string>((message, context) => {
    if (message === 'stash') context.stash();
    if (message === 'unstash') context.unstashAll();
    if (message === 'idle') context.setReceiveTimeout(10, 'unstash');
    if (message === 'watch') context.watch(failing);
    if (message === 'child') context.spawnAnonymous(acting(() => {}));
  });
  const busy = spawnManaged(system, 'busy', source, {
    gate: { open: () => open, onOpen: (run) => (opened = run, () => {}) },
  });
  for (const message of ['watch', 'stash', 'stash', 'unstash', 'child', 'idle', 'stash']) busy.tell(message);
  await env.settle();
  open = false;
  busy.tell('late');
  stashing.tell('1');
  stashing.tell('2');
  await env.settle();
  open = true;
  opened();
  env.advance(50);
  failing.stop();
  await env.settle();
  busy.kill();
  await env.settle();
  assertEquals({ ...nothingSeldom }, { ...new Seldom() });
});

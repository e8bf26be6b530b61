/** What is said about metrics, in pages, alert rules and the dashboard, against what nodes really expose. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assert, assertEquals } from '@std/assert';
import { blocksOf } from '../../scripts/docs/pages.ts';
import { listFiles, root } from '../../scripts/testing/files.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/mod.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';

const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8');

/** The metrics of two nodes after a hand-over of a singleton with a lease and a dead letter. */
async function exposition(): Promise<string> {
  const cluster = new MemoryCluster();
  await cluster.grow(2, { http: true });
  const [first, second] = cluster.nodes as [typeof cluster.nodes[0], typeof cluster.nodes[0]];
  const Counter = counterClass(new Journal());
  const lease = MemoryLease.factory(new MemoryLeaseStore(cluster.environment.clock), { ttlMs: 10_000 });
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter, { lease }));
  await cluster.get(refs[0]!.ask('count'));
  first.cluster.singleton.move('counter', second.address);
  await cluster.until(() => first.cluster.singleton.hostOf('counter') === second.address);
  const gone = first.system.spawn(Counter, 'gone');
  gone.stop();
  await cluster.pass(50);
  gone.tell(1);
  await cluster.pass(50);
  const pages = cluster.nodes.map(async ({ cluster: node }) =>
    (await node.fetch(new Request('http://n/metrics'))).text()
  );
  return (await Promise.all(pages)).join('\n');
}

/** What is counted where there are sockets: the names are taken from the sources that give them. */
const ofRealNodes = ['src/facade/node_samples.ts', 'src/facade/caller_service.ts'].flatMap((path) =>
  [...read(path).matchAll(/'(singlet_\w+)'/g)].map((match) => match[1] ?? '')
);

/** Names without the exposition's own suffixes for histograms, of which there are none. */
const namesIn = (text: string) => new Set([...text.matchAll(/\bsinglet_\w+/g)].map((match) => match[0]));

describe('metrics', () => {
  let exposed = '';
  before(async () => {
    exposed = await exposition();
  });

  test('pages, alert rules and the dashboard name only what is there', () => {
    const names = new Set([...exposed.matchAll(/^# TYPE (\w+)/gm)].map((match) => match[1]));
    // Counted only once something has happened, or by the transport of real nodes.
    for (const name of ['singlet_membership_total', ...ofRealNodes]) names.add(name);
    const paths = listFiles().filter((path) =>
      /^(?:docs\/.*\.(?:md|yml|json)|[A-Z]+\.md)$/.test(path) && path !== 'CHANGELOG.md'
    );
    for (const path of paths) {
      for (const name of namesIn(read(path))) assert(names.has(name), `${path}: no metric ${name}`);
    }
    assert(namesIn(read('docs/monitoring/alerts.yml')).size > 5);
    assert(namesIn(read('docs/monitoring/dashboard.json')).size > 5);
  });

  test('docs/http.md names all of them', () => {
    const page = read('docs/http.md');
    for (const name of namesIn(exposed)) assert(page.includes(`\`${name}\``), `no ${name}`);
  });

  test('labels and their values exist', () => {
    const reasons = read('src/actor/dead_letters.ts');
    for (const path of ['docs/monitoring/alerts.yml', 'docs/monitoring/dashboard.json']) {
      for (const [, what] of read(path).matchAll(/what=\\?"(\w+)\\?"/g)) {
        assert(exposed.includes(`what="${what}"`), `${path}: what="${what}"`);
      }
      for (const [, list = ''] of read(path).matchAll(/reason=~\\?"([\w|-]+)\\?"/g)) {
        for (const reason of list.split('|')) assert(reasons.includes(`'${reason}'`), `${path}: reason ${reason}`);
      }
      for (const [, status] of read(path).matchAll(/status=\\?"(\w+)\\?"/g)) {
        assert(exposed.includes(`status="${status}"`), `${path}: status="${status}"`);
      }
    }
  });

  test('the sum that the first alert looks at is 1', () => {
    const values = [...exposed.matchAll(/^singlet_singleton_active\{singleton="counter"\} (\d)$/gm)];
    assertEquals(values.map((match) => match[1]), ['0', '1']);
  });
});

describe('files for machines', () => {
  test('YAML parses, and so does the dashboard', async () => {
    const texts = [
      read('docs/monitoring/alerts.yml'),
      ...listFiles('docs').filter((path) => path.endsWith('.md')).flatMap((path) => blocksOf(path, read(path)))
        .filter(({ language }) => language === 'yaml').map(({ text }) => text),
    ];
    const program = 'for (const text of JSON.parse(process.argv[1])) Bun.YAML.parse(text); console.log("fine")';
    const bun = `${root}/node_modules/.bin/bun`;
    const { stdout } = await promisify(execFile)(bun, ['-e', program, JSON.stringify(texts)]);
    assertEquals(stdout.trim(), 'fine');
    assert(texts.length > 1);
    const { panels } = JSON.parse(read('docs/monitoring/dashboard.json'));
    assertEquals(new Set(panels.map(({ id }: { id: number }) => id)).size, panels.length);
  });
});

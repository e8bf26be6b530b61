/** The status page in a real browser, on a cluster of three runtimes: what a person sees of a failover, and can do. */
import { test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { browserFlags, ciTools, findBrowser } from '../../scripts/testing/ci_tools.ts';
import { deadlineMs, runtimes, type Scene, scene, type TestNode, until } from './cluster_process.ts';

/** As much of Playwright as is used here: its types come with the package, which is not always there. */
interface Page {
  goto(url: string): Promise<unknown>;
  on(event: string, listener: (value: never) => void): void;
  evaluate<T>(run: string): Promise<T>;
  fill(selector: string, text: string): Promise<void>;
  focus(selector: string): Promise<void>;
  click(selector: string): Promise<void>;
  selectOption(selector: string, value: string): Promise<unknown>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  emulateMedia(media: { colorScheme: 'light' | 'dark' }): Promise<void>;
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
}
interface Browser {
  newPage(options: object): Promise<Page>;
  close(): Promise<void>;
}

const token = 'a-token-for-the-page';
const program = findBrowser();
const tools = await ciTools();
const skip = program === undefined
  ? 'no Chromium on this machine (apt-get install chromium)'
  : tools.kind === 'missing' && tools.reason;

async function withPage(run: (page: Page, problems: string[]) => Promise<void>): Promise<void> {
  if (tools.kind === 'missing') throw new Error(tools.reason);
  const { chromium } = tools.require('playwright-core') as { chromium: { launch(options: object): Promise<Browser> } };
  const browser = await chromium.launch({ executablePath: program, headless: true, args: browserFlags });
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
    const problems: string[] = [];
    page.on('pageerror', (error: Error) => problems.push(error.message));
    page.on('request', (request: { url(): string }) => {
      if (new URL(request.url()).hostname !== '127.0.0.1') problems.push(`it asked for ${request.url()}`);
    });
    await run(page, problems);
  } finally {
    await browser.close();
  }
}

/** Texts of the cells of a table, row by row. */
async function rows(page: Page, id: string): Promise<string[][]> {
  return await page.evaluate(
    `[...document.querySelectorAll('#${id} tr')].map((row) => [...row.children].map((cell) => cell.textContent.trim()))`,
  );
}

async function text(page: Page, selector: string): Promise<string> {
  return await page.evaluate(`document.querySelector('${selector}').textContent`);
}

/** `check` answers whether the page shows it; what it threw or the page holds is in the failure. */
function shows(page: Page, what: string, check: () => Promise<boolean>): Promise<true> {
  return until(what, deadlineMs, async () => {
    if (await check()) return true as const;
    throw new Error((await page.evaluate<string>('document.body.innerText')).slice(0, 1_500));
  });
}

async function host(page: Page): Promise<string | undefined> {
  return (await rows(page, 'singletons'))[0]?.[1];
}

const active = (page: Page) => page.evaluate<string>('document.activeElement.id || document.activeElement.textContent');

async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

test(
  'a failover is seen, operations are confirmed, and it reads on a phone',
  { skip },
  scene(async (own: Scene) => {
    const nodes = await own.cluster(runtimes, ['--token', token]) as [TestNode, TestNode, TestNode];
    const [first, second, third] = nodes.map(({ line }) => line.address) as [string, string, string];
    await withPage(async (page, problems) => {
      await page.goto(nodes[1].line.url);
      await seesTheCluster(page, [first, second, third]);
      await movesByKeyboard(page, first, third);
      await seesTheFailover(page, nodes[2], first);
      await readsOnAPhone(page);
      await comesBack(own, page, nodes);
      assertEquals(problems, []);
    });
  }),
);

async function seesTheCluster(page: Page, addresses: readonly string[]): Promise<void> {
  await shows(page, 'three members, live', async () => {
    const members = await rows(page, 'members');
    return members.length === 3 && await text(page, '#feed') === 'live' && await text(page, '#ready') === 'ready';
  });
  const members = await rows(page, 'members');
  assertEquals(members.map(([address]): string | undefined => address?.split(' ')[0]), [...addresses]);
  assertEquals(members.map((row) => row.slice(1, 6)), [
    ['up', '1', '–', 'bun', 'yes'],
    ['up', '2', '–', 'deno', 'yes'],
    ['up', '3', '–', 'node', 'yes'],
  ]);
  assertStringIncludes(members[0]![0]!, 'leader');
  assertStringIncludes(members[1]![0]!, 'this node');
  await shows(page, 'the host', async () => await host(page) === addresses[0]);
  await shows(page, 'a rate', async () => /^[\d.]+ sent$/.test((await rows(page, 'singletons'))[0]?.[5] ?? ''));
}

async function movesByKeyboard(page: Page, from: string, to: string): Promise<void> {
  await press(page, 'Tab');
  assertEquals(await active(page), 'To the singletons');
  await press(page, 'Enter');
  assertEquals(await active(page), 'singletons-title');

  await page.focus('#token');
  await page.keyboard.type('a-wrong-token-to-try');
  await page.focus('#singletons button');
  await press(page, 'Enter');
  assertEquals(await active(page), 'cancel');
  assertStringIncludes(await text(page, '#confirm-text'), `It stops on ${from}`);
  await press(page, 'Escape');
  assertEquals([await active(page), await host(page)], ['Move…', from]);

  await press(page, 'Enter', 'Tab', 'Enter');
  await shows(page, 'the refusal', async () => (await text(page, '#notice')).includes('The bearer token is wrong.'));
  assertEquals(await host(page), from);

  await page.fill('#token', token);
  await page.focus('#singletons button');
  await press(page, 'Enter');
  await page.selectOption('#target', to);
  await page.focus('#proceed');
  await press(page, 'Enter');
  await shows(page, 'the move', async () => await host(page) === to);
  assertStringIncludes(await text(page, '#notice'), `moved to ${to}`);
  await shows(page, 'the move in the list', async () => {
    const move = (await rows(page, 'moves'))[0] ?? [];
    return move[2] === from && move[3] === to;
  });
}

async function seesTheFailover(page: Page, victim: TestNode, next: string): Promise<void> {
  const epoch = Number((await rows(page, 'singletons'))[0]?.[3]);
  const gone = victim.line.address;
  victim.process.signal('SIGKILL');
  await shows(page, 'the next host', async () => await host(page) === next);
  assert(Number((await rows(page, 'singletons'))[0]?.[3]) > epoch, 'the epoch grows');
  await shows(page, 'the dead member is gone', async () => {
    return (await rows(page, 'members')).every(([address]) => !address?.startsWith(gone));
  });
  await shows(page, 'the failover in the list, with its gap', async () => {
    const [, , from, to, , gap] = (await rows(page, 'moves'))[0] ?? [];
    // A node that hears of the death and of the next host at once has seen no gap.
    return from === gone && to === next && /^\d+ m?s|^not known here$/.test(gap ?? '');
  });
  const lane = await page.evaluate<string>(`document.querySelector('#lanes [role=img]').getAttribute('aria-label')`);
  assert(new RegExp(`${gone} for .*, then ${next} for `).test(lane), lane);
  assert(new RegExp(`${gone} is (?:down|removed)\\.`).test(await text(page, '#events')));
}

async function readsOnAPhone(page: Page): Promise<void> {
  await page.setViewportSize({ width: 360, height: 740 });
  const widths = await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]');
  assertEquals(widths, [360, 360]);
  assertEquals(await page.evaluate(`getComputedStyle(document.querySelector('#members td')).display`), 'grid');
  assertEquals(await page.evaluate(`document.querySelectorAll('[role=table] [role=rowheader]').length > 3`), true);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const selector of ['#members td', '#members td.good', '#members a', '.quiet', '#leave']) {
      const ratio = await contrast(page, selector);
      assert(ratio >= 4.5, `${selector} in ${colorScheme} has a contrast of ${ratio}`);
    }
  }
  await page.setViewportSize({ width: 1100, height: 900 });
}

/** Of a text to the panel behind it, as WCAG 2 counts it. */
function contrast(page: Page, selector: string): Promise<number> {
  return page.evaluate(`(() => {
    const pixel = (colour) => {
      const context = new OffscreenCanvas(1, 1).getContext('2d');
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (colour) => {
      const [r, g, b] = pixel(colour).map((value) => value / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const front = light(getComputedStyle(document.querySelector('${selector}')).color);
    const back = light(getComputedStyle(document.querySelector('section')).backgroundColor);
    return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  })()`);
}

/** The page's own node dies and is started again at its address: the page says so, and goes on by itself. */
async function comesBack(own: Scene, page: Page, [first, second]: readonly TestNode[]): Promise<void> {
  second!.process.signal('SIGKILL');
  await shows(page, 'that its node is gone', async () => await text(page, '#feed') === 'no answer');
  assertStringIncludes(await text(page, '#notice'), 'does not answer');
  const port = new URL(second!.line.url).port;
  await own.startReady('bun', ['--port', port, '--seeds', first!.line.address, '--token', token]);
  await shows(page, 'that it is back', async () => {
    const self = (await rows(page, 'members')).find(([address]) => address?.includes('this node'));
    return await text(page, '#feed') === 'live' && self?.[4] === 'bun' && self[1] === 'up';
  });
  await page.click('#leave');
  await page.click('#proceed');
  await shows(page, 'the end', async () => await text(page, '#feed') === 'no answer');
}

import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { createApp } from '../../../src/http/app.ts';
import { pageMarkup } from '../../../src/http/page/page.ts';
import { pageScript } from '../../../src/http/page/script.ts';
import { pageStyle } from '../../../src/http/page/style.ts';
import { fakeInspection } from '../fake_inspection.ts';

describe('status page', () => {
  test('is one document that needs nothing else', async () => {
    const response = await createApp(fakeInspection().inspection).request('/');
    assertEquals(response.status, 200);
    const text = await response.text();
    assert(!/\b(?:src|href)="https?:|@import|url\(/.test(text));
    assert(!/ (?:on\w+|style)="/.test(text), 'inline handlers and styles would need a weaker policy');
    assertEquals(text.match(/<\/script>/g)?.length, 1);
  });
  test('its policy allows its own script and style, and nothing else', async () => {
    const response = await createApp(fakeInspection().inspection).request('/');
    const policy = response.headers.get('content-security-policy') ?? '';
    assertStringIncludes(policy, "default-src 'none'");
    assert(!policy.includes('unsafe-inline'));
    for (const tag of ['script', 'style']) {
      const source = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(pageMarkup)?.[1] ?? '';
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(source)));
      assertStringIncludes(policy, `${tag}-src 'sha256-${btoa(String.fromCharCode(...digest))}'`);
    }
  });
  test('light-dark() is used for colours only: with anything else a browser drops the whole declaration', () => {
    assert(!/light-dark\(\s*[\d.]/.test(pageStyle));
  });
  test('its script is a program', () => {
    new Function(pageScript);
  });
  test('every element the script asks for is there', () => {
    const ids = new Set([...pageMarkup.matchAll(/ id="([\w-]+)"/g)].map((match) => match[1]));
    for (const [, id] of pageScript.matchAll(/\$\('([\w-]+)'\)/g)) assert(ids.has(id), `no element ${id}`);
  });
  test('never puts a text into markup', () => {
    assert(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write/.test(pageScript));
  });
  test('can be read by a screen reader', () => {
    for (const [, id] of pageMarkup.matchAll(/aria-labelledby="([\w-]+)"/g)) {
      assertStringIncludes(pageMarkup, `id="${id}"`);
    }
    assertEquals(pageMarkup.match(/<th(?! scope)[ >]/g) ?? [], []);
    assertStringIncludes(pageMarkup, '<html lang="en">');
    assertStringIncludes(pageMarkup, 'aria-live="polite"');
    assertStringIncludes(pageMarkup, 'prefers-reduced-motion');
    assertStringIncludes(pageMarkup, '<label for="token">');
  });
});

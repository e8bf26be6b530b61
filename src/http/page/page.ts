/** The status page: one self-contained HTML document that a person can watch a failover on. */
import { pageBody } from './markup.ts';
import { pageScript } from './script.ts';
import { pageStyle } from './style.ts';

export const pageMarkup: string = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Singlet</title>
<style>${pageStyle}</style>
</head>
<body>
${pageBody}
<script>${pageScript}</script>
</body>
</html>
`;

let headers: Promise<Record<string, string>> | undefined;

/** The content security policy allows exactly the script and the style of the page, by hash. */
export function pageHeaders(): Promise<Record<string, string>> {
  headers ??= makeHeaders();
  return headers;
}

async function makeHeaders(): Promise<Record<string, string>> {
  const [script, style] = await Promise.all([sourceHash(pageScript), sourceHash(pageStyle)]);
  const policy = [
    "default-src 'none'",
    `script-src ${script}`,
    `style-src ${style}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  };
}

async function sourceHash(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...digest))}'`;
}

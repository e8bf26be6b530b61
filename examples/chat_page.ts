/** The page of `chat_room.ts`. It needs no build: the browser imports the package's modules, found by an import map. */

/** JavaScript from TypeScript. With the published package, whose modules are JavaScript, this has nothing to do. */
export async function script(source: string): Promise<string> {
  const { Bun } = globalThis as {
    Bun?: { Transpiler: new (options: object) => { transformSync(text: string): string } };
  };
  if (Bun !== undefined) return new Bun.Transpiler({ loader: 'ts' }).transformSync(source);
  const { stripTypeScriptTypes } = await import('node:module') as unknown as {
    stripTypeScriptTypes(text: string): string;
  };
  return stripTypeScriptTypes(source);
}

export function page(urls: readonly string[], token: string): string {
  const imports = { 'singlet/connect': '/chat/src/callers/mod.ts', '#runtime': '/chat/adapters/edge/mod.ts' };
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Chat room</title>
<script type="importmap">${JSON.stringify({ imports })}</script>
<body>
<h1>Chat room</h1>
<p id="state" role="status">connecting</p>
<ol id="lines" aria-live="polite"></ol>
<form id="say"><label>Say <input id="text" autocomplete="off" required></label> <button>Send</button></form>
<script type="module">
import { connect } from 'singlet/connect';

const find = (id) => document.getElementById(id);
const name = 'guest-' + Math.random().toString(36).slice(2, 6);
const caller = await connect(${JSON.stringify(urls)}, { token: ${JSON.stringify(token)} });
const room = caller.singleton.ref('chat-room');
const inbox = caller.receiver((line) => {
  const item = document.createElement('li');
  item.textContent = line;
  find('lines').append(item);
});
const enter = () => {
  find('state').textContent = name + ' at ' + caller.url;
  room.tell({ kind: 'enter', name, inbox });
};
caller.subscribe((event) => {
  if (event.kind === 'connected' || (event.kind === 'host' && event.known)) enter();
  if (event.kind === 'disconnected') find('state').textContent = 'connecting again';
});
enter();
find('say').addEventListener('submit', (event) => {
  event.preventDefault();
  room.tell({ kind: 'say', name, text: find('text').value });
  find('text').value = '';
});
</script>
</body>
</html>`;
}

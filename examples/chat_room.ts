/**
 * A chat room: an actor that exists once in a cluster of three nodes, and people who reach it from outside, by callers that
 * belong to no cluster. Without arguments two of them talk through a move of the room; with `--serve` the room stays, and the
 * page at the address it prints is one of them in your browser.
 *
 *     bun run examples/chat_room.ts --serve
 *     deno run --allow-net --allow-read examples/chat_room.ts --serve
 *     node examples/chat_room.ts --serve
 */
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { Actor, type ActorRef, ActorSystem } from 'singlet';
import { type Caller, Cluster, SingletonKey } from 'singlet/cluster';
import { page, script } from './chat_page.ts';

type Chat =
  | { readonly kind: 'enter'; readonly name: string; readonly inbox: ActorRef<string> }
  | { readonly kind: 'say'; readonly name: string; readonly text: string };

class ChatRoom extends Actor<Chat> {
  static readonly singleton: SingletonKey<Chat> = SingletonKey.of('chat-room');
  readonly #people = new Map<string, ActorRef<string>>();

  override onReceive(message: Chat): void {
    if (message.kind === 'enter') this.#people.set(message.name, message.inbox);
    else for (const inbox of this.#people.values()) inbox.tell(`${message.name}: ${message.text}`);
  }
}

// Whoever knows it may chat, and nothing else: it names one singleton, and is not the cluster's secret.
const token = 'a-token-for-the-chat-room';
const grant = { name: 'chat', token, singletons: ['chat-room'] };
const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('chat', { logLevel: 'error' });
  const seeds = clusters.slice(0, 1).map(({ address }) => address);
  const cluster = await Cluster.join(system, { seeds, callers: [grant], http: (app) => addPage(app as Routes) });
  clusters.push(cluster);
  cluster.singleton.start(ChatRoom);
}
const urls = clusters.map(({ address }) => address);

/** Enters, and enters again whenever the room is somewhere else: who was in it is not handed over. */
async function person(name: string): Promise<{ caller: Caller; heard: string[]; say(text: string): void }> {
  const caller = await Cluster.connect(urls, { token });
  const room = caller.singleton.ref(ChatRoom);
  const heard: string[] = [];
  const inbox = caller.receiver<string>((line) => void heard.push(line));
  const enter = () => room.tell({ kind: 'enter', name, inbox });
  caller.subscribe((event) => event.kind === 'host' && event.known ? enter() : undefined);
  enter();
  return { caller, heard, say: (text) => room.tell({ kind: 'say', name, text }) };
}

if (process.argv.includes('--serve')) {
  console.log(`open http://${urls[0]}/chat`);
} else {
  const [ada, bob] = [await person('Ada'), await person('Bob')];
  const talk = async (line: string, say: () => void): Promise<boolean> => {
    for (let tries = 0; tries < 500 && !(ada.heard.includes(line) && bob.heard.includes(line)); tries += 1) {
      if (tries % 25 === 0) say();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return ada.heard.includes(line) && bob.heard.includes(line);
  };
  console.log('both hear Ada:', await talk('Ada: hello', () => ada.say('hello')));
  await clusters[0]!.leave();
  console.log('both hear Bob after the move:', await talk('Bob: still here?', () => bob.say('still here?')));
  for (const { caller } of [ada, bob]) await caller.close();
  for (const cluster of clusters) await cluster.system.terminate();
}

interface Routes {
  get(path: string, handler: (context: { req: { path: string } }) => Response | Promise<Response>): void;
}

/** The page, and what it imports: the files of the package, as they are. */
function addPage(app: Routes): void {
  const answer = (body: string, type: string) => new Response(body, { headers: { 'content-type': type } });
  app.get('/chat', () => answer(page(urls, token), 'text/html; charset=utf-8'));
  app.get('/chat/*', async ({ req }) => {
    const path = req.path.slice('/chat/'.length);
    if (!/^(src|adapters)\/[\w/]+\.ts$/.test(path)) return new Response('not found\n', { status: 404 });
    return answer(await script(await readFile(new URL(`../${path}`, import.meta.url), 'utf8')), 'text/javascript');
  });
}

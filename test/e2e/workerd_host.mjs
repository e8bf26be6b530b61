// Runs a Worker in workerd until its input ends: `node workerd_host.mjs <folder of the tools> <script>`.
import { createRequire } from 'node:module';
import process from 'node:process';

const [tools, scriptPath] = process.argv.slice(2);
const { Miniflare } = createRequire(`${tools}/package.json`)('miniflare');
const host = new Miniflare({
  modules: true,
  scriptPath,
  compatibilityDate: '2026-07-01',
  host: '127.0.0.1',
  port: 0,
  cf: false,
  telemetry: { enabled: false },
});
console.log(`workerd ${await host.ready}`);
process.stdin.resume();
process.stdin.on('end', () => void host.dispose().then(() => process.exit(0)));

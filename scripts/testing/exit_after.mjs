// Preloaded into every test file on Node. A file whose tests are done but that left a timer or a socket open would keep
// the runner waiting for ever; `--test-force-exit` would end it, but drops results that are still on their way. This
// gives the file a second to end by itself and then says what it left open.
import process from 'node:process';
import { after } from 'node:test';

after(() => {
  const end = () => {
    process.stderr.write(`${process.argv[1]} left open: ${process.getActiveResourcesInfo().join(', ')}\n`);
    process.exit();
  };
  setTimeout(end, 1_000).unref();
});

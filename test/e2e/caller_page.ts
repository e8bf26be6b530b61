/** What a page of `caller_places_test.ts` runs. */
import { runLoad } from './caller_load.ts';

const page = globalThis as unknown as Record<string, unknown>;
page.runLoad = (options: Parameters<typeof runLoad>[0]) =>
  runLoad({ ...options, onUrl: (url) => page.callerUrl = url });

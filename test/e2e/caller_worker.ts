/** The Worker of `caller_places_test.ts`: runs a load, tells where it is connected, and tries to join. */
import { Cluster } from '../../src/facade/mod.ts';
import { ActorSystem } from '../../src/mod.ts';
import { type LoadOptions, runLoad } from './caller_load.ts';

let connected = '';

async function join(): Promise<Response> {
  const system = ActorSystem.create('worker');
  try {
    await Cluster.join(system);
    return new Response('joined');
  } catch (error) {
    return new Response(`${(error as Error).name}: ${(error as Error).message}`);
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/url') return new Response(connected);
    if (pathname === '/join') return await join();
    const options = await request.json() as LoadOptions;
    return Response.json(await runLoad({ ...options, onUrl: (url) => connected = url }));
  },
};

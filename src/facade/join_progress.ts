/** What is missing while a node looks for its cluster. */
import type { Cancel } from '../actor/environment.ts';
import type { ClusterNode } from '../cluster/node.ts';

const progressMs = 250;

/** Tells what is missing, whenever it changes. */
export function watchProgress(node: ClusterNode, onProgress: (missing: string) => void): Cancel {
  let last: string | undefined;
  let cancel: Cancel;
  const look = (): void => {
    const missing = node.readiness();
    if (missing !== undefined && missing !== last) {
      try {
        onProgress(missing);
      } catch (error) {
        node.environment.log.error('onProgress failed', { error });
      }
    }
    last = missing;
    cancel = node.environment.timers.set(progressMs, look);
  };
  look();
  return () => cancel();
}

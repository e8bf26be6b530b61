/** What every lease backend must do. Run with virtual or with real time: all waiting goes through the bench. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLessOrEqual, assertRejects } from '@std/assert';
import type { Lease } from '../../src/coordination/lease.ts';

export interface LeaseBench {
  readonly ttlMs: number;
  /** A lease on `name`, fresh for each test, for `owner`. */
  open(name: string, owner: string): Lease;
  /** Lets `ms` pass and everything that was due happen. */
  elapse(ms: number): Promise<void>;
  /** Waits for `promise`, letting time pass where it does not do so by itself. */
  settle<T>(promise: Promise<T>): Promise<T>;
  /** From now on the backend answers `owner` with errors, or nobody with them. Undefined: cannot be done here. */
  breakFor?(owner: string | undefined): void;
  /** From now on the owner's answers are lost although the backend acts. Undefined: cannot be done here. */
  muteFor?(owner: string | undefined): void;
  now(): number;
  close(): Promise<void>;
}

export interface LeaseSuite {
  readonly title: string;
  /** Why it cannot run here. */
  readonly skip?: string | false;
  readonly bench: () => Promise<LeaseBench>;
  /** The largest wait that the backend needs beyond a term before it gives a lost lease to another, milliseconds. */
  readonly slackMs?: number;
  /** False where the backend does not choose its tokens itself. */
  readonly raises?: boolean;
}

let names = 0;

export function leaseContract({ title, skip = false, bench: makeBench, slackMs = 0, raises = true }: LeaseSuite): void {
  const scene = (name: string, run: (bench: LeaseBench, leaseName: string) => Promise<void>): void => {
    test(name, { skip }, async () => {
      const bench = await makeBench();
      try {
        await run(bench, `lease-${names += 1}`);
      } finally {
        await bench.close();
      }
    });
  };
  /** Acquires, however long another term still runs. */
  const acquireInTime = async (bench: LeaseBench, lease: Lease, withinMs: number): Promise<number> => {
    const until = bench.now() + withinMs;
    for (;;) {
      const grant = await bench.settle(lease.acquireWithToken());
      if (grant !== false) return grant.token;
      assert(bench.now() < until, `not granted within ${withinMs} ms`);
      await bench.elapse(Math.max(5, Math.min(lease.retryInMs ?? bench.ttlMs / 10, bench.ttlMs / 4)));
    }
  };

  describe(`the lease contract: ${title}`, () => {
    if (raises) {
      scene('S2: tokens go on above one that the backend has forgotten', async (bench, name) => {
        const a = bench.open(name, 'a#1');
        const first = await acquireInTime(bench, a, bench.ttlMs);
        await bench.settle(a.release());
        const above = first + 1_000_000;
        const grant = await bench.settle(a.acquireWithToken(above));
        assert(grant !== false);
        assertGreater(grant.token, above);
        await bench.settle(a.release());
        assertGreater(await acquireInTime(bench, bench.open(name, 'b#1'), bench.ttlMs * 2), grant.token);
      });
    }

    scene('R72: one owner at a time, and again and again for the same one', async (bench, name) => {
      const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
      assertEquals([a.checkAlive(), a.token, a.deadline], [false, 0, -Infinity]);
      assert(await bench.settle(a.acquire()));
      assert(a.checkAlive());
      assertEquals(await bench.settle(b.acquire()), false);
      assert(!b.checkAlive());
      const { token } = a;
      assert(await bench.settle(a.acquire()));
      assertEquals(a.token, token);
      await bench.settle(a.release());
    });

    scene('a denied owner that releases takes nothing away', async (bench, name) => {
      const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
      assert(await bench.settle(a.acquire()));
      assertEquals(await bench.settle(b.acquire()), false);
      await bench.settle(b.release());
      assertEquals(await bench.settle(b.acquire()), false);
      await bench.elapse(bench.ttlMs * 1.5);
      assert(a.checkAlive(), 'a has renewed');
      assertEquals(await bench.settle(b.acquire()), false);
      await bench.settle(a.release());
    });

    scene(
      'R73, R74: it is renewed, and its deadline stays ahead of the clock by at most a term',
      async (bench, name) => {
        const a = bench.open(name, 'a#1');
        let losses = 0;
        a.onLost(() => losses += 1);
        const before = bench.now();
        assert(await bench.settle(a.acquire()));
        assertGreater(a.deadline, before);
        for (let step = 0; step < 8; step += 1) {
          await bench.elapse(bench.ttlMs / 3);
          assert(a.checkAlive(), `alive at step ${step}`);
          assertLessOrEqual(a.deadline, bench.now() + bench.ttlMs);
        }
        assertEquals(losses, 0);
        await bench.settle(a.release());
        assert(!a.checkAlive());
        assertEquals(losses, 0, 'a release is no loss');
      },
    );

    scene('R83: a release lets another in at once, and the token grows over releases', async (bench, name) => {
      const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
      let last = 0;
      for (const lease of [a, b, a, a, b]) {
        const token = await acquireInTime(bench, lease, bench.ttlMs / 2);
        assertGreater(token, last);
        assert(Number.isSafeInteger(token));
        last = token;
        await bench.settle(lease.release());
      }
    });

    scene(
      'R78, FB-048: a holder that vanished is followed after its term, with a larger token',
      async (bench, name) => {
        const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
        const grant = await bench.settle(a.acquireWithToken());
        assert(grant);
        a.abandon();
        assert(!a.checkAlive());
        assertEquals(await bench.settle(b.acquire()), false);
        const token = await acquireInTime(bench, b, bench.ttlMs * 1.25 + slackMs);
        assertGreater(token, grant.token);
        // From the try that succeeded, not from the first one.
        assertGreater(b.deadline, bench.now() + bench.ttlMs / 2);
        await bench.settle(b.release());
      },
    );

    scene('the same owner comes back after its own loss, with a new token', async (bench, name) => {
      const a = bench.open(name, 'a#1');
      const first = await bench.settle(a.acquireWithToken());
      assert(first);
      a.abandon();
      const again = await bench.settle(a.acquireWithToken());
      assert(again && again.token > first.token);
      await bench.settle(a.release());
    });

    scene('names do not disturb each other', async (bench, name) => {
      const [a, b] = [bench.open(name, 'a#1'), bench.open(`${name}-other`, 'b#1')];
      assert(await bench.settle(a.acquire()));
      assert(await bench.settle(b.acquire()));
      await bench.settle(a.release());
      assert(b.checkAlive());
      await bench.settle(b.release());
    });

    scene(
      'R74, R75, R81, FB-044: errors are outlived within the term; when they last, it is lost once',
      async (bench, name) => {
        if (bench.breakFor === undefined) return;
        const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
        const reasons: string[] = [];
        a.onLost((reason) => reasons.push(reason));
        assert(await bench.settle(a.acquire()));
        bench.breakFor('a#1');
        await bench.elapse(bench.ttlMs * 0.6);
        bench.breakFor(undefined);
        await bench.elapse(bench.ttlMs * 0.6);
        assert(a.checkAlive(), 'one hiccup is no loss');
        assertEquals(reasons, []);
        bench.breakFor('a#1');
        await bench.elapse(bench.ttlMs * 1.1);
        assert(!a.checkAlive());
        assertEquals(reasons.length, 1);
        assert(reasons[0]!.length > 0);
        await acquireInTime(bench, b, bench.ttlMs + slackMs);
        bench.breakFor(undefined);
        await bench.elapse(bench.ttlMs / 2);
        assert(!a.checkAlive(), 'nothing is renewed after a loss');
        assertEquals(await bench.settle(a.acquire()), false);
        await bench.settle(b.release());
      },
    );

    scene('R76: a backend that is gone makes acquire and release reject, and nothing is held', async (bench, name) => {
      if (bench.breakFor === undefined) return;
      const a = bench.open(name, 'a#1');
      bench.breakFor('a#1');
      await assertRejects(() => bench.settle(a.acquire()), Error);
      assert(!a.checkAlive());
      bench.breakFor(undefined);
      assert(await bench.settle(a.acquire()));
      bench.breakFor('a#1');
      const released = bench.settle(a.release());
      assert(!a.checkAlive(), 'from the call on');
      await assertRejects(() => released, Error);
      bench.breakFor(undefined);
      await bench.settle(a.release());
    });

    scene('R65: what was granted without an answer is free again after a release', async (bench, name) => {
      if (bench.muteFor === undefined) return;
      const [a, b] = [bench.open(name, 'a#1'), bench.open(name, 'b#1')];
      bench.muteFor('a#1');
      await assertRejects(() => bench.settle(a.acquire()), Error);
      assertEquals(await bench.settle(b.acquire()), false);
      bench.muteFor(undefined);
      await bench.settle(a.release());
      assert(await acquireInTime(bench, b, bench.ttlMs / 2));
      await bench.settle(b.release());
    });
  });
}

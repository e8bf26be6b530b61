/** Deliberate faults in delivery (rules 12 to 15). */
import type { Mutant } from './mutant.ts';

export const deliveryMutants: readonly Mutant[] = [
  {
    name: 'no-copy-kept',
    rule: 12,
    what: 'a sender lets go of a message as soon as it is sent',
    file: 'src/singleton/sender_stream.ts',
    find: '    flight.push(message, sender, outcome);\n',
    replace:
      '    flight.push(message, sender, outcome);\n    if (flight.settle(flight.next - 1)) this.#counts.acknowledged += 1;\n',
  },
  {
    name: 'acknowledged-before-handled',
    rule: 13,
    what: 'a message is acknowledged when it is accepted, not when its handler has settled',
    file: 'src/singleton/delivery_host.ts',
    find: 'else this.#port.deliver(delivery.message, delivery.sender, receipt);',
    replace:
      'else {\n          this.#port.deliver(delivery.message, delivery.sender, receipt);\n          filter.processed(delivery.seq);\n          this.#touch(filter);\n        }',
  },
  {
    name: 'watermarks-without-exceptions',
    rule: 14,
    what: 'what was processed out of order is not handed over',
    file: 'src/singleton/delivery_filter.ts',
    find: 'return { stream, prefix: this.prefix, exceptions: [...this.exceptions].sort((a, b) => a - b) };',
    replace: 'return { stream, prefix: this.prefix, exceptions: [] };',
    profiles: ['crawl'],
  },
  {
    name: 'watermarks-left-behind',
    rule: 14,
    what: 'the next host begins without the watermarks of the one before',
    file: 'src/singleton/manager_shell.ts',
    find: 'else this.host.begin(epoch, plannedSince, previous?.watermarks ?? []);',
    replace: 'else this.host.begin(epoch, plannedSince, []);',
  },
  {
    name: 'state-before-the-end',
    rule: 14,
    what: 'warm state is dropped while the watermarks are handed over',
    file: 'src/singleton/instance.ts',
    find: '    this.#state = state.slice();',
    replace: '',
  },
  {
    name: 'repeats-are-accepted',
    rule: 14,
    what: 'a host takes a message that it has had already',
    file: 'src/singleton/delivery_filter.ts',
    find: "if (seq < this.next) return 'duplicate';",
    replace: "if (seq < this.next) return 'accept';",
  },
  {
    name: 'unknown-outcome-sent-again',
    rule: 15,
    what: 'after a crash everything is sent again, also at-most-once',
    file: 'src/singleton/sender_stream.ts',
    find: "} else if (mode === 'at-least-once') {",
    replace: '} else if (true) {',
  },
  {
    name: 'unknown-outcome-not-told',
    rule: 15,
    what: 'what was lost with a crash ends without a dead letter',
    file: 'src/singleton/sender_stream.ts',
    find:
      "      this.#lose(message, sender, 'outcome-unknown', 'the host is gone, and whether it had handled this is not known');",
    replace: '',
  },
  {
    name: 'unreachability-drains',
    rule: 15,
    what: 'a buffer is emptied when the host is unreachable',
    file: 'src/singleton/proxy.ts',
    find: '    this.#hint = undefined;\n    this.retarget();',
    replace:
      "    this.#hint = undefined;\n    if (this.#believed()?.reachable === false) this.stream.terminate('terminated', 'unreachable');\n    this.retarget();",
    profiles: ['flap'],
  },
];

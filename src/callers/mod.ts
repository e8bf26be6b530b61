/** `singlet/connect`: callers from outside, for browsers, Workers and scripts. The same as `Cluster.connect`, in a small bundle. */
export { connect, ConnectError } from './connect.ts';
export { Caller, type CallerEvent, CallerStateError } from './caller.ts';
export { CallerAskError } from './caller_ref.ts';
export type { ConnectOptions } from './caller_options.ts';
export type { Receiver } from './receiver.ts';
export { SingletonKey } from '../singleton/key.ts';
export type { ActorRef } from '../actor/ref.ts';
export type { Ledger } from '../singleton/sender_stream.ts';
export { OptionsError } from '../actor/options.ts';
export { AskTimeoutError, UndeliveredError } from '../actor/errors.ts';
export type { DeadLetter } from '../actor/dead_letters.ts';

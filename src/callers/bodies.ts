/**
 * The content of callers' messages, on the side of the cluster. A caller may name its own receivers in what it sends, and
 * nothing else that can be told something: a ref it made up would be used in the name of whoever got it. Refs it is sent
 * are those of singletons; any other arrives as one that reaches nobody, and says nothing about where it was.
 */
import { ActorRef } from '../actor/ref.ts';
import { limits } from '../limits.ts';
import { SingletonRef } from '../singleton/singleton_ref.ts';
import { Codec } from '../wire/codec.ts';
import type { WireRef } from '../wire/extension.ts';
import { schemes } from './schemes.ts';

export interface BodyRefs {
  /** The receiver's name, for a ref of the caller that this codec serves. */
  receiverOf(ref: ActorRef<any>): string | undefined;
  /** The ref of one of its receivers. */
  receiver(name: string): ActorRef<any>;
  /** The singleton an ordinary ref stands for, such as that of an instance to itself. */
  singletonOf(ref: ActorRef<any>): string | undefined;
}

/** For the messages of one caller. */
export function bodyCodec(refs: BodyRefs): Codec {
  return new Codec({
    maxBytes: limits.callerMessageBytes,
    refs: { toWire: (value) => toWire(refs, value), fromWire: (wire) => fromWire(refs, wire) },
  });
}

function toWire(refs: BodyRefs, value: object): WireRef | undefined {
  if (!(value instanceof ActorRef)) return undefined;
  const ref = value.underlying();
  const receiver = refs.receiverOf(ref);
  if (receiver !== undefined) return ['', schemes.receiver, receiver, 0];
  const singleton = ref instanceof SingletonRef ? ref.typeName : refs.singletonOf(ref);
  return singleton === undefined ? ['', schemes.nowhere, '', 0] : ['', schemes.singleton, singleton, 0];
}

function fromWire(refs: BodyRefs, [address, scheme, name]: WireRef): ActorRef<any> {
  if (address !== '' || scheme !== schemes.receiver || !/^[\w-]{1,64}$/.test(name)) {
    throw new TypeError('a caller may name its own receivers only');
  }
  return refs.receiver(name);
}

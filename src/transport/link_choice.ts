/**
 * How two processes agree on one link, whoever dialled and however often. Pure.
 *
 * The process with the smaller uid is the chooser. It says `use n` on one link at a time, with n growing; nothing else is
 * ever sent on a link by either side before that. So when both dialled at once, the surplus link has carried no message,
 * and closing it loses and reorders none. The other process opens with `ready l`, l being the last link number that it
 * has seen end: by that the chooser can tell a surplus link from one that replaces a link only the other side knows to
 * be dead. A link may also hang before its `use` has arrived; then only one side believes in it, and gives it up for the
 * next one that opens after a while without a sign of life.
 */

export interface LinkChoice {
  readonly chooser: boolean;
  readonly used: { readonly id: number; readonly number: number } | undefined;
  /** Open links that are not in use (yet), oldest first. */
  readonly waiting: readonly number[];
  /** Number of the last used link that has ended. */
  readonly lost: number;
}

export type LinkEvent =
  /** `next`: the number to give if this or another link is taken into use now. */
  | { readonly kind: 'opened'; readonly id: number; readonly next: number }
  | { readonly kind: 'use'; readonly id: number; readonly number: number }
  /** `stale`: nothing has ever come in on the link in use, for long enough that its `use` may have been lost with it. */
  | {
    readonly kind: 'ready';
    readonly id: number;
    readonly lost: number;
    readonly stale: boolean;
    readonly next: number;
  }
  | { readonly kind: 'closed'; readonly id: number; readonly next: number }
  /** This side has closed all of them. */
  | { readonly kind: 'all-closed' };

export type LinkEffect =
  | { readonly kind: 'send'; readonly frame: 'use' | 'ready'; readonly id: number; readonly number: number }
  | { readonly kind: 'close'; readonly id: number; readonly why: 'duplicate' | 'superseded' | 'unsettled' }
  | { readonly kind: 'in-use'; readonly id: number }
  | { readonly kind: 'out-of-use'; readonly id: number };

export interface LinkStep {
  readonly state: LinkChoice;
  readonly effects: readonly LinkEffect[];
}

export function newLinkChoice(ownUid: string, peerUid: string): LinkChoice {
  return { chooser: ownUid < peerUid, used: undefined, waiting: [], lost: 0 };
}

export function stepLinkChoice(state: LinkChoice, event: LinkEvent): LinkStep {
  switch (event.kind) {
    case 'opened':
      return opened(state, event.id, event.next);
    case 'use':
      return use(state, event.id, event.number);
    case 'ready':
      return ready(state, event);
    case 'closed':
      return closed(state, event.id, event.next);
    case 'all-closed':
      return {
        state: { ...state, used: undefined, waiting: [], lost: state.used?.number ?? state.lost },
        effects: state.used === undefined ? [] : [{ kind: 'out-of-use', id: state.used.id }],
      };
    default:
      return event satisfies never;
  }
}

function opened(state: LinkChoice, id: number, next: number): LinkStep {
  const waiting = [...state.waiting, id];
  if (!state.chooser) {
    return { state: { ...state, waiting }, effects: [{ kind: 'send', frame: 'ready', id, number: state.lost }] };
  }
  return state.used === undefined
    ? take({ ...state, waiting }, id, next)
    : { state: { ...state, waiting }, effects: [] };
}

/** The chooser takes a waiting link into use. */
function take(state: LinkChoice, id: number, number: number): LinkStep {
  return {
    state: { ...state, used: { id, number }, waiting: state.waiting.filter((other) => other !== id) },
    effects: [{ kind: 'send', frame: 'use', id, number }, { kind: 'in-use', id }],
  };
}

function use(state: LinkChoice, id: number, number: number): LinkStep {
  const { used } = state;
  if (state.chooser || !state.waiting.includes(id) || (used !== undefined && number <= used.number)) {
    return { state, effects: [{ kind: 'close', id, why: 'unsettled' }] };
  }
  const next: LinkChoice = {
    ...state,
    used: { id, number },
    waiting: state.waiting.filter((other) => other !== id),
    lost: used?.number ?? state.lost,
  };
  const over: readonly LinkEffect[] = used === undefined ? [] : supersede(used.id);
  return { state: next, effects: [...over, { kind: 'in-use', id }] };
}

function supersede(id: number): readonly LinkEffect[] {
  return [{ kind: 'out-of-use', id }, { kind: 'close', id, why: 'superseded' }];
}

function ready(state: LinkChoice, { id, lost, stale, next }: Extract<LinkEvent, { kind: 'ready' }>): LinkStep {
  if (!state.chooser) return { state, effects: [{ kind: 'close', id, why: 'unsettled' }] };
  if (!state.waiting.includes(id)) return { state, effects: [] };
  const { used } = state;
  if (used === undefined) return take(state, id, next);
  if (lost < used.number && !stale) {
    const waiting = state.waiting.filter((other) => other !== id);
    return { state: { ...state, waiting }, effects: [{ kind: 'close', id, why: 'duplicate' }] };
  }
  const taken = take({ ...state, lost: used.number }, id, next);
  return { state: taken.state, effects: [...supersede(used.id), ...taken.effects] };
}

function closed(state: LinkChoice, id: number, next: number): LinkStep {
  if (state.used?.id !== id) {
    return { state: { ...state, waiting: state.waiting.filter((other) => other !== id) }, effects: [] };
  }
  const without: LinkChoice = { ...state, used: undefined, lost: state.used.number };
  const over: LinkEffect = { kind: 'out-of-use', id };
  const successor = state.waiting[0];
  if (!state.chooser || successor === undefined) return { state: without, effects: [over] };
  const taken = take(without, successor, next);
  return { state: taken.state, effects: [over, ...taken.effects] };
}

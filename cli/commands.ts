/** The commands with their flags, as data: parsing and help both come from here. */
import { readCount, readCountRule, readDuration, readNames, readText, readUrl } from './flag_values.ts';

export interface FlagSpec {
  readonly name: string;
  /** How the value is shown in the help; a switch has none. */
  readonly value?: string;
  readonly read?: (text: string) => unknown;
  readonly about: string;
}

export interface CommandSpec {
  /** One or two words. */
  readonly name: string;
  readonly about: string;
  readonly operands: readonly string[];
  readonly flags: readonly FlagSpec[];
  /** Talks to a node. */
  readonly remote: boolean;
}

export const urlVariable = 'SINGLET_URL';
export const tokenVariable = 'SINGLET_TOKEN';
export const defaultUrl = 'http://127.0.0.1:2551/';
export const defaultTimeoutMs = 5_000;

export const remoteFlags: readonly FlagSpec[] = [
  {
    name: 'url',
    value: 'URL',
    read: readUrl,
    about: `the node to ask (default: ${urlVariable}, else ${defaultUrl})`,
  },
  {
    name: 'token',
    value: 'TOKEN',
    read: readText,
    about: `bearer token (better: ${tokenVariable}, which the process list does not show)`,
  },
  { name: 'ca', value: 'FILE', read: readText, about: 'certificate authority of an https node, as PEM' },
  { name: 'timeout', value: 'DURATION', read: readDuration, about: 'how long one request may take (default 5s)' },
];

export const commonFlags: readonly FlagSpec[] = [
  { name: 'json', about: 'JSON for programs instead of text for people' },
  { name: 'help', about: 'this text, or that of one command' },
];

const wait = (about: string): FlagSpec => ({ name: 'wait', value: 'DURATION', read: readDuration, about });

export const commands: readonly CommandSpec[] = [
  {
    name: 'status',
    about: 'is all well? Exit code 0 if so: the node is ready, every singleton has a host, nobody is unreachable',
    operands: [],
    remote: true,
    flags: [
      wait('tries until all is well, at most for this long'),
      { name: 'members', value: 'N', read: readCountRule, about: 'exactly N members must be up; N+ for N or more' },
      { name: 'singletons', value: 'A,B', read: readNames, about: 'these must have a host, whatever the node knows' },
      { name: 'app-version', value: 'TEXT', read: readText, about: 'every member must run this version of the app' },
    ],
  },
  { name: 'members', about: 'the members, oldest first', operands: [], remote: true, flags: [] },
  {
    name: 'singletons',
    about: 'the singletons, or one of them in detail',
    operands: ['[NAME]'],
    remote: true,
    flags: [],
  },
  {
    name: 'events',
    about: 'follows what happens, also over lost connections, until the node leaves or Ctrl-C',
    operands: [],
    remote: true,
    flags: [
      { name: 'replay', value: 'N', read: readCount, about: 'starts with the last N events (default 0)' },
      { name: 'for', value: 'DURATION', read: readDuration, about: 'ends after this long' },
    ],
  },
  {
    name: 'leave',
    about: 'makes the node hand over what it hosts and leave',
    operands: [],
    remote: true,
    flags: [wait('until it has left, at most for this long')],
  },
  {
    name: 'down',
    about: 'removes a member that is gone or cut off',
    operands: ['ADDRESS'],
    remote: true,
    flags: [wait('until it is removed, at most for this long')],
  },
  {
    name: 'move',
    about: 'hands a singleton over to another member, which keeps it until it leaves',
    operands: ['NAME'],
    remote: true,
    flags: [
      { name: 'to', value: 'ADDRESS', read: readText, about: 'the new host (default: the next eligible member)' },
      wait('until it runs there, at most for this long'),
    ],
  },
  {
    name: 'rebalance',
    about: 'spreads the singletons with placement "spread" over the members there are now',
    operands: [],
    remote: true,
    flags: [wait('until each runs in its place, at most for this long')],
  },
  {
    name: 'prepare-shutdown',
    about: 'before all nodes leave: no singleton starts any more on the members there are now',
    operands: [],
    remote: true,
    flags: [],
  },
  {
    name: 'cancel-shutdown',
    about: 'singletons start and move again',
    operands: [],
    remote: true,
    flags: [],
  },
  {
    name: 'sim',
    about: 'simulated clusters under faults; a failing seed is shrunk, reported, and replays exactly',
    operands: [],
    remote: false,
    flags: [
      { name: 'seed', value: 'N', read: readCount, about: 'one run' },
      { name: 'seeds', value: 'A..B', read: readText, about: 'these runs (default: one for each profile)' },
      { name: 'minutes', value: 'N', read: readCount, about: 'new seeds until the time is up' },
      { name: 'profile', value: 'NAME', read: readText, about: 'kind of faults (default: they take turns)' },
      { name: 'program', value: 'NAME', read: readText, about: 'what runs in the cluster (default: singletons)' },
      { name: 'nodes', value: 'N', read: readCount, about: 'number of nodes (default: drawn from the seed)' },
      { name: 'seconds', value: 'N', read: readCount, about: 'virtual length of the fault phase' },
      { name: 'faults', value: 'A,B', read: readText, about: 'only these of the drawn faults, or none: a replay' },
      { name: 'first', value: 'N', read: readCount, about: 'where --minutes begins (default: 1)' },
      { name: 'first-failure', about: 'no more runs after one that failed' },
      { name: 'no-shrink', about: 'reports a failing run as it was, without looking for a shorter one' },
      { name: 'hashes', about: 'one line per run: seed, profile, hash and outcome, to compare runtimes' },
      { name: 'verbose', about: 'every event of every run' },
    ],
  },
  {
    name: 'journal check',
    about: 'reads a directory of file stores and says what is wrong; changes nothing without --repair',
    operands: ['DIRECTORY'],
    remote: false,
    flags: [{
      name: 'repair',
      about: 'gives up what damage makes unreadable, after keeping its bytes in a file beside; nobody may have it open',
    }],
  },
];

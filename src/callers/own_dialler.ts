/** By itself, so that bundlers take this one export of the runtime's adapter and leave the rest. */
export { dialler } from '#runtime';

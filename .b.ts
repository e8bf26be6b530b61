import { connect } from './src/callers/mod.ts';
(globalThis as any).connect = connect;

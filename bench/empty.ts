/** Nothing: what a start of the runtime costs. */
export {};

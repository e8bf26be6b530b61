/** The script of the status page, put together. It runs in a browser, so it is text here. */
import { dataScript } from './data_script.ts';
import { operationsScript } from './operations_script.ts';
import { viewScript } from './view_script.ts';

export const pageScript: string = `'use strict';\n(() => {\n${viewScript}\n${operationsScript}\n${dataScript}\n})();\n`;

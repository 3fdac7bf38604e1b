import type { Source } from "./index.js";

/** What a bundler makes of the file: its URL, or its bytes. `compile` takes either. */
declare const source: Exclude<Source, URL | Response | Blob>;
export default source;

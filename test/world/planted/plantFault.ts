import { registerHooks } from "node:module";
import { LONG_FAULTS } from "./longFaults.ts";
import { SOAK_FAULTS } from "./soakFaults.ts";

/** Preloaded with `--import` in a process and its threads. Changes the text of modules while they are loaded. */
const ROOT = new URL("../../../", import.meta.url);
const name = process.env.FAULT ?? "";
const fault = LONG_FAULTS[name] ?? SOAK_FAULTS[name];
if (fault === undefined) {
  throw new Error(`no fault is called "${name}": ${Object.keys({ ...LONG_FAULTS, ...SOAK_FAULTS }).join(", ")}`);
}
const { edits } = fault;

const decode = (source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string =>
  typeof source === "string" ? source : new TextDecoder().decode(source ?? new Uint8Array(0));

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    const own = edits.filter(({ file }) => new URL(file, ROOT).href === url);
    if (own.length === 0) {
      return loaded;
    }
    let text = decode(loaded.source ?? undefined);
    for (const { file, from, to } of own) {
      if (text.split(from).length !== 2) {
        throw new Error(`the fault ${name} does not fit ${file} any more: ${from}`);
      }
      text = text.replace(from, () => to);
    }
    return { ...loaded, source: text };
  },
});

import { registerHooks } from "node:module";

/** A replacement in one file. The text must occur once. */
export interface Edit {
  /** Relative to the repository. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const ROOT = new URL("../../", import.meta.url);

const decode = (source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string =>
  typeof source === "string" ? source : new TextDecoder().decode(source ?? new Uint8Array(0));

/** Changes the text of modules while they are loaded, in this process and its threads. */
export const plantEdits = (name: string, edits: readonly Edit[]): void => {
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
};

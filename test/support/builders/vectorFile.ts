import { readFileSync } from "node:fs";

export interface Exchange {
  readonly request: { readonly method: string; readonly params: readonly unknown[] };
  readonly response: {
    readonly result?: unknown;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

/** Reads request and response from an .io file of execution-apis. */
export const readExchange = (file: string): Exchange => {
  const lines = readFileSync(file, "utf8").split("\n");
  const json = (mark: string) => JSON.parse(lines.find((line) => line.startsWith(mark))?.slice(mark.length) ?? "null");
  return { request: json(">> "), response: json("<< ") };
};

import type { Check } from "../core/node.ts";

/** The result of one check. `uncomputable`: forebay does not know the encoding of a part of the response. */
export interface Finding {
  readonly check: Check;
  readonly outcome: "passed" | "failed" | "uncomputable";
}

export const passed = (check: Check): Finding => ({ check, outcome: "passed" });
export const failed = (check: Check): Finding => ({ check, outcome: "failed" });
export const uncomputable = (check: Check): Finding => ({ check, outcome: "uncomputable" });

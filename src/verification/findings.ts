import type { Check } from "../core/node.ts";

/** `uncomputable`: the answer has parts whose encoding is not known here. */
export interface Finding {
  readonly check: Check;
  readonly outcome: "passed" | "failed" | "uncomputable";
}

export const passed = (check: Check): Finding => ({ check, outcome: "passed" });
export const failed = (check: Check): Finding => ({ check, outcome: "failed" });
export const uncomputable = (check: Check): Finding => ({ check, outcome: "uncomputable" });

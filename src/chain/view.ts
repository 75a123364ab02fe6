import type { Heads } from "./heads.ts";

/** What one request (a whole batch) reads everything from: immutable, swapped whole. */
export interface View {
  readonly heads: Heads;
}

import type { ResponseChecks } from "./checkBody.ts";
import type { Finding } from "./findings.ts";

export interface ToVerifier {
  readonly id: number;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly checks: ResponseChecks;
}

/** A thread's result. `body` is the memory that was moved to the thread. */
export type FromVerifier =
  | {
      readonly kind: "done";
      readonly id: number;
      readonly findings: readonly Finding[];
      readonly body: Uint8Array<ArrayBuffer>;
    }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };

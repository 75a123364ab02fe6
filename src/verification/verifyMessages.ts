import type { Task } from "./checkBody.ts";
import type { Finding } from "./findings.ts";

export interface ToVerifier {
  readonly id: number;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly task: Task;
}

/** The body comes back where it was moved. */
export type FromVerifier =
  | {
      readonly kind: "done";
      readonly id: number;
      readonly findings: readonly Finding[];
      readonly body: Uint8Array<ArrayBuffer>;
    }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };

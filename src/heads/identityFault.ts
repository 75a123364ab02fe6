import type { IdentityFault } from "../nodes/identityGate.ts";
import { ChainMismatchError, GenesisMissingError } from "./nodeIdentity.ts";

/** What an error of reading or checking a node's identity means. */
export const identityFault = (error: unknown): IdentityFault => {
  const text = error instanceof Error ? error.message : "no answer";
  if (error instanceof GenesisMissingError) {
    return { kind: "noGenesis", text };
  }
  return { kind: error instanceof ChainMismatchError ? "wrongChain" : "noAnswer", text };
};

import type { IdentityFault } from "../nodes/identityGate.ts";
import { ChainMismatchError, GenesisMissingError } from "./nodeIdentity.ts";

/** Classifies an error that was thrown when a node's identity was read or checked. */
export const identityFault = (error: unknown): IdentityFault => {
  const text = error instanceof Error ? error.message : "no response";
  if (error instanceof GenesisMissingError) {
    return { kind: "noGenesis", text };
  }
  return { kind: error instanceof ChainMismatchError ? "wrongChain" : "noAnswer", text };
};

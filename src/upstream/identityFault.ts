import { ChainMismatchError, GenesisMissingError } from "./identity.ts";

/** Why a node is not used yet. The text never holds the node's URL. */
export interface IdentityFault {
  readonly kind: "noAnswer" | "noGenesis" | "wrongChain";
  readonly text: string;
}

/** What an error of reading or checking a node's identity means. */
export const identityFault = (error: unknown): IdentityFault => {
  const text = error instanceof Error ? error.message : "no answer";
  if (error instanceof GenesisMissingError) return { kind: "noGenesis", text };
  return { kind: error instanceof ChainMismatchError ? "wrongChain" : "noAnswer", text };
};

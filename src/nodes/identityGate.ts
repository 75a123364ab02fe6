import type { Hash } from "../ethereum/hex.ts";

/**
 * What a node is to the chain. `reset`: the chain's id, and another genesis block that no other node contradicts (a restarted
 * devnet). `other`: of another chain; the node is suspended. `unknown`: the node did not answer.
 */
export type IdentityCase =
  | { readonly kind: "same" | "other" | "unknown" }
  | { readonly kind: "reset"; readonly genesis: Hash };

/** Why a node is not used yet. The text never holds the node's URL. */
export interface IdentityFault {
  readonly kind: "noAnswer" | "noGenesis" | "wrongChain";
  readonly text: string;
}

/** Whether one node may be used: it is of the chain, and was not restarted since that was verified. */
export class IdentityGate {
  readonly #verify: (() => Promise<IdentityCase>) | undefined;
  #isDoubtful = false;
  #verifying: Promise<IdentityCase> | undefined;
  /** True if the node's chain id and genesis block were read and are the chain's. */
  isIdentified = false;

  /** Without `verify`, `doubt` has no effect. */
  constructor(verify: (() => Promise<IdentityCase>) | undefined) {
    this.#verify = verify;
  }

  get isOpen(): boolean {
    return this.isIdentified && !this.#isDoubtful;
  }

  /** The node may have been restarted as a node of another chain. */
  doubt(): void {
    this.#isDoubtful = this.#verify !== undefined && this.isIdentified;
  }

  /** Verifies a node that is in doubt, once for all concurrent calls. Returns whether the node may be used. */
  async open(): Promise<boolean> {
    if (this.#isDoubtful && this.#verify) {
      this.#verifying ??= this.#verify().finally(() => {
        this.#verifying = undefined;
      });
      this.#isDoubtful = (await this.#verifying).kind === "unknown";
    }
    return this.isOpen;
  }
}

import { NodeError } from "../core/node.ts";
import type { Hash } from "../ethereum/hex.ts";

/**
 * Whether a node serves the chain. `same`: it does. `other`: it serves another chain and is suspended. `unknown`: no response.
 * `reset`: same chain id, but another genesis that no node contradicts, as after the restart of a devnet.
 */
export type IdentityResult =
  | { readonly kind: "same" | "other" | "unknown" }
  | { readonly kind: "reset"; readonly genesis: Hash };

/** The reason why a node is not used yet. The text never contains the node's URL. */
export interface IdentityFault {
  readonly kind: "noAnswer" | "noGenesis" | "wrongChain";
  readonly text: string;
}

/** Decides whether one node may be used: it serves the chain, and was not restarted since its identity was verified. */
export class IdentityGate {
  readonly #name: string;
  readonly #verify: (() => Promise<IdentityResult>) | undefined;
  #needsCheck = false;
  #verifying: Promise<IdentityResult> | undefined;
  /** True if the node's chain id and genesis block were read and are the chain's. */
  isIdentified = false;
  /** The reason why the node is not identified, from the last check. */
  fault: IdentityFault | undefined;

  /** Without `verify`, `requireCheck` has no effect. */
  constructor(name: string, verify: (() => Promise<IdentityResult>) | undefined) {
    this.#name = name;
    this.#verify = verify;
  }

  get isOpen(): boolean {
    return this.isIdentified && !this.#needsCheck;
  }

  /** Closes the gate until the next verification: the node may have been restarted with another chain. */
  requireCheck(): void {
    this.#needsCheck = this.#verify !== undefined && this.isIdentified;
  }

  /** Verifies the node if a check is required, once for all concurrent calls. Rejects with NodeError if it must not be used. */
  async confirm(): Promise<void> {
    if (this.#needsCheck && this.#verify) {
      this.#verifying ??= this.#verify().finally(() => {
        this.#verifying = undefined;
      });
      this.#needsCheck = (await this.#verifying).kind === "unknown";
    }
    if (!this.isOpen) {
      throw this.unknownChain();
    }
  }

  /** Creates the error of a call to a node that is not identified. */
  unknownChain(): NodeError {
    return new NodeError("unreachable", this.#name, "the node is not known to be of this chain", {
      status: 503,
      retryAfterSeconds: 1,
    });
  }
}

import { LRUCache } from "lru-cache";
import type { BlockId } from "../../core/heads.ts";
import { keyName, type StateKey } from "../stateKey.ts";

const MAX_CONTESTED = 10_000;
/** Nodes may make a contested value known again after this time. */
const CONTESTED_MS = 600_000;

/** A value is contested if origins disagree on it, or are asked about it now. */
export interface Contest {
  readonly block: BlockId;
  /** Called when a proof makes the value known: with the value at the contested block, if the proof shows it. */
  onProven(value: string | undefined): void;
}

/** The contested values, by the names of their keys. */
export class ContestedValues {
  readonly #contests = new LRUCache<string, Contest>({
    max: MAX_CONTESTED,
    ttl: CONTESTED_MS,
    ttlResolution: 0,
    // One that nothing ends would hold the chain of its judge, also after a reload.
    ttlAutopurge: true,
  });

  begin(key: StateKey, contest: Contest): void {
    this.#contests.set(keyName(key), contest);
  }

  /** It is on the path of each value that a node returns, and rarely there is a contest. */
  find(key: StateKey): Contest | undefined {
    return this.#contests.size === 0 ? undefined : this.#contests.get(keyName(key));
  }

  end(key: StateKey): void {
    this.#contests.delete(keyName(key));
  }
}

import type { BlockId, CurrentHeads } from "../core/heads.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { StateCost } from "./cost.ts";
import { countOf, type FoundValue, foundValue, type KnownBlockState } from "./fetch/foundValues.ts";
import { type FetchedValues, unitsOfSlot } from "./fetch/stateFetcher.ts";
import { methodOf } from "./fetch/stateRequests.ts";
import { runSlicedWhile } from "./runSliced.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSetWaits } from "./writeSetWaits.ts";

export interface ExecutionReadsOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "head" | "isReadable" | "maxReadable">;
  readonly follower: Pick<StateFollower, "generation" | "isFollowing" | "add" | "untilApplied">;
  readonly heads: CurrentHeads;
  readonly cost: Pick<StateCost, "unitsOf" | "onRead">;
  readonly waits: WriteSetWaits;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** Answers reads of executions from the known state of the newest blocks. The values that nodes return for others become known. */
export class ExecutionReads {
  readonly #options: ExecutionReadsOptions;

  constructor(options: ExecutionReadsOptions) {
    this.#options = options;
  }

  /** Begins the reads of one execution on the state after a block. Undefined if only nodes can have this state. */
  begin(block: BlockId, clientId: string): KnownBlockState | undefined {
    const latest = this.#options.heads.current()?.latest;
    return latest !== undefined && latest.number - block.number < this.#options.values.maxReadable
      ? new BlockReads(this.#options, block, clientId)
      : undefined;
  }

  /** Begins a fetch. Returns the function that makes its values known, as those of plain reads are, unless a second origin lacks. */
  beginFetch(block: BlockId): (fetched: FetchedValues) => void {
    const { follower } = this.#options;
    const { generation } = follower;
    return (fetched) => {
      if (follower.isFollowing && fetched.isConfirmed !== false) {
        const steps = this.#add(fetched, block, generation);
        void runSlicedWhile(steps, () => generation === follower.generation);
      }
    };
  }

  /** The store has the codes: whoever fetches them stores them there. */
  *#add({ values, node }: FetchedValues, block: BlockId, generation: number): Generator<void, void> {
    const { follower } = this.#options;
    for (const [key, value] of values) {
      follower.add({ key, value, node }, block, generation);
      yield;
    }
  }
}

/** The reads of one execution. */
class BlockReads implements KnownBlockState {
  readonly id: string;
  readonly #options: ExecutionReadsOptions;
  readonly #block: BlockId;
  readonly #client: string;
  #hasWaited = false;

  constructor(options: ExecutionReadsOptions, block: BlockId, client: string) {
    // After a wrong value was dropped, threads must not find it under this id.
    this.id = `${block.hash}:${options.follower.generation}`;
    this.#options = options;
    this.#block = block;
    this.#client = client;
  }

  find(keys: readonly StateKey[]): Awaitable<readonly FoundValue[]> {
    const { follower, values } = this.#options;
    const settled = this.#hasWaited ? undefined : follower.untilApplied(this.#block);
    const { head } = values;
    const mayHold = settled !== undefined && head !== undefined && this.#isMostlyKnown(keys, head);
    return mayHold ? this.#wait(keys, settled) : this.#find(keys);
  }

  /** Waits for the block's write set, once for each execution. */
  async #wait(keys: readonly StateKey[], settled: Promise<void>): Promise<readonly FoundValue[]> {
    const { values, waits } = this.#options;
    this.#hasWaited = true;
    await waits.find(settled, () => values.isReadable(this.#block) || undefined);
    return this.#find(keys);
  }

  /** Whether at least half of the accounts and slots were known after an earlier block. */
  #isMostlyKnown(keys: readonly StateKey[], head: BlockId): boolean {
    const known = countOf(keys.filter((key) => this.#options.values.get(key, head) !== undefined));
    return known > 0 && 2 * known >= countOf(keys);
  }

  #find(keys: readonly StateKey[]): readonly FoundValue[] {
    const { chain, cost, values, telemetry } = this.#options;
    const { number } = this.#block;
    const slotUnits = unitsOfSlot(keys.filter(({ field }) => field === "slot").length, cost.unitsOf);
    const found: FoundValue[] = [];
    for (const key of keys) {
      const known = foundValue(key, values.get(key, this.#block), values);
      const isHit = known !== undefined;
      if (isHit) {
        found.push(known);
      }
      const units = key.field === "slot" ? slotUnits : undefined;
      cost.onRead({ method: methodOf(key), key, block: number, isHit, client: this.#client, units });
    }
    telemetry.metrics.simulateKnown.inc({ chain }, countOf(found.map(({ key }) => key)));
    return found;
  }
}

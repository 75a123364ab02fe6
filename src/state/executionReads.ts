import type { BlockId, Heads } from "../core/heads.ts";
import type { FoundState, KnownBlockState, StateKeys } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type FetchedValues, unitsOfSlot } from "./fetch/stateFetcher.ts";
import { methodOf } from "./fetch/stateRequests.ts";
import { runSlicedWhile } from "./runSliced.ts";
import type { StateCost } from "./stateCost.ts";
import type { StateFollower } from "./stateFollower.ts";
import { accountKey, accountKeys, type StateKey, slotKey } from "./stateKey.ts";
import { StateValuesBuilder } from "./store/stateValuesBuilder.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSetWaits } from "./writeSetWaits.ts";

export interface ExecutionReadsOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "head" | "isReadable" | "maxReadable">;
  readonly follower: Pick<StateFollower, "generation" | "isFollowing" | "add" | "untilApplied">;
  readonly heads: { current(): Heads | undefined };
  readonly cost: Pick<StateCost, "unitsOf" | "onRead">;
  /** Accounts whose values are always read from a node. */
  readonly never: ReadonlySet<Address>;
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
    const { follower, never } = this.#options;
    for (const [key, value] of values) {
      if (!never.has(key.address)) {
        follower.add({ key, value, node }, block, generation);
        yield;
      }
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

  find(keys: StateKeys): Awaitable<FoundState> {
    const { follower, values } = this.#options;
    const settled = this.#hasWaited ? undefined : follower.untilApplied(this.#block);
    const { head } = values;
    const mayHold = settled !== undefined && head !== undefined && this.#isMostlyKnown(keys, head);
    return mayHold ? this.#wait(keys, settled) : this.#find(keys);
  }

  /** Waits for the block's write set, once for each execution. */
  async #wait(keys: StateKeys, settled: Promise<void>): Promise<FoundState> {
    const { values, waits } = this.#options;
    this.#hasWaited = true;
    await waits.find(settled, () => values.isReadable(this.#block) || undefined);
    return this.#find(keys);
  }

  /** Whether at least half of the keys were known after an earlier block. */
  #isMostlyKnown({ accounts, slots }: StateKeys, head: BlockId): boolean {
    const { values } = this.#options;
    const known =
      accounts.filter((address) => values.get(accountKey(address, "code"), head) !== undefined).length +
      slots.filter(([address, slot]) => values.get(slotKey(address, slot), head) !== undefined).length;
    return known > 0 && 2 * known >= accounts.length + slots.length;
  }

  #find({ accounts, slots, blockHashes }: StateKeys): FoundState {
    const found = new StateValuesBuilder();
    const missingAccounts = accounts.filter((address) => !this.#findAccount(address, found));
    const { chain, cost, telemetry } = this.#options;
    const slotUnits = unitsOfSlot(slots.length, cost.unitsOf);
    const missingSlots = slots.filter(([address, slot]) => !this.#findSlot(address, slot, found, slotUnits));
    telemetry.metrics.simulateKnown.inc({ chain }, found.size);
    return { values: found.values, missing: { accounts: missingAccounts, slots: missingSlots, blockHashes } };
  }

  #findAccount(address: Address, found: StateValuesBuilder): boolean {
    const keys = accountKeys(address);
    const [balance, nonce, codeHash] = keys.map((key) => this.#get(key));
    const code = codeHash === undefined ? undefined : this.#options.values.code(codeHash);
    const isFound = balance !== undefined && nonce !== undefined && codeHash !== undefined && code !== undefined;
    if (isFound) {
      found.addAccount(address, balance, nonce, codeHash);
      found.addCode(codeHash, code);
    }
    for (const key of keys) {
      this.#count(key, isFound);
    }
    return isFound;
  }

  #findSlot(address: Address, slot: Hash, found: StateValuesBuilder, units: number): boolean {
    const key = slotKey(address, slot);
    const value = this.#get(key);
    if (value !== undefined) {
      found.addSlot(address, slot, value);
    }
    this.#count(key, value !== undefined, units);
    return value !== undefined;
  }

  #get(key: StateKey): string | undefined {
    const { values, never } = this.#options;
    return never.has(key.address) ? undefined : values.get(key, this.#block);
  }

  #count(key: StateKey, isHit: boolean, units?: number): void {
    const { cost, never } = this.#options;
    if (!never.has(key.address)) {
      const block = this.#block.number;
      cost.onRead({ method: methodOf(key), key, block, isHit, client: this.#client, units });
    }
  }
}

import { LRUCache } from "lru-cache";
import { type BlockId, type CurrentHeads, isCanonicalIn } from "../core/heads.ts";
import type { PlainCall, StateKeys, StateSource, StateValues } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { StateCost } from "./cost.ts";
import { countOf, type FoundValue, partsOf, singleKeys, stateValuesOf } from "./fetch/foundValues.ts";
import { createPrefetch, type PredictedState, type PrefetchHint } from "./fetch/prefetch.ts";
import { type StateFetcher, unitsOfSlot } from "./fetch/stateFetcher.ts";
import { blockHashCall, methodOf, parseBlockHash } from "./fetch/stateRequests.ts";
import { ReadGrades } from "./readGrades.ts";
import type { StateFollower } from "./stateFollower.ts";
import { keyName, type StateKey, ZERO_VALUE } from "./stateKey.ts";
import type { Version } from "./store/unfollowedValues.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSetWaits } from "./writeSetWaits.ts";

export interface BlockStatesOptions {
  readonly chain: string;
  readonly fetcher: Pick<StateFetcher, "fetch">;
  readonly known: KnownState;
  readonly heads: CurrentHeads;
  /** Returns a name that changes when values of nodes must be read again. Default: they are valid until they are evicted. */
  readonly epoch?: (block: BlockId) => string;
  /** Called when a second origin is required for values of a block, and has not stated them. */
  readonly onUnagreed?: (block: BlockId) => void;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** What is known of the state of a chain. */
export interface KnownState {
  /** Another chain may take it over. */
  readonly store: ValueStore;
  /** Undefined: nothing follows the state. */
  readonly followed?: Followed | undefined;
}

/** What follows the state of a chain. */
export interface Followed {
  readonly follower: Pick<StateFollower, "untilApplied" | "beginRead">;
  readonly cost: Pick<StateCost, "unitsOf" | "onRead">;
  readonly waits: WriteSetWaits;
}

/** How one execution reads state. */
export interface StateUse {
  /**
   * `known`: what write sets carried to the block, and what else is known there. No node is asked: missing values end the run.
   * `nodes`: what nodes returned for this block. `both`: what is known, then nodes.
   */
  readonly from: "known" | "nodes" | "both";
  /** The client of reads from both. */
  readonly client?: string | undefined;
  /** What a run from known values will probably read. Their values are sent with it. */
  readonly expected?: StateKeys | undefined;
  /** Calls that will be executed. Nodes that can do so predict what the calls will read. */
  readonly hint?: PrefetchHint | undefined;
  readonly onRead?: OnStateRead | undefined;
  /** Called with the price of calls to nodes that were answered. */
  readonly onSpent?: ((units: number) => void) | undefined;
  /** Runs each part of a read when it is the client's turn. Default: each read is one part, and waits for no turn. */
  readonly takeTurn?: TakeTurn | undefined;
}

type TakeTurn = <Result>(task: () => Promise<Result>) => Promise<Result>;

/** Called with the number of calls to nodes before a source sends the first of them. Throws if they are too many. */
export type OnStateRead = (calls: number) => void;

const MAX_BLOCK_HASHES = 10_000;

/** What all executions of a chain share. */
interface SharedReads extends BlockStatesOptions {
  readonly blockHashes: LRUCache<string, Hash>;
  /** The fetch of a value that other reads wait for, by the name of the value. It never rejects. */
  readonly inFlight: Map<string, Promise<void>>;
  readonly planPrefetch: ReturnType<typeof createPrefetch>;
}

/** One read of an execution. */
interface RunningRead {
  /** What the execution gets. All values return together: with a part of them, it would guess the rest and fetch the results of its guesses. */
  readonly found: Map<string, FoundValue>;
  readonly blockHashes: Map<bigint, Hash>;
  /** Only the first read of an execution sends it. */
  readonly hint: PrefetchHint | undefined;
  readonly signal: AbortSignal;
}

/** The state of one chain after its blocks. */
export class BlockStates {
  readonly #shared: SharedReads;

  constructor(options: BlockStatesOptions) {
    const blockHashes = new LRUCache<string, Hash>({ max: MAX_BLOCK_HASHES });
    this.#shared = { ...options, blockHashes, inFlight: new Map(), planPrefetch: createPrefetch() };
  }

  /** Returns the state after a block, for one execution. */
  at(block: BlockId, use: StateUse): BlockState {
    return new BlockState(this.#shared, block, use);
  }
}

/**
 * The state after one block, for one execution: what is known of it, then what nodes return for the block's hash. Equal reads in flight
 * are sent once. Reads reject with a node's error.
 */
export class BlockState implements StateSource {
  readonly id: string;
  readonly expected: StateValues | undefined;
  /** What a run got from known values alone. */
  readonly grades = new ReadGrades();
  /** The values for which a run from known values alone ended. */
  missing: readonly StateKey[] | undefined;
  readonly #shared: SharedReads;
  readonly #block: BlockId;
  readonly #use: StateUse;
  readonly #store: ValueStore;
  readonly #isAlone: boolean;
  /** Undefined if known values answer no read of clients: only nodes have this state, or it is a run from known values alone. */
  readonly #followed: Followed | undefined;
  /** Names the block since the last drop, in this epoch. */
  readonly #name: string;
  readonly #version: Version;
  /** Accounts that were sent without their codes, because a thread has most codes. It requests an account again if it lacks the code. */
  readonly #sent = new Set<Address>();
  #hint: PrefetchHint | undefined;
  #hasWaited = false;

  constructor(shared: SharedReads, block: BlockId, use: StateUse) {
    const epoch = shared.epoch?.(block) ?? "";
    this.#shared = shared;
    this.#block = block;
    this.#use = use;
    this.#store = shared.known.store;
    this.#isAlone = use.from === "known";
    this.#followed = use.from === "both" ? this.#findFollowed() : undefined;
    // What was requested before all values were dropped must not be found after it, by threads neither.
    this.#name = `${block.hash}:${this.#store.beginnings}:${epoch}`;
    this.#version = this.#store.unfollowed.versionOf(this.#name);
    this.#hint = use.hint;
    // A run on values of nodes alone must not find known ones in threads.
    this.id = this.#followed === undefined ? this.#name : `${this.#name}:known`;
    this.expected = use.expected && this.#findExpected(use.expected);
  }

  async read(keys: StateKeys, signal: AbortSignal, calls?: readonly PlainCall[]): Promise<StateValues> {
    const hint = calls === undefined ? this.#hint : { calls, stateOverrides: undefined };
    const read = { found: new Map(), blockHashes: new Map(), hint, signal };
    this.#hint = undefined;
    const missing = await this.#takeKnown(read, singleKeys(keys));
    const numbers = keys.blockHashes.filter((number) => !this.#takeBlockHash(read, number));
    if (!this.#isAlone) {
      await this.#complete(read, missing, numbers);
    } else if (missing.length + numbers.length > 0) {
      this.missing = missing;
      throw new Error(`${missing.length} values are not known`);
    }
    return { ...stateValuesOf(read.found), blockHashes: [...read.blockHashes] };
  }

  /** Known values answer reads of clients after the newest blocks. */
  #findFollowed(): Followed | undefined {
    const { heads, known } = this.#shared;
    const latest = heads.current()?.latest;
    const isNew = latest !== undefined && latest.number - this.#block.number < this.#store.maxReadable;
    return isNew ? known.followed : undefined;
  }

  #findExpected(keys: StateKeys): StateValues {
    const found = new Map<string, FoundValue>();
    this.#find(singleKeys(keys), found);
    return stateValuesOf(found);
  }

  /** Takes known values for the execution. Returns the keys of the others. Waits for the block's write set, once. */
  async #takeKnown({ found }: RunningRead, keys: readonly StateKey[]): Promise<readonly StateKey[]> {
    const settled = this.#hasWaited ? undefined : this.#followed?.follower.untilApplied(this.#block);
    if (settled !== undefined && this.#isMostlyKnown(keys)) {
      this.#hasWaited = true;
      await this.#followed?.waits.find(settled, () => this.#store.isReadable(this.#block) || undefined);
    }
    return this.#find(keys, found);
  }

  /** Whether at least half of the accounts and slots were known after an earlier block. */
  #isMostlyKnown(keys: readonly StateKey[]): boolean {
    const { head } = this.#store;
    const known = countOf(keys.filter((key) => head !== undefined && this.#store.get(key, head) !== undefined));
    return known > 0 && 2 * known >= countOf(keys);
  }

  /** Finds known values. Returns the keys of the others. */
  #find(keys: readonly StateKey[], found: RunningRead["found"]): readonly StateKey[] {
    if (!this.#isAlone && this.#followed === undefined) {
      return keys;
    }
    const missing = new Set<StateKey>();
    for (const key of keys) {
      const known = this.#findOne(key);
      if (known === undefined) {
        missing.add(key);
      } else {
        found.set(keyName(key), known);
      }
    }
    this.#count(keys, missing);
    return [...missing];
  }

  #findOne(key: StateKey): FoundValue | undefined {
    const store = this.#store;
    const entry = store.readableEntry(key, this.#block);
    const known = entry === 0 ? undefined : this.#withCode(key, store.valueAt(entry));
    if (!this.#isAlone) {
      return known;
    }
    // A balance or a nonce that is not known is zero for the run: few calls read it.
    const isGuess = known === undefined && (key.field === "balance" || key.field === "nonce");
    const found = isGuess ? { key, value: ZERO_VALUE, code: undefined } : known;
    if (found !== undefined) {
      this.grades.note(found, isGuess ? undefined : store.gradeAt(entry, this.#block));
    }
    return found;
  }

  /** Undefined: the store lacks the bytes of a code. */
  #withCode(key: StateKey, value: string): FoundValue | undefined {
    if (key.field !== "code") {
      return { key, value, code: undefined };
    }
    const isSecond = this.#sent.has(key.address);
    this.#sent.add(key.address);
    const code = this.#store.code(value);
    return this.#isAlone && !isSecond ? { key, value, code: undefined } : code && { key, value, code };
  }

  /** Counts what clients read. */
  #count(keys: readonly StateKey[], missing: ReadonlySet<StateKey>): void {
    const { chain, telemetry } = this.#shared;
    const { client = "" } = this.#use;
    const cost = this.#followed?.cost;
    if (cost === undefined) {
      return;
    }
    const slotUnits = unitsOfSlot(keys.filter(({ field }) => field === "slot").length, cost.unitsOf);
    for (const key of keys) {
      const units = key.field === "slot" ? slotUnits : undefined;
      const isHit = !missing.has(key);
      cost.onRead({ method: methodOf(key), key, block: this.#block.number, isHit, client, units });
    }
    telemetry.metrics.simulateKnown.inc({ chain }, countOf(keys) - countOf([...missing]));
  }

  /** Takes the hash of an ancestor, if it is known. */
  #takeBlockHash({ blockHashes }: RunningRead, number: bigint): boolean {
    const { heads, blockHashes: fetched } = this.#shared;
    const current = heads.current();
    const canonical = isCanonicalIn(current, this.#block) ? current?.at(number)?.hash : undefined;
    const hash = canonical ?? (this.#isAlone ? undefined : fetched.get(this.#nameOfNumber(number)));
    if (hash !== undefined) {
      blockHashes.set(number, hash);
    }
    return hash !== undefined;
  }

  /** Fetches what nodes have not returned for this block before. All calls are counted before the first one. */
  async #complete(read: RunningRead, keys: readonly StateKey[], numbers: readonly bigint[]): Promise<void> {
    const { inFlight, planPrefetch, blockHashes } = this.#shared;
    const missing = keys.filter((key) => !this.#takeFetched(read, key));
    const own = missing.filter((key) => !inFlight.has(this.#nameOf(key)));
    const isFetching = own.length + numbers.length > 0;
    const plan = read.hint && isFetching ? planPrefetch(this.#block.hash, read.hint) : undefined;
    const further = [...numbers.map(blockHashCall), ...(plan?.calls ?? [])];
    if (isFetching) {
      this.#use.onRead?.(own.length + further.length);
    }
    const outcomes = await this.#fetchParts(read, missing, further);
    for (const [index, number] of numbers.entries()) {
      const hash = parseBlockHash(outcomes[index]);
      blockHashes.set(this.#nameOfNumber(number), hash);
      read.blockHashes.set(number, hash);
    }
    if (plan !== undefined) {
      await this.#addPredicted(read, plan.read(outcomes.slice(numbers.length)));
    }
  }

  /** Fetches in turns. Returns the outcomes of further calls, which are sent with the first part. */
  async #fetchParts(
    read: RunningRead,
    missing: readonly StateKey[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    const { takeTurn } = this.#use;
    let hasFailed = false;
    const fetchPart = async (part: readonly StateKey[], index: number): Promise<readonly unknown[]> => {
      read.signal.throwIfAborted();
      try {
        return hasFailed ? [] : await this.#fetchPart(read, part, index === 0 ? further : []);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    };
    if (missing.length + further.length === 0) {
      return [];
    }
    const parts = takeTurn === undefined || missing.length === 0 ? [missing] : partsOf(missing);
    const run = takeTurn ?? atOnce;
    const [outcomes = []] = await Promise.all(parts.map((part, index) => run(() => fetchPart(part, index))));
    return outcomes;
  }

  /** Fetches what is not in flight, and waits for what is. Returns the outcomes of further calls. */
  async #fetchPart(
    read: RunningRead,
    part: readonly StateKey[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    const { inFlight } = this.#shared;
    // Another read may have fetched them before the turn of this one.
    const missing = part.filter((key) => !this.#takeFetched(read, key));
    const own: StateKey[] = [];
    const shared = new Map<StateKey, Promise<void>>();
    for (const key of missing) {
      const running = inFlight.get(this.#nameOf(key));
      void (running === undefined ? own.push(key) : shared.set(key, running));
    }
    const outcomes = await this.#fetch(read, own, further);
    await Promise.all(shared.values());
    const failed = [...shared.keys()].filter((key) => !this.#takeFetched(read, key));
    await this.#fetch(read, failed, []);
    return outcomes;
  }

  /** Fetches values in one batch. Other reads of them wait. Returns the outcomes of further calls. */
  async #fetch(read: RunningRead, keys: readonly StateKey[], further: readonly Call[]): Promise<readonly unknown[]> {
    if (keys.length + further.length === 0) {
      return [];
    }
    const { inFlight } = this.#shared;
    const fetched = this.#fetchOwn(read, keys, further);
    const ended = fetched.then(ignore, ignore);
    const names = keys.map((key) => this.#nameOf(key));
    for (const name of names) {
      inFlight.set(name, ended);
    }
    return fetched.finally(() => {
      for (const name of names) {
        inFlight.delete(name);
      }
    });
  }

  /** Values of nodes become known, as those of plain reads do. */
  async #fetchOwn(read: RunningRead, keys: readonly StateKey[], further: readonly Call[]): Promise<readonly unknown[]> {
    const { fetcher, known, onUnagreed } = this.#shared;
    const enter = known.followed?.follower.beginRead();
    const fetched = await fetcher.fetch(keys, this.#block, further);
    enter?.(fetched, this.#block);
    if (fetched.isAgreed === false) {
      onUnagreed?.(this.#block);
    }
    this.#use.onSpent?.(fetched.units);
    for (const key of keys) {
      const value = fetched.values.get(key);
      if (value === undefined) {
        throw fetched.errors.get(key) ?? new Error(`no value of ${key.field} was fetched`);
      }
      this.#enter(read, { key, value, code: key.field === "code" ? fetched.codes.get(value) : undefined });
    }
    return fetched.outcomes;
  }

  /** Takes traced values and fetches listed keys. The execution gets both. */
  async #addPredicted(read: RunningRead, { traced, listed }: PredictedState): Promise<void> {
    const { found } = read;
    const fetchedValue = (key: StateKey) => this.#store.unfollowed.read(key, this.#version);
    await this.#takeKnown(
      read,
      traced.map(({ key }) => key),
    );
    // A trace is used only if it agrees with the values of other requests. The sender is always known, or among those.
    if (traced.some(({ key, value }) => (found.get(keyName(key))?.value ?? fetchedValue(key) ?? value) !== value)) {
      return;
    }
    for (const each of traced) {
      if (!found.has(keyName(each.key))) {
        this.#enter(read, each);
      }
    }
    // The execution reads known values without a node.
    const unknown = await this.#takeKnown(read, listed);
    const missing = unknown.filter((key) => !found.has(keyName(key)));
    await this.#complete({ ...read, hint: undefined }, missing, []);
  }

  /** Takes a value that nodes returned before. Returns false if there is none. */
  #takeFetched({ found }: RunningRead, key: StateKey): boolean {
    const value = this.#store.unfollowed.read(key, this.#version);
    const fetched = value === undefined ? undefined : this.#withCode(key, value);
    if (fetched !== undefined) {
      found.set(keyName(key), fetched);
    }
    return fetched !== undefined;
  }

  #enter({ found }: RunningRead, each: FoundValue): void {
    const { key, value, code } = each;
    if (code !== undefined) {
      this.#store.storeCode(code, value);
    }
    this.#store.unfollowed.enter(key, this.#version, value);
    found.set(keyName(key), each);
  }

  #nameOf(key: StateKey): string {
    return this.#name + keyName(key);
  }

  #nameOfNumber(number: bigint): string {
    return `${this.#name}#${number}`;
  }
}

const atOnce: TakeTurn = (task) => task();

const ignore = (): void => undefined;

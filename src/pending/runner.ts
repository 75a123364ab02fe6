import { createBloom, orBloom } from "../chain/bloom.ts";
import type { BlockId } from "../chain/heads.ts";
import { type Address, formatData, type Hash, parseData } from "../chain/hex.ts";
import { orderedTrieRoot } from "../chain/orderedTrie.ts";
import { encodeReceipt, type Receipt } from "../chain/receipt.ts";
import type { Rules } from "../chain/rules.ts";
import type { StateChanges, StateKeys, StateValues } from "../chain/stateReader.ts";
import type { PendingEnvironment } from "../chain/view.ts";
import type { Engine } from "../evm/engine.ts";
import { createKnownState, type KnownState, NativeContract } from "../evm/knownState.ts";
import { createMissingState } from "../evm/missingState.ts";
import { settle } from "../evm/settle.ts";
import { StateOverlay } from "../evm/stateOverlay.ts";
import { beginBlock } from "../evm/systemCalls.ts";
import { TransactionError } from "../evm/transactionError.ts";
import { blockOf, layered, overwritten } from "./blockState.ts";
import { type Decoded, decodeTransaction } from "./decodeTransaction.ts";
import { executeTransactions, type Prepared } from "./executeTransactions.ts";
import type { Execution, Unproven, Work } from "./execution.ts";
import { collapse, type Layer, type LayerEntry, toLayer } from "./layers.ts";

export interface RunnerOptions {
  /** State at that sealed block. */
  readonly fetch: (base: BlockId, keys: StateKeys) => Promise<StateValues>;
  readonly engine: (rules: Rules) => Engine;
  readonly codes: { get(hash: Hash): Uint8Array | undefined; set(hash: Hash, code: Uint8Array): unknown };
  readonly isNative: (address: Address) => boolean;
}

/** Runs works one after another, each on the outcome of another, and keeps the base's values warm from block to block. */
export interface Runner {
  /** `isExecutable: false` only decodes: the block's rules are not known. */
  run(work: Work, rules: Rules, isExecutable?: boolean): Promise<Execution>;
  rebase(base: BlockId, through: number | undefined): void;
}

/** A work that was run: what the next one starts from. */
interface Ran {
  readonly id: number;
  /** Gone where the base has passed it. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly raws: readonly Uint8Array[];
  readonly encodedReceipts: readonly Uint8Array[];
  readonly bloom: Uint8Array;
  readonly gasUsed: bigint;
  /** Undefined where its state is not known: nothing after it can be run. */
  readonly layer: Layer | undefined;
}

/** Values are counted as often as they were set; then all are fetched anew. */
const MAX_KNOWN_VALUES = 2_000_000;
/** What differs between the message and what came of running it. */
const compare = (work: Work, ran: Pick<Ran, "gasUsed" | "bloom" | "encodedReceipts">): Unproven | undefined => {
  if (ran.gasUsed !== work.told.gasUsed) return "gas";
  if (formatData(ran.bloom) !== work.told.logsBloom) return "bloom";
  return orderedTrieRoot(ran.encodedReceipts) === work.told.receiptsRoot ? undefined : "receiptsRoot";
};

const failureOf = (error: unknown): Unproven => {
  if (error instanceof NativeContract) return "unexecutable";
  return error instanceof TransactionError ? "rejected" : "failed";
};

export const createRunner = (options: RunnerOptions, firstBase: BlockId): Runner => {
  const { fetch, engine, codes, isNative } = options;
  const fresh = (): KnownState => createKnownState({ codes, isNative });
  let base = firstBase;
  let known = fresh();
  const works = new Map<number, Ran>();

  /** Works up to this one are part of the base. */
  let passedThrough = 0;

  /** From that work down to the base. Throws where one of them is unknown: this thread may have replaced another. */
  const lineage = (from: number | undefined): readonly Ran[] => {
    const line: Ran[] = [];
    for (let id = from; id !== undefined && id > passedThrough; id = line.at(-1)?.before) {
      const ran = works.get(id);
      if (!ran) throw new Error("what this work starts from was not run here");
      line.push(ran);
    }
    return line;
  };

  /** Newest first; undefined where the state of one of them is not known. */
  const layersOf = (line: readonly Ran[]): readonly Layer[] | undefined => {
    const layers = line.flatMap(({ layer }) => layer ?? []);
    return layers.length === line.length ? layers : undefined;
  };

  /** Hashes of blocks that are not sealed here yet: each is said by the block that follows it. */
  const ancestorsOf = (environment: PendingEnvironment, line: readonly Ran[]): ReadonlyMap<bigint, Hash> =>
    new Map(
      [environment, ...line.map((ran) => ran.environment)].map(({ number, parentHash }) => [number - 1n, parentHash]),
    );

  const remember = (changes: StateChanges): Layer => {
    for (const { account, code } of changes.values()) if (account && code) codes.set(account.codeHash, code);
    return toLayer(changes);
  };

  const execute = async (
    work: Work,
    rules: Rules,
    layers: readonly Layer[],
    line: readonly Ran[],
    prepared: readonly Prepared[],
  ) => {
    const ancestors = ancestorsOf(work.environment, line);
    const at = base;
    const gasUsed = work.index === 0 ? 0n : (line[0]?.gasUsed ?? 0n);
    if (work.index === 0) known.add(overwritten(work.environment));
    const { result } = await settle(
      known,
      (keys) => fetch(at, keys),
      async (reader) => {
        const state = new StateOverlay(layered(reader, layers));
        const block = blockOf(work.environment, ancestors, reader);
        if (work.index === 0) {
          const { parentHash, parentBeaconBlockRoot } = work.environment;
          await beginBlock(engine(rules), state, block, parentHash, parentBeaconBlockRoot);
        }
        const executed = await executeTransactions({
          engine: engine(rules),
          state,
          block,
          transactions: prepared,
          gasUsed,
        });
        return {
          receipts: executed.map(({ receipt }) => receipt),
          extras: executed.map(({ extra }) => extra),
          changes: state.changes(),
        };
      },
    );
    return result;
  };

  const keep = (
    work: Work,
    before: Ran | undefined,
    decoded: readonly Decoded[],
    receipts: readonly Receipt[],
  ): Ran => {
    const earlier = work.index === 0 ? undefined : before;
    const bloom = Uint8Array.from(earlier?.bloom ?? createBloom());
    for (const { logsBloom } of receipts) orBloom(bloom, logsBloom);
    return {
      id: work.id,
      before: work.before,
      environment: work.environment,
      raws: [...(earlier?.raws ?? []), ...decoded.map(({ raw }) => raw)],
      encodedReceipts: [...(earlier?.encodedReceipts ?? []), ...receipts.map(encodeReceipt)],
      bloom,
      gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? earlier?.gasUsed ?? 0n,
      layer: undefined,
    };
  };

  const run = async (work: Work, rules: Rules, isExecutable = true): Promise<Execution> => {
    const line = lineage(work.before);
    const layers = layersOf(line);
    const decoded = work.transactions.map((raw) => decodeTransaction(parseData(raw), rules.chainId));
    const prepared = decoded.flatMap((each) => each.prepared ?? []);
    let ran = keep(work, line[0], decoded, []);
    let unproven = decoded.find((each) => each.unproven)?.unproven;
    let outcome: Execution["outcome"];
    if (!layers || work.hasPostExec || !isExecutable) unproven ??= "unexecutable";
    if (layers && !unproven) {
      try {
        const ended = await execute(work, rules, layers, line, prepared);
        const complete = keep(work, line[0], decoded, ended.receipts);
        unproven = compare(work, complete);
        if (!unproven) {
          ran = { ...complete, layer: remember(ended.changes) };
          outcome = ended;
        }
      } catch (error) {
        unproven = failureOf(error);
      }
    }
    works.set(work.id, ran);
    return {
      transactions: decoded.map(({ told }) => told),
      transactionsRoot: orderedTrieRoot(ran.raws),
      outcome,
      unproven,
    };
  };

  /** An account that was there and was made anew: slots may be known with values that no longer hold. */
  const isRemade = ([address, { written }]: readonly [Address, LayerEntry]): boolean => {
    if (!written.isCleared) return false;
    const missing = createMissingState();
    return known.reader(missing).account(address) !== undefined && missing.count === 0;
  };

  /** The base's values as they are after what was written above it. */
  const advance = (layers: readonly Layer[]): void => {
    const written = [...collapse(layers.toReversed())];
    if (known.size > MAX_KNOWN_VALUES || written.some(isRemade)) known = fresh();
    known.add({
      accounts: written.map(([address, entry]) => [address, entry.written.account]),
      codes: [],
      slots: written.flatMap(([address, { slots }]) =>
        [...slots].map(([slot, value]) => [address, slot, value] as const),
      ),
      blockHashes: [],
    });
  };

  return {
    run,
    rebase: (next, through) => {
      const isKnown = through !== undefined && works.has(through);
      const layers = isKnown ? layersOf(lineage(through)) : undefined;
      if (layers) advance(layers);
      else known = fresh();
      base = next;
      passedThrough = through ?? passedThrough;
      for (const id of works.keys()) if (through === undefined || id <= through) works.delete(id);
    },
  };
};

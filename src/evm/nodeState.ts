import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { AccountState, StateKeys, StateSource, StateValues } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { createPrefetch, type PrefetchHint } from "./prefetch.ts";
import {
  accountCalls,
  blockHashCall,
  type FoundAccount,
  parseAccount,
  parseBlockHash,
  parseSlot,
  slotCall,
  type TracedAccount,
} from "./stateCalls.ts";

/** Several reads at once, at one block: one outcome for each, in order; a JSON value, or an Error. */
export type StateFetch = (calls: readonly Call[], block: BlockId) => Promise<readonly unknown[]>;

export interface NodeStateOptions {
  readonly fetch: StateFetch;
  /** Bytes of values kept at most; codes have as much again. */
  readonly maxBytes: number;
  /** Hashes that are known without asking. */
  readonly hashOf?: (number: bigint) => Hash | undefined;
  /** Told how many values each batch asked for. */
  readonly onFetch?: (values: number) => void;
}

/** State at sealed blocks, from nodes. Values are kept by the block's hash, codes by their own. */
export interface NodeState {
  /** `wish`: calls that are about to run there; nodes that can are asked ahead what they will read. */
  at(block: BlockId, wish?: PrefetchHint): StateSource;
}

/** What is kept under a key, with its weight: an account, a slot, or a hash. */
type Kept = { readonly value: AccountState | Uint8Array | Hash | undefined };

const VALUE_BYTES = 200;
const MAX_BLOCKS = 10_000;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

export const createNodeState = (options: NodeStateOptions): NodeState => {
  const { fetch, maxBytes, hashOf, onFetch } = options;
  const kept = new LRUCache<string, Kept>({ maxSize: maxBytes, sizeCalculation: () => VALUE_BYTES });
  const codes = new LRUCache<Hash, Uint8Array>({
    maxSize: maxBytes,
    sizeCalculation: (code) => code.length + VALUE_BYTES,
  });
  const numbers = new LRUCache<Hash, bigint>({ max: MAX_BLOCKS });
  const inFlight = new Map<string, Promise<void>>();
  const planAhead = createPrefetch();

  const keepAccount = (block: Hash, address: Address, { account, code }: FoundAccount): void => {
    if (account !== undefined && code.length > 0) codes.set(account.codeHash, code);
    kept.set(accountKey(block, address), { value: account });
  };
  const keepSlot = (block: Hash, address: Address, slot: Hash, value: Uint8Array): void => {
    kept.set(slotKey(block, address, slot), { value });
  };

  /** One batch for everything that is neither known nor asked for already. Returns what else came, being foreseen. */
  const bring = async (block: Hash, keys: StateKeys, wish: PrefetchHint | undefined): Promise<StateKeys> => {
    const questions = questionsFor(block, keys).filter(({ key }) => !kept.has(key));
    const shared = questions.flatMap(({ key }) => inFlight.get(key) ?? []);
    const own = questions.filter(({ key }) => !inFlight.has(key));
    let foreseen = NO_KEYS;
    if (own.length > 0) {
      const asked = ask(block, own, wish);
      const settled = asked.then(
        () => undefined,
        () => undefined,
      );
      for (const { key } of own) inFlight.set(key, settled);
      try {
        foreseen = await asked;
      } finally {
        for (const { key } of own) inFlight.delete(key);
      }
    }
    await Promise.all(shared);
    return foreseen;
  };

  const ask = async (
    block: Hash,
    questions: readonly KeyQuestion[],
    wish: PrefetchHint | undefined,
  ): Promise<StateKeys> => {
    const plan = wish === undefined ? undefined : planAhead(block, wish);
    const calls = [...questions.flatMap((question) => question.calls), ...(plan?.calls ?? [])];
    onFetch?.(questions.length);
    const outcomes = await fetch(calls, { hash: block, number: numbers.get(block) ?? 0n });
    let at = 0;
    for (const { calls: own, keep } of questions) {
      keep(outcomes.slice(at, at + own.length));
      at += own.length;
    }
    if (plan === undefined) return NO_KEYS;
    const { traced, listed } = plan.read(outcomes.slice(at));
    if (traced.some((account) => contradicts(block, account))) return NO_KEYS;
    for (const account of traced) {
      keepAccount(block, account.address, account);
      for (const [slot, value] of account.slots) keepSlot(block, account.address, slot, value);
    }
    if (listed.accounts.length + listed.slots.length > 0) await bring(block, listed, undefined);
    return {
      accounts: [...traced.map(({ address }) => address), ...listed.accounts],
      slots: [
        ...traced.flatMap(({ address, slots }) => slots.map(([slot]) => [address, slot] as const)),
        ...listed.slots,
      ],
      blockHashes: [],
    };
  };

  /** A tracer is believed only where it agrees with what was read itself, as at least the sender always is. */
  const contradicts = (block: Hash, { address, account, slots }: TracedAccount): boolean => {
    const own = kept.get(accountKey(block, address));
    if (own !== undefined && !isDeepStrictEqual(own.value, account)) return true;
    return slots.some(([slot, value]) => {
      const ownSlot = kept.get(slotKey(block, address, slot));
      return ownSlot !== undefined && !isDeepStrictEqual(ownSlot.value, value);
    });
  };

  const questionsFor = (block: Hash, keys: StateKeys): KeyQuestion[] => [
    ...keys.accounts.map((address) => ({
      key: accountKey(block, address),
      calls: accountCalls(block, address),
      keep: (outcomes: readonly unknown[]) => keepAccount(block, address, parseAccount(outcomes.map(orThrow))),
    })),
    ...keys.slots.map(([address, slot]) => ({
      key: slotKey(block, address, slot),
      calls: [slotCall(block, address, slot)],
      keep: ([outcome]: readonly unknown[]) => keepSlot(block, address, slot, parseSlot(orThrow(outcome))),
    })),
    ...keys.blockHashes.map((number) => ({
      key: hashKey(block, number),
      calls: [blockHashCall(number)],
      keep: ([outcome]: readonly unknown[]) => {
        kept.set(hashKey(block, number), { value: parseBlockHash(orThrow(outcome)) });
      },
    })),
  ];

  const collect = (block: Hash, keys: StateKeys): StateValues | undefined => {
    const accounts: [Address, AccountState | undefined][] = [];
    const found = new Map<Hash, Uint8Array>();
    for (const address of keys.accounts) {
      const entry = kept.get(accountKey(block, address));
      if (entry === undefined) return undefined;
      const account = entry.value as AccountState | undefined;
      accounts.push([address, account]);
      const code = account === undefined ? undefined : codes.get(account.codeHash);
      if (account !== undefined && code !== undefined) found.set(account.codeHash, code);
    }
    const slots: [Address, Hash, Uint8Array][] = [];
    for (const [address, slot] of keys.slots) {
      const entry = kept.get(slotKey(block, address, slot));
      if (entry === undefined) return undefined;
      slots.push([address, slot, entry.value as Uint8Array]);
    }
    const blockHashes: [bigint, Hash][] = [];
    for (const number of keys.blockHashes) {
      const hash = hashOf?.(number) ?? (kept.get(hashKey(block, number))?.value as Hash | undefined);
      if (hash === undefined) return undefined;
      blockHashes.push([number, hash]);
    }
    return { accounts, codes: [...found], slots, blockHashes };
  };

  const read = async (block: Hash, keys: StateKeys, wish: PrefetchHint | undefined): Promise<StateValues> => {
    const asked = { ...keys, blockHashes: keys.blockHashes.filter((number) => hashOf?.(number) === undefined) };
    const foreseen = await bring(block, asked, wish);
    // All at once: a run on half of it would guess the rest, and ask for what its guesses led to.
    const values = collect(block, {
      ...keys,
      accounts: [...new Set([...keys.accounts, ...foreseen.accounts])],
      slots: [...keys.slots, ...foreseen.slots],
    });
    if (values === undefined) throw new Error("the state cache is too small for one round");
    return values;
  };

  return {
    at: ({ number, hash }, wish) => {
      numbers.set(hash, number);
      let open = wish;
      return {
        id: hash,
        read: (keys) => {
          const first = open;
          open = undefined;
          return read(hash, keys, first);
        },
      };
    },
  };
};

interface KeyQuestion {
  readonly key: string;
  readonly calls: readonly Call[];
  readonly keep: (outcomes: readonly unknown[]) => void;
}

const accountKey = (block: Hash, address: Address) => `${block}${address}`;
const slotKey = (block: Hash, address: Address, slot: Hash) => `${block}${address}${slot}`;
const hashKey = (block: Hash, number: bigint) => `${block}#${number}`;

const orThrow = (outcome: unknown): unknown => {
  if (outcome instanceof Error) throw outcome;
  return outcome;
};

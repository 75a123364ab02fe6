import type { UnitsOf } from "../../access/providerUnits.ts";
import { type Context, ownContext } from "../../core/context.ts";
import { type BlockId, type CurrentHeads, canonicalHeader } from "../../core/heads.ts";
import { isAborted } from "../../core/lazySignal.ts";
import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { parsedResult, type RpcRequest, type RpcResponse, type RpcSource } from "../../core/rpcSource.ts";
import { type Address, formatQuantity, formatWord, type Hash, isHash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { isFields } from "../../json/jsonBytes.ts";
import { createCall } from "../../jsonrpc/call.ts";
import { SharedTask } from "../../limits/sharedTask.ts";
import { type ProofValues, readProvenAccount } from "../../verification/provenAccount.ts";
import type { StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../stateKey.ts";

export interface ProofReaderOptions {
  /** Verifies each response by the state root of its block. */
  readonly reads: RpcSource;
  readonly heads: CurrentHeads;
  /** `state.prove`. */
  readonly isAllowed: boolean;
  readonly unitsOf: UnitsOf;
  /** Of one read of forebay itself. */
  readonly timeoutMs: number;
  /** Ends these reads. */
  readonly signal: AbortSignal;
  readonly nowMs?: () => number;
}

/** The values of an account and of some of its slots, which follow from the state root of a block. */
export interface ProvenValues {
  /** 64 digits of hex, of a code the hash. */
  readonly values: readonly (readonly [StateKey, string])[];
  /** Of the node. */
  readonly response: RpcResponse;
}

const METHOD = "eth_getProof";
/** Clients and providers allow 1,000 and more. A response has some 1.8 MB, which a thread verifies, and the main thread parses. */
const MAX_SLOTS = 250;
/** The slots of one call after a node has refused more. */
const FEW_SLOTS = 100;
/** Without a proof for that many reads in a row, none is requested for a time. */
const MAX_FAILURES = 8;
const PAUSE_MS = 600_000;

/** The errors of nodes that have no proofs. */
const UNSUPPORTED: ReadonlySet<NodeErrorKind> = new Set(["unsupportedMethod", "unauthorized", "billing"]);

/** The errors of nodes that may answer a smaller call. */
const REFUSED: ReadonlySet<NodeErrorKind> = new Set(["invalidParams", "tooLarge", "other"]);

const requestOf = (address: Address, slots: readonly Hash[], block: BlockId): RpcRequest => ({
  ...createCall(METHOD, [address, slots, formatQuantity(block.number)]),
  retention: "never",
  canonicalParams: JSON.stringify([METHOD, [address, slots, null]]),
  block,
  byHash: createCall(METHOD, [address, slots, { blockHash: block.hash }]),
});

/** Returns the values of an account and of these slots: 64 digits of hex, of a code the hash. */
export const provenValuesOf = (
  account: ProofValues,
  address: Address,
  slots: readonly Hash[],
): ProvenValues["values"] => {
  const digits = (value: bigint): string => formatWord(value).slice(2);
  const keyOf = (field: StateKey["field"], slot?: Hash): StateKey => ({ field, address, slot });
  return [
    [keyOf("balance"), digits(account.balance)],
    [keyOf("nonce"), digits(account.nonce)],
    [keyOf("code"), account.codeHash === EMPTY_CODE_HASH ? ZERO_VALUE : account.codeHash.slice(2)],
    ...slots.map((slot) => [keyOf("slot", slot), digits(account.slot(slot))] as const),
  ];
};

/** Keys of one account. */
interface Part {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** Returns the calls that read all values of these keys. */
const partsOf = (keys: readonly StateKey[], maxSlots: number): readonly Part[] =>
  [...Map.groupBy(keys, ({ address }) => address)].flatMap(([address, own]) => {
    const slots = [...new Set(own.flatMap(({ slot }) => slot ?? []))];
    return Array.from({ length: Math.max(1, Math.ceil(slots.length / maxSlots)) }, (_, index) => ({
      address,
      slots: slots.slice(index * maxSlots, (index + 1) * maxSlots),
    }));
  });

/**
 * Reads values that are not known by one eth_getProof of each account (EIP-1186). Later blocks carry them with their access lists
 * (EIP-7928), so that this costs as much as a read without a proof.
 */
export class ProofReader {
  readonly #options: ProofReaderOptions;
  readonly #nowMs: () => number;
  readonly #inFlight = new Map<string, SharedTask<ProvenValues | undefined>>();
  #maxSlots = MAX_SLOTS;
  #failures = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: ProofReaderOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Whether the first sight of a value after this block comes by proof: later blocks have lists that carry it. */
  isWanted(block: BlockId): boolean {
    const { isAllowed, heads } = this.#options;
    if (!isAllowed || this.#nowMs() < this.#pausedUntilMs) {
      return false;
    }
    return isHash(canonicalHeader(heads.current(), block)?.blockAccessListHash);
  }

  /** Returns the units of the proofs of these keys. */
  unitsFor(keys: readonly StateKey[]): number {
    return partsOf(keys, this.#maxSlots).length * this.#options.unitsOf(METHOD);
  }

  /** Reads the values of keys. Resolves with those that are proven. Never rejects. */
  async read(keys: readonly StateKey[], block: BlockId, context: Context): Promise<readonly ProvenValues[]> {
    const maxSlots = this.#maxSlots;
    // A caller that leaves, or whose deadline passes, gets nothing.
    const readPart = (part: Part) => this.#readOnce(part, block, context).catch(() => undefined);
    const read = await Promise.all(partsOf(keys, maxSlots).map(readPart));
    return this.#maxSlots < maxSlots ? this.read(keys, block, context) : read.flatMap((values) => values ?? []);
  }

  /** Reads for forebay itself, as `read` does. */
  async readOwn(keys: readonly StateKey[], block: BlockId): Promise<readonly ProvenValues[]> {
    const { heads, timeoutMs, signal } = this.#options;
    const current = heads.current();
    const deadlineMs = performance.now() + timeoutMs;
    return current === undefined
      ? []
      : this.read(keys, block, ownContext("forebay", { heads: current }, { signal, deadlineMs }));
  }

  #readOnce(part: Part, block: BlockId, context: Context): Promise<ProvenValues | undefined> {
    const name = `${block.hash}${part.address}${part.slots.join("")}`;
    const running = this.#inFlight.get(name);
    if (running !== undefined) {
      return running.join(context);
    }
    const own = new SharedTask<ProvenValues | undefined>(context, name, this.#inFlight);
    return own.start(this.#read(part, block, context.with({ ending: own.ending })));
  }

  async #read({ address, slots }: Part, block: BlockId, context: Context): Promise<ProvenValues | undefined> {
    try {
      const response = await this.#options.reads.request(requestOf(address, slots, block), context);
      const fields = parsedResult(response);
      if (response.grade !== "proven" || response.block?.hash !== block.hash || !isFields(fields)) {
        this.#count(false);
        return undefined;
      }
      this.#count(true);
      return { values: provenValuesOf(readProvenAccount(fields), address, slots), response };
    } catch (error) {
      if (slots.length > FEW_SLOTS && error instanceof NodeError && REFUSED.has(error.kind)) {
        this.#maxSlots = FEW_SLOTS;
      } else if (!isAborted(context)) {
        this.#count(false, error instanceof NodeError && UNSUPPORTED.has(error.kind));
      }
      return undefined;
    }
  }

  #count(isProven: boolean, isUnsupported = false): void {
    this.#failures = isProven ? 0 : this.#failures + 1;
    if (isUnsupported || this.#failures >= MAX_FAILURES) {
      this.#failures = 0;
      this.#pausedUntilMs = this.#nowMs() + PAUSE_MS;
    }
  }
}

import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { type CacheStatus, isFreshFromNode, type RpcResponse } from "../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Audit } from "./audit.ts";
import type { StateCost } from "./cost.ts";
import type { ProofReader, ProvenValues } from "./fetch/proofReader.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { StateField, StateKey } from "./stateKey.ts";
import { codeDigits, ZERO_VALUE } from "./stateKey.ts";
import { StateLookups } from "./stateLookups.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSetWaits } from "./writeSetWaits.ts";

/** The methods that read one value of the state. */
export const STATE_METHODS = ["eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt", "eth_getCode"] as const;
export type StateMethod = (typeof STATE_METHODS)[number];

export interface StateReadsOptions {
  readonly values: ValueStore;
  readonly follower: StateFollower;
  readonly cost: Pick<StateCost, "onRead">;
  readonly waits: WriteSetWaits;
  readonly audit: Pick<Audit, "onLocalRead">;
  /** Undefined: no value is read by proof. */
  readonly proofs?: Pick<ProofReader, "isWanted" | "read"> | undefined;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** One read at a block of the view. */
export interface StateRead {
  readonly method: StateMethod;
  readonly key: StateKey;
  readonly block: BlockId;
  readonly context: Context;
}

type KnownResponse = RpcResponse & { readonly body: Uint8Array };

const HIT: CacheStatus = Object.freeze({ hit: "state" });

/** Answers reads of single values from the known state of the newest blocks. Nodes answer the others, and their values become known. */
export class StateReads {
  readonly #options: StateReadsOptions;
  readonly #lookups: StateLookups<StateMethod>;

  constructor(options: StateReadsOptions) {
    this.#options = options;
    this.#lookups = new StateLookups(options.chain, options.telemetry.metrics, STATE_METHODS);
  }

  /** Answers a read. `ask` sends it to a node. A known value is returned without a promise. */
  request(read: StateRead, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { key, block, context } = read;
    if (this.#ageOf(read) >= this.#options.values.maxReadable) {
      return ask();
    }
    if (context.bypassCache) {
      return this.#addResponse({ key }, ask);
    }
    const known = this.#find(key, block);
    if (known !== undefined) {
      return this.#answer(read, known);
    }
    return this.#waitOrAsk(read, ask);
  }

  /** Returns a known value as the answer of a read, if it is proven. Waits for the block's write set if only that is missing. */
  async findProven(read: StateRead): Promise<RpcResponse | undefined> {
    const { values, follower, waits } = this.#options;
    const { key, block, context } = read;
    if (context.bypassCache || context.noCache || this.#ageOf(read) >= values.maxReadable) {
      return undefined;
    }
    const find = (at: BlockId): KnownResponse | undefined => {
      const found = this.#find(key, at);
      return found?.grade === "proven" ? found : undefined;
    };
    const settled = follower.untilApplied(block);
    const mayHold = settled !== undefined && values.head !== undefined && find(values.head) !== undefined;
    const known = mayHold ? (await waits.find(settled, () => find(block))).found : find(block);
    this.#count(read, known !== undefined);
    return known;
  }

  /** Returns the function that lets the values of a proof, requested from now on, become known. */
  beginProof(): (values: ProvenValues["values"], block: BlockId) => void {
    const enter = this.#options.follower.beginRead();
    return (values, block) => enter({ values, grade: "proven" }, block);
  }

  #ageOf({ block, context }: StateRead): bigint {
    return context.view.heads.latest.number - block.number;
  }

  /** Waits for the block's write set if only that is missing: the value is known at the block before. */
  #waitOrAsk(read: StateRead, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { values, follower } = this.#options;
    const settled = follower.untilApplied(read.block);
    const { head } = values;
    if (settled !== undefined && head !== undefined && values.get(read.key, head) !== undefined) {
      return this.#wait(read, settled, ask);
    }
    return this.#ask(read, ask);
  }

  async #wait(read: StateRead, settled: Promise<void>, ask: () => Awaitable<RpcResponse>): Promise<RpcResponse> {
    const { found } = await this.#options.waits.find(settled, () => this.#find(read.key, read.block));
    return found === undefined ? this.#ask(read, ask) : this.#answer(read, found);
  }

  #answer(read: StateRead, known: KnownResponse): RpcResponse {
    this.#count(read, true);
    if (known.grade !== "proven") {
      this.#options.audit.onLocalRead(read.key);
    }
    return known;
  }

  #find(key: StateKey, block: BlockId): KnownResponse | undefined {
    const { values } = this.#options;
    const entry = values.readableEntry(key, block);
    const body = entry === 0 ? undefined : this.#formatValue(key.field, values.valueAt(entry));
    return body && { body, status: HIT, block, grade: values.gradeAt(entry, block) };
  }

  #formatValue(field: StateField, value: string): Uint8Array | undefined {
    if (field !== "code") {
      return formatStateBody(field, value);
    }
    const code = this.#options.values.code(value);
    return code && formatCodeBody(code);
  }

  #ask(read: StateRead, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { follower, proofs } = this.#options;
    this.#count(read, false);
    return follower.isFollowing && proofs?.isWanted(read.block) === true
      ? this.#prove(proofs, read, ask)
      : this.#addResponse(read, ask);
  }

  /** Answers by proof, and lets the values of the account become known. Without a proof, a node is asked for the value. */
  async #prove(
    proofs: Pick<ProofReader, "read">,
    read: StateRead,
    ask: () => Awaitable<RpcResponse>,
  ): Promise<RpcResponse> {
    const { key, block, context } = read;
    const enter = this.beginProof();
    const [proven] = await proofs.read([key], block, context);
    if (proven === undefined) {
      return this.#addResponse(read, ask);
    }
    enter(proven.values, block);
    return this.#answerProven(read, proven, ask);
  }

  /** Of a code, the proof has the hash alone. */
  async #answerProven(
    read: StateRead,
    { values, response }: ProvenValues,
    ask: () => Awaitable<RpcResponse>,
  ): Promise<RpcResponse> {
    const { key, block } = read;
    const { status, node } = response;
    const value = values.find(([{ field, slot }]) => field === key.field && slot === key.slot)?.[1];
    if (value === undefined) {
      return this.#addResponse(read, ask);
    }
    const body = this.#formatValue(key.field, value);
    if (body !== undefined) {
      return { body, status, ...(node !== undefined && { node }), block, grade: "proven" };
    }
    const stated = await this.#addResponse(read, ask);
    const code = this.#formatValue(key.field, value);
    return code === undefined ? stated : { ...stated, body: code, block, grade: "proven" };
  }

  #addResponse({ key }: Pick<StateRead, "key">, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { follower } = this.#options;
    const enter = follower.beginRead();
    return whenKnown(ask(), (response) => {
      const { body, block, node, isAgreed } = response;
      const isFresh = isFreshFromNode(response) && body instanceof Uint8Array;
      const parsed = isFresh && follower.isFollowing ? parseStateBody(key.field, body) : undefined;
      if (parsed !== undefined && block !== undefined) {
        const value = typeof parsed === "string" ? parsed : codeDigits(parsed);
        const codes = typeof parsed === "string" ? [] : [[value, parsed] as const];
        enter({ values: [[key, value]], codes, node, isAgreed }, block);
      }
      return response;
    });
  }

  #count({ method, key, block, context }: StateRead, isHit: boolean): void {
    const { cost } = this.#options;
    cost.onRead({ method, key, block: block.number, isHit, client: context.caller.clientId });
    this.#lookups.count(method, isHit);
  }
}

/** A JSON string of hex. Nodes may shorten or pad a value of up to 32 bytes. */
const VALUE = /^"0x([0-9a-fA-F]{1,64})"$/;
const CODE = /^"0x((?:[0-9a-fA-F]{2})*)"$/;
const MAX_VALUE_LENGTH = '"0x"'.length + ZERO_VALUE.length;

const textOf = (body: Uint8Array): string =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");

/** Returns the value of a node's response: 64 digits of hex, or a code. Undefined: it has another form. */
const parseStateBody = (field: StateField, body: Uint8Array): string | Uint8Array | undefined => {
  if (field === "code") {
    const digits = CODE.exec(textOf(body))?.[1];
    return digits === undefined ? undefined : new Uint8Array(Buffer.from(digits, "hex"));
  }
  const digits = body.byteLength > MAX_VALUE_LENGTH ? undefined : VALUE.exec(textOf(body))?.[1];
  return digits?.toLowerCase().padStart(ZERO_VALUE.length, "0");
};

/** Returns the position of the first digit of a minimal quantity. Zero has one digit. */
const firstDigit = (value: string): number => {
  let start = 0;
  while (start < value.length - 1 && value.charCodeAt(start) === 48) {
    start++;
  }
  return start;
};

/** Formats a value of 64 digits: a quantity, of a slot 32 bytes. */
const formatStateBody = (field: Exclude<StateField, "code">, value: string): Uint8Array =>
  Buffer.from(`"0x${field === "slot" ? value : value.slice(firstDigit(value))}"`, "latin1");

const formatCodeBody = (code: Uint8Array): Uint8Array =>
  Buffer.from(`"0x${Buffer.from(code.buffer, code.byteOffset, code.byteLength).toString("hex")}"`, "latin1");

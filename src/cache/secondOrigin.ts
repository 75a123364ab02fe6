import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { isAborted } from "../core/lazySignal.ts";
import { NodeError, UnverifiedError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import { type EarlierValue, isNull, type RpcRequest, type RpcResponse, type RpcSource } from "../core/rpcSource.ts";
import { asText } from "../json/jsonBytes.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { VerifiedNode } from "../verification/checker.ts";
import { findReceipt, isSameReceipt } from "../verification/singleReceipt.ts";
import type { Verifier } from "../verification/verifier.ts";
import {
  type AgreeingNode,
  agreeOn,
  type Comparison,
  hasSeveralOrigins,
  type NodeOutcomes,
  SECOND_MS,
} from "./agreement.ts";
import type { Disagreements } from "./disagreements.ts";
import type { NegativeCache } from "./negativeCache.ts";
import { isSameResult, needsAgreement, variesByNode } from "./sameResult.ts";

interface OriginNode extends VerifiedNode, AgreeingNode {
  readonly priority: number;
}

export interface SecondOriginOptions {
  /** The nodes of the chain, in the order of the configuration. */
  readonly nodes: readonly OriginNode[];
  /** Origins that must have stated a value of the state or the result of a call. */
  readonly agree: 1 | 2;
  readonly verifier: Pick<Verifier, "level" | "verify" | "hasReceipts">;
  readonly negativeCache: Pick<NegativeCache, "blockOf">;
  readonly disagreements: Pick<Disagreements, "report">;
  /** Reads a block's verified receipts through the cache. Returns undefined if no node has them. */
  receiptsOf(block: BlockId, context: Context): Promise<Uint8Array | undefined>;
}

const RECEIPT = "eth_getTransactionReceipt";
const MAX_ABSENT = 10_000;
/** After this number of blocks in a row whose receipts no node returned, other origins alone confirm receipts for a time. */
const MAX_FAILED_BLOCKS = 3;
const WITHOUT_BLOCKS_MS = 60_000;

/** One request, with the context that all its parts share. */
interface Read {
  readonly request: RpcRequest;
  readonly context: Context;
}

/** A response that can be compared: it is in memory, and not of another branch. */
type Comparable = RpcResponse & { readonly body: Uint8Array };

/** A response that a node stated. Of a receipt, `block` is the block that it names. */
interface Statement {
  readonly response: Comparable;
  readonly node: OriginNode;
}

const isComparable = (response: RpcResponse): response is Comparable =>
  response.body instanceof Uint8Array && response.verified !== false;

const withinSecondMs = (context: Context): Context =>
  context.with({ deadlineMs: Math.min(context.deadlineMs, performance.now() + SECOND_MS) });

const unagreed = (response: RpcResponse): RpcResponse => ({ ...response, isAgreed: false });

/** The header of the block is known, or the block is newer than the view. Then its receipts cost one or two calls. */
const isNew = ({ number }: BlockId, heads: Heads): boolean =>
  number > heads.latest.number || heads.header(number) !== undefined;

const hasBlockHash = (param: unknown): boolean => typeof param === "object" && param !== null && "blockHash" in param;

/** A read at a tag, such as `pending`, depends on the node. */
const isOfBlock = ({ block, params }: RpcRequest): boolean => block !== undefined || params.some(hasBlockHash);

/** Whether two responses mean the same. Of receipts, fields outside the protocol may differ. */
const isSame = ({ method }: RpcRequest, one: Comparable, other: Comparable): boolean =>
  method === RECEIPT ? isSameReceipt(one.body, other.body) : isSameResult(method, one.body, other.body);

class SecondOrigin implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: SecondOriginOptions;
  /** The hashes for which two origins have returned `null` at a head. */
  readonly #absent = new Set<string>();
  #absentAt: string | undefined;
  /** Blocks in a row whose receipts no node returned. */
  #failedBlocks = 0;
  #failedMs = 0;

  constructor(source: RpcSource, options: SecondOriginOptions) {
    this.#source = source;
    this.#options = options;
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    const read = { request, context };
    const { agree, verifier } = this.#options;
    if (agree === 2 && needsAgreement(request.method)) {
      return isOfBlock(request) ? this.#agree(read) : this.#source.request(request, context);
    }
    if (request.earlier !== undefined) {
      return this.#renew(read, request.earlier);
    }
    const isByTransaction = RETENTION[request.retention].cachesNull && verifier.level === "full";
    return isByTransaction ? this.#corroborate(read) : this.#source.request(request, context);
  }

  /** Reads a value of the state, or the result of a call, from two origins. */
  async #agree(read: Read): Promise<RpcResponse> {
    const outcome = await this.#sendFirst(read);
    const first = this.#outcomesOf(outcome);
    const [agreed] = first === undefined ? [] : await agreeOn([read.request], first, this.#comparisonFor(read));
    const response = agreed?.outcome ?? outcome;
    if (response instanceof Error) {
      throw response;
    }
    return { ...response, isAgreed: agreed?.isAgreed === true };
  }

  async #sendFirst({ request, context }: Read): Promise<RpcResponse | NodeError> {
    try {
      return await this.#source.request(request, context);
    } catch (error) {
      if (error instanceof NodeError) {
        return error;
      }
      throw error;
    }
  }

  #comparisonFor(read: Read): Comparison<RpcRequest, Comparable> {
    const { disagreements } = this.#options;
    return {
      ask: async (_, excludedOrigins) => this.#outcomesOf(await this.#askOther(read, excludedOrigins)),
      isCompared: () => true,
      isSame,
      textOf: ({ body }) => asText(body),
      // A read by number is not of one block, unless that block cannot change.
      isOfOneBlock: ({ retention }) => RETENTION[retention].isCached,
      report: ({ byHash }, statements) => disagreements.report(byHash ?? read.request, statements),
    };
  }

  #outcomesOf(outcome: RpcResponse | NodeError | undefined): NodeOutcomes<Comparable> | undefined {
    if (outcome instanceof NodeError) {
      const node = this.#nodeOf(outcome.node);
      return node && { node, outcomes: [outcome] };
    }
    const statement = this.#statementOf(outcome);
    return statement && { node: statement.node, outcomes: [statement.response] };
  }

  /**
   * Asks another origin for an expired value of the cache. If it states another one, a third origin decides, or else the
   * preferred one of the two. A value that the other origin lacks is kept: its node may have pruned it.
   */
  async #renew(read: Read, earlier: EarlierValue): Promise<RpcResponse> {
    const { request, context } = read;
    const avoid = (origin: string) => this.#source.request({ ...request, avoidedOrigins: [origin] }, context);
    const response = await avoid(earlier.source.origin);
    const second = this.#statementOf(response);
    const node = this.#options.nodes.find(({ origin }) => origin === earlier.source.origin);
    if (second === undefined || node === undefined || second.node.origin === node.origin) {
      return unagreed(response);
    }
    const { body, block } = earlier;
    const first = { node, response: { ...second.response, body, node: node.name, ...(block && { block }) } };
    if (isSame(request, first.response, second.response)) {
      return { ...response, isAgreed: true };
    }
    if (variesByNode(request.method) && !isNull(response)) {
      return unagreed(response);
    }
    const agreed = await this.#findMajority(read, first, second);
    if (agreed !== undefined) {
      return { ...agreed.response, isAgreed: true };
    }
    if (isNull(response)) {
      return unagreed(first.response);
    }
    // Nodes may choose a price, but have one state.
    if (needsAgreement(request.method)) {
      const statements = [first, second].map(({ node: { name }, response: { body: value } }) => ({
        node: name,
        value: asText(value),
      }));
      this.#options.disagreements.report(request, statements);
    }
    return unagreed(this.#preferred(first, second) === second ? response : await avoid(second.node.origin));
  }

  /** Checks a response by transaction hash: a receipt by those of its block, or by another origin, and a `null` by another origin. */
  async #corroborate(read: Read): Promise<RpcResponse> {
    const { request, context } = read;
    const known = request.method === RECEIPT ? await this.#findInBlock(read) : undefined;
    if (known !== undefined) {
      return known;
    }
    const response = await this.#source.request(request, context);
    const first = this.#statementOf(response);
    if (first === undefined) {
      return response;
    }
    if (!isNull(response)) {
      return request.method === RECEIPT ? this.#confirmReceipt(read, first) : response;
    }
    // The pool has asked other nodes for a transaction that is known to exist.
    return request.nullIsError === true ? response : this.#confirmNull(read, first);
  }

  /** Finds a receipt in those of its block, if forebay knows which block has the transaction. */
  async #findInBlock({ request, context }: Read): Promise<RpcResponse | undefined> {
    const { negativeCache, verifier } = this.#options;
    const hash = String(request.params[0]);
    const block = context.bypassCache ? undefined : negativeCache.blockOf(hash, context.view.heads);
    const receipts = block && this.#readsBlocks ? await this.#receiptsOf(block, context) : undefined;
    if (block === undefined || receipts === undefined || !verifier.hasReceipts(block.hash)) {
      return undefined;
    }
    const body = findReceipt(receipts, hash);
    return body && { body, block, status: { fwd: "miss" }, grade: "checked" };
  }

  /** Asks another origin: behind the URL of a node may be a machine that lags. Until the next head, its `null` is not asked again. */
  async #confirmNull(read: Read, first: Statement): Promise<RpcResponse> {
    const { request, context } = read;
    const { latest } = context.view.heads;
    const key = `${request.method} ${String(request.params[0]).toLowerCase()}`;
    const isKnown = this.#absentAt === latest.hash && this.#absent.has(key);
    const second = isKnown ? undefined : await this.#askOther(read, [first.node.origin]);
    if (second === undefined || second instanceof NodeError) {
      return first.response;
    }
    if (!isNull(second)) {
      const receipt = request.method === RECEIPT && second.block ? this.#statementOf(second) : undefined;
      // The hash of a transaction proves it.
      return receipt === undefined ? second : this.#decideReceipt(read, first, receipt);
    }
    if (this.#absentAt !== latest.hash || this.#absent.size >= MAX_ABSENT) {
      this.#absent.clear();
      this.#absentAt = latest.hash;
    }
    this.#absent.add(key);
    return first.response;
  }

  /** Compares a receipt with those of its block, or with that of another origin. */
  async #confirmReceipt(read: Read, first: Statement): Promise<RpcResponse> {
    const { response, node } = first;
    const { block } = response;
    // With known receipts of the block, the response was compared with them.
    if (block === undefined || this.#options.verifier.hasReceipts(block.hash)) {
      return response;
    }
    const isProvable = isNew(block, read.context.view.heads) && this.#readsBlocks;
    const proven = isProvable ? await this.#compareWithBlock(read, first) : undefined;
    if (proven !== undefined) {
      return proven;
    }
    const second = this.#statementOf(await this.#askOther(read, [node.origin]));
    // The other node may have pruned it.
    if (second === undefined || isNull(second.response)) {
      return unagreed(response);
    }
    return isSame(read.request, response, second.response) ? response : this.#decideReceipt(read, first, second);
  }

  /** Decides between two statements: by the receipts of a block, by a third origin, else by the preferred origin. */
  async #decideReceipt(read: Read, first: Statement, second: Statement): Promise<RpcResponse> {
    const proven = await this.#proveOneOf(read, first, second);
    if (proven !== undefined) {
      return proven;
    }
    const agreed = await this.#findMajority(read, first, second);
    if (agreed !== undefined) {
      return agreed.response;
    }
    const { response } = this.#preferred(first, second);
    return isNull(response) ? response : unagreed(response);
  }

  /** Of two blocks, receipts do not show which one is canonical. Neither do they for a `null`, if the block is old. */
  async #proveOneOf(read: Read, first: Statement, second: Statement): Promise<RpcResponse | undefined> {
    const [block, other] = [first.response.block, second.response.block];
    if (other === undefined) {
      return undefined;
    }
    if (!isNull(first.response)) {
      return block?.hash === other.hash ? this.#compareWithBlock(read, first) : undefined;
    }
    if (this.#options.verifier.hasReceipts(other.hash)) {
      return second.response;
    }
    return isNew(other, read.context.view.heads) ? this.#compareWithBlock(read, second) : undefined;
  }

  /** Compares a receipt with those of its block. Returns undefined if these prove nothing. */
  async #compareWithBlock(read: Read, { response, node }: Statement): Promise<RpcResponse | undefined> {
    const { verifier } = this.#options;
    const { request, context } = read;
    const { block, body } = response;
    if (block === undefined) {
      return undefined;
    }
    await this.#receiptsOf(block, context);
    if (!verifier.hasReceipts(block.hash)) {
      return undefined;
    }
    try {
      await verifier.verify({ node, call: request, request, context }, body);
      return response;
    } catch (error) {
      if (isAborted(context)) {
        throw error;
      }
      if (!(error instanceof UnverifiedError)) {
        return undefined;
      }
      node.recordWrongAnswer(error);
      // The next response is verified against the same receipts.
      return this.#source.request({ ...request, nullIsError: true }, context);
    }
  }

  /** False while no node seems to have receipts of blocks. Two origins that differ cause such a read nevertheless. */
  get #readsBlocks(): boolean {
    return this.#failedBlocks < MAX_FAILED_BLOCKS || performance.now() - this.#failedMs >= WITHOUT_BLOCKS_MS;
  }

  /** Reads a block's receipts. Returns undefined if no node has them in time. */
  async #receiptsOf(block: BlockId, context: Context): Promise<Uint8Array | undefined> {
    const receipts = await this.#readReceipts(block, context);
    this.#failedBlocks = receipts === undefined ? this.#failedBlocks + 1 : 0;
    this.#failedMs = performance.now();
    return receipts;
  }

  async #readReceipts(block: BlockId, context: Context): Promise<Uint8Array | undefined> {
    try {
      return await this.#options.receiptsOf(block, withinSecondMs(context));
    } catch (error) {
      if (isAborted(context)) {
        throw error;
      }
      return undefined;
    }
  }

  /** Asks a third origin. Returns the statement that it repeats. */
  async #findMajority(read: Read, first: Statement, second: Statement): Promise<Statement | undefined> {
    const third = this.#statementOf(await this.#askOther(read, [first.node.origin, second.node.origin]));
    return third && [second, first].find(({ response }) => isSame(read.request, response, third.response));
  }

  /** Returns the statement of the node in the better tier, or of the one that is configured first. */
  #preferred(first: Statement, second: Statement): Statement {
    const origins = [first.node.origin, second.node.origin];
    const ranked = this.#options.nodes.toSorted((one, other) => one.priority - other.priority);
    return ranked.find(({ origin }) => origins.includes(origin))?.origin === first.node.origin ? first : second;
  }

  /** Asks a node of none of the origins. Returns its response or its error; undefined if none can be asked, or responds in time. */
  async #askOther(
    { request, context }: Read,
    excludedOrigins: readonly string[],
  ): Promise<RpcResponse | NodeError | undefined> {
    if (!this.#options.nodes.some(({ origin, available }) => available && !excludedOrigins.includes(origin))) {
      return undefined;
    }
    try {
      return await this.#source.request({ ...request, excludedOrigins }, withinSecondMs(context));
    } catch (error) {
      if (isAborted(context)) {
        throw error;
      }
      return error instanceof NodeError ? error : undefined;
    }
  }

  #nodeOf(name: string | undefined): OriginNode | undefined {
    return this.#options.nodes.find((node) => node.name === name);
  }

  /** Returns undefined for what is no statement: an error, a stream, or a response of another branch. */
  #statementOf(outcome: RpcResponse | NodeError | undefined): Statement | undefined {
    const node = this.#nodeOf(outcome?.node);
    return outcome === undefined || outcome instanceof NodeError || node === undefined || !isComparable(outcome)
      ? undefined
      : { response: outcome, node };
  }
}

/**
 * Wraps a source so that nodes of several origins are compared. A second source confirms a receipt, and a `null` by transaction hash.
 * An expired value of the cache is confirmed, and with `agree` 2 each value of the state and result of a call.
 * `isAgreed` of the response tells the cache the outcome.
 */
export const secondOrigin = (source: RpcSource, options: SecondOriginOptions): RpcSource =>
  hasSeveralOrigins(options.nodes) ? new SecondOrigin(source, options) : source;

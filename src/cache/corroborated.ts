import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { isAborted } from "../core/lazySignal.ts";
import { NodeError, UnverifiedError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import { isNull, type RpcRequest, type RpcResponse, type RpcSource } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { findReceipt, isSameReceipt } from "../verification/singleReceipt.ts";
import type { Verifier } from "../verification/verifier.ts";
import type { NegativeCache } from "./negativeCache.ts";
import { hasSeveralOrigins, type OriginNode, OtherOrigins, type Read, withinSecondMs } from "./otherOrigins.ts";
import type { StatedValues } from "./statedValues.ts";

export interface CorroboratedOptions {
  readonly nodes: readonly OriginNode[];
  readonly verifier: Pick<Verifier, "level" | "verify" | "hasReceipts">;
  readonly stated: Pick<StatedValues, "preferred">;
  readonly negativeCache: Pick<NegativeCache, "blockOf">;
  /** Reads a block's verified receipts through the cache. Returns undefined if no node has them. */
  receiptsOf(block: BlockId, context: Context): Promise<Uint8Array | undefined>;
}

const RECEIPT = "eth_getTransactionReceipt";
const MAX_ABSENT = 10_000;
/** After this number of blocks in a row whose receipts no node returned, other origins alone confirm receipts for a time. */
const MAX_FAILED_BLOCKS = 3;
const WITHOUT_BLOCKS_MS = 60_000;

/** A response of a node: a receipt, or `null`. */
interface Statement {
  readonly response: RpcResponse;
  readonly node: OriginNode;
  readonly receipt: { readonly body: Uint8Array; readonly block: BlockId } | undefined;
}

const isSame = ({ receipt: one }: Statement, { receipt: other }: Statement): boolean =>
  one === undefined || other === undefined ? one === other : isSameReceipt(one.body, other.body);

/** The header of the block is known, or the block is newer than the view. Then its receipts cost one or two calls. */
const isNew = ({ number }: BlockId, heads: Heads): boolean =>
  number > heads.latest.number || heads.header(number) !== undefined;

const unconfirmed = ({ response }: Statement): RpcResponse => ({ ...response, isConfirmed: false });

/** Checks responses by transaction hash against a second source. */
class CorroboratedSource implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: CorroboratedOptions;
  readonly #others: OtherOrigins;
  /** The hashes for which two origins have returned `null` at a head. */
  readonly #absent = new Set<string>();
  #absentAt: string | undefined;
  /** Blocks in a row whose receipts no node returned. */
  #failedBlocks = 0;
  #failedMs = 0;

  constructor(source: RpcSource, options: CorroboratedOptions) {
    this.#source = source;
    this.#options = options;
    this.#others = new OtherOrigins(source, options.nodes);
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    const read = { request, context };
    if (!RETENTION[request.retention].cachesNull || this.#options.verifier.level !== "full") {
      return this.#source.request(request, context);
    }
    return request.avoidedOrigins === undefined ? this.#corroborate(read) : this.#restate(read);
  }

  async #corroborate(read: Read): Promise<RpcResponse> {
    const { request, context } = read;
    const known = request.method === RECEIPT ? await this.#findInBlock(read) : undefined;
    if (known !== undefined) {
      return known;
    }
    const first = await this.#source.request(request, context);
    if (!isNull(first)) {
      return this.#confirmReceipt(read, first);
    }
    // The pool has asked other nodes for a transaction that is known to exist.
    return request.nullIsError === true ? first : this.#confirmNull(read, first);
  }

  /** Requests a value whose life is over from another origin. The cache compares both. */
  async #restate({ request, context }: Read): Promise<RpcResponse> {
    const response = await this.#source.request(request, context);
    return request.method === RECEIPT && !isNull(response) ? { ...response, isConfirmed: false } : response;
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
    return body && { body, block, status: { fwd: "miss" }, proof: "checked" };
  }

  /** Asks another origin: behind the URL of a node may be a machine that lags. Until the next head, its `null` is not asked again. */
  async #confirmNull(read: Read, response: RpcResponse): Promise<RpcResponse> {
    const node = this.#others.nodeOf(response.node);
    const { latest } = read.context.view.heads;
    const key = `${read.request.method} ${String(read.request.params[0]).toLowerCase()}`;
    if (node === undefined || (this.#absentAt === latest.hash && this.#absent.has(key))) {
      return response;
    }
    const second = await this.#ask(read, [node.origin]);
    if (second === undefined) {
      return response;
    }
    if (!isNull(second)) {
      const statement = read.request.method === RECEIPT ? this.#statementOf(second) : undefined;
      return statement === undefined ? second : this.#decide(read, { response, node, receipt: undefined }, statement);
    }
    if (this.#absentAt !== latest.hash || this.#absent.size >= MAX_ABSENT) {
      this.#absent.clear();
      this.#absentAt = latest.hash;
    }
    this.#absent.add(key);
    return response;
  }

  /** Compares a receipt with those of its block, or with that of another origin. */
  async #confirmReceipt(read: Read, response: RpcResponse): Promise<RpcResponse> {
    const first = read.request.method === RECEIPT ? this.#statementOf(response) : undefined;
    // With known receipts of the block, the response was compared with them.
    if (first?.receipt === undefined || this.#options.verifier.hasReceipts(first.receipt.block.hash)) {
      return response;
    }
    const isProvable = isNew(first.receipt.block, read.context.view.heads) && this.#readsBlocks;
    const proven = isProvable ? await this.#compareWithBlock(read, first) : undefined;
    if (proven !== undefined) {
      return proven;
    }
    const second = this.#statementOf(await this.#ask(read, [first.node.origin]));
    if (second?.receipt === undefined) {
      return unconfirmed(first);
    }
    return isSame(first, second) ? response : this.#decide(read, first, second);
  }

  /** Decides between two statements: by the receipts of a block, by a third origin, else by the preferred origin. */
  async #decide(read: Read, first: Statement, second: Statement): Promise<RpcResponse> {
    const proven = await this.#proveOneOf(read, first, second);
    if (proven !== undefined) {
      return proven;
    }
    const origins = [first.node.origin, second.node.origin] as const;
    const third = this.#statementOf(await this.#ask(read, origins));
    const agreed = third && [second, first].find((each) => isSame(each, third));
    if (agreed !== undefined) {
      return agreed.response;
    }
    const preferred = this.#options.stated.preferred(...origins) === first.node.origin ? first : second;
    return preferred.receipt === undefined ? preferred.response : unconfirmed(preferred);
  }

  /** Of two blocks, receipts do not show which one is canonical. Neither do they for a `null`, if the block is old. */
  async #proveOneOf(read: Read, first: Statement, second: Statement): Promise<RpcResponse | undefined> {
    const [block, other] = [first.receipt?.block, second.receipt?.block];
    if (other === undefined) {
      return undefined;
    }
    if (block !== undefined) {
      return block.hash === other.hash ? this.#compareWithBlock(read, first) : undefined;
    }
    if (this.#options.verifier.hasReceipts(other.hash)) {
      return second.response;
    }
    return isNew(other, read.context.view.heads) ? this.#compareWithBlock(read, second) : undefined;
  }

  /** Compares a receipt with those of its block. Returns undefined if these prove nothing. */
  async #compareWithBlock(read: Read, { response, node, receipt }: Statement): Promise<RpcResponse | undefined> {
    const { verifier } = this.#options;
    const { request, context } = read;
    if (receipt === undefined) {
      return undefined;
    }
    const { body, block } = receipt;
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

  /** Asks a node of none of the origins. Returns undefined if none responds in time. */
  async #ask(read: Read, avoidedOrigins: readonly string[]): Promise<RpcResponse | undefined> {
    const outcome = await this.#others.ask(read, avoidedOrigins);
    return outcome instanceof NodeError ? undefined : outcome;
  }

  /** Returns undefined if it is no statement: a stream, a response of another branch, or one without a block. */
  #statementOf(response: RpcResponse | undefined): Statement | undefined {
    const node = this.#others.nodeOf(response?.node);
    if (response === undefined || node === undefined) {
      return undefined;
    }
    if (isNull(response)) {
      return { response, node, receipt: undefined };
    }
    const { body, block, verified } = response;
    return body instanceof Uint8Array && block && verified !== false
      ? { response, node, receipt: { body, block } }
      : undefined;
  }
}

/**
 * Wraps a source so that no response by transaction hash is the word of one node, if the nodes have several origins. A receipt is
 * compared with those of its block, which its header proves, or with that of another origin. A `null` needs two origins.
 */
export const corroborated = (source: RpcSource, options: CorroboratedOptions): RpcSource =>
  hasSeveralOrigins(options.nodes) ? new CorroboratedSource(source, options) : source;

import type { CallScope } from "../../core/context.ts";
import type { BlockId } from "../../core/heads.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import type { BlobSchedule } from "../../ethereum/rules.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import type { SharedWrites } from "./sharedWrites.ts";
import { askSourceNode, NodeSupport, type SourceNode, type SourceNodes, scopeWithin } from "./sourceNodes.ts";
import type { Witness } from "./witness.ts";
import type { TracedCodes, WriteSetJobOutput, WriteSetThread } from "./writeSetThread.ts";

export interface TraceSourceOptions extends SourceNodes {
  readonly thread: Pick<WriteSetThread, "start" | "run">;
  /** Whether the rules of the block are known, or the operator asked for traces on this chain. */
  readonly isAllowed: (block: BlockId) => boolean;
  /** Returns the JSON text of the block with whole transactions. Rejects if no node has it. */
  readonly readBlock: (block: BlockId, scope: CallScope) => Promise<Uint8Array>;
  /** Returns the `systemContracts` of eth_config (EIP-7910). */
  readonly systemContracts: () => readonly Address[];
  /** Returns the schedule that gives the price of the block's blobs. Undefined if it is not known. */
  readonly blobs: (block: BlockId) => BlobSchedule | undefined;
  readonly unitsOf: (method: string) => number;
  /** Undefined without Redis. */
  readonly shared?: SharedWrites | undefined;
  /** Proves the write sets, also those of other replicas. */
  readonly witness?: Witness | undefined;
}

const METHOD = "debug_traceBlockByHash";
/** Reads of one block are tried on this number of nodes. */
const MAX_NODES = 2;

/** The texts of a block's trace and of the block itself. */
interface TraceBytes {
  readonly body: Uint8Array;
  readonly trace: Uint8Array;
}

/** Weight of the newest block in the share of blocks whose calls are asked too. */
const SHARE_WEIGHT = 0.1;

/** `hashes`: the node's traces have the hashes of codes also if they leave out the codes. */
type TraceFact = "unsupported" | "hashes";

const traceCall = (hash: Hash, leavesOutCode: boolean): Call => {
  const tracerConfig = { diffMode: true, ...(leavesOutCode ? { disableCode: true } : {}) };
  return createCall(METHOD, [hash, { tracer: "prestateTracer", tracerConfig }]);
};

const callsCall = (hash: Hash): Call => createCall(METHOD, [hash, { tracer: "callTracer" }]);

/** Reads write sets from diff traces of nodes (docs/reference/state.md, Diff traces). */
export class TraceSource implements WriteSetSource {
  readonly kind = "trace";
  readonly #options: TraceSourceOptions;
  readonly #support = new NodeSupport<TraceFact>();
  /** Nodes that returned a complete trace. */
  readonly #capable = new Set<string>();
  /** Nodes that are asked whether they give the hashes of codes. */
  readonly #probing = new Set<string>();
  /** Nodes without call traces. */
  readonly #callSupport = new NodeSupport<"unsupported">();
  /** The share of recent blocks whose calls were asked too. */
  #callShare = 0;

  constructor(options: TraceSourceOptions) {
    this.#options = options;
  }

  /** Without the proof, which is billed when it is asked for. */
  get unitsPerBlock(): number {
    const { unitsOf } = this.#options;
    return (1 + this.#callShare) * unitsOf(METHOD) + unitsOf("eth_getBlockByHash");
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { shared, witness } = this.#options;
    const readHere = () => this.#read(block, signal);
    const read = shared === undefined ? readHere : () => shared.read(this.kind, block, signal, readHere);
    return witness === undefined ? read() : witness.prove(this, block, signal, read);
  }

  async #read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { nodesFor, isAllowed, blockTimeMs, readBlock, thread } = this.#options;
    const nodes = nodesFor(block).filter(({ name }) => this.#support.of(name) !== "unsupported");
    if (!isAllowed(block) || nodes.length === 0) {
      return "unsupported";
    }
    thread.start();
    const scope = scopeWithin(blockTimeMs(), signal);
    const body = readBlock(block, scope).catch(() => undefined);
    let failure: WriteSetFailure = "unsupported";
    for (const node of nodes.slice(0, MAX_NODES)) {
      const outcome = await this.#readFrom(node, block, body, scope);
      if (typeof outcome !== "string") {
        return outcome;
      }
      failure = outcome;
    }
    return failure;
  }

  async #readFrom(
    node: SourceNode,
    block: BlockId,
    body: Promise<Uint8Array | undefined>,
    scope: CallScope,
  ): Promise<WriteSet | WriteSetFailure> {
    const leavesOutCode = this.#support.of(node.name) === "hashes";
    const trace = await askSourceNode(node, traceCall(block.hash, leavesOutCode), scope);
    const bytes = await body;
    const output =
      typeof trace === "string"
        ? ({ kind: "failed", reason: trace } as const)
        : bytes === undefined
          ? ({ kind: "failed", reason: "error" } as const)
          : await this.#composeListed(node, block, { body: bytes, trace }, scope);
    if (output.kind === "written") {
      this.#capable.add(node.name);
      this.#probeCodes(node, block, output.codes);
      return { block, node: node.name, packed: output.packed, grade: "stated" };
    }
    const reason = output.kind === "failed" ? output.reason : "error";
    if (reason !== "unsupported") {
      return reason;
    }
    // anvil has returned items without a diff in a reorganisation.
    if (typeof trace !== "string" && this.#capable.has(node.name)) {
      return "incomplete";
    }
    this.#support.learn(node.name, "unsupported");
    return "unsupported";
  }

  /** Asks for the calls of the block if its diffs may leave out accounts. */
  async #composeListed(
    node: SourceNode,
    block: BlockId,
    parts: TraceBytes,
    scope: CallScope,
  ): Promise<WriteSetJobOutput> {
    const output = await this.#compose(block, parts, undefined, scope);
    const isUnlisted = output.kind === "unlisted";
    const asksCalls = isUnlisted && this.#callSupport.of(node.name) === undefined;
    this.#callShare += SHARE_WEIGHT * ((asksCalls ? 1 : 0) - this.#callShare);
    if (!isUnlisted) {
      return output;
    }
    const calls = asksCalls ? await askSourceNode(node, callsCall(block.hash), scope) : "unsupported";
    if (typeof calls !== "string") {
      return this.#compose(block, parts, calls, scope);
    }
    if (asksCalls && calls === "unsupported") {
      this.#callSupport.learn(node.name, "unsupported");
    }
    return { kind: "failed", reason: "unlisted" };
  }

  #compose(
    block: BlockId,
    { body, trace }: TraceBytes,
    calls: Uint8Array | undefined,
    scope: CallScope,
  ): Promise<WriteSetJobOutput> {
    const { thread, systemContracts, blobs } = this.#options;
    const bytes = { body, trace, calls };
    const job = { kind: "trace", block, ...bytes, contracts: systemContracts(), blobs: blobs(block) } as const;
    return thread.run(job, scope);
  }

  /** Asks a node again about a block with a new code, without codes. If it still gives the hashes, codes are left out later. */
  #probeCodes(node: SourceNode, block: BlockId, codes: TracedCodes | undefined): void {
    const { name } = node;
    if (codes === undefined || codes === "missing" || this.#support.of(name) || this.#probing.has(name)) {
      return;
    }
    this.#probing.add(name);
    void this.#hasHashes(node, block, codes)
      .then((hasHashes) => hasHashes && this.#support.learn(name, "hashes"))
      .finally(() => this.#probing.delete(name));
  }

  async #hasHashes(node: SourceNode, block: BlockId, codes: TracedCodes): Promise<boolean> {
    const { thread, blockTimeMs } = this.#options;
    const scope = scopeWithin(blockTimeMs(), new AbortController().signal);
    const trace = await askSourceNode(node, traceCall(block.hash, true), scope);
    if (typeof trace === "string") {
      return false;
    }
    const output = await thread.run({ kind: "codeHashes", trace }, scope);
    return output.kind === "codeHashes" && JSON.stringify(output.codes) === JSON.stringify(codes);
  }
}

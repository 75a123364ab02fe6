import type { CallScope } from "../../core/context.ts";
import type { BlockId, HeaderFields } from "../../core/heads.ts";
import { type Address, formatQuantity, isHash } from "../../ethereum/hex.ts";
import { createCall } from "../../jsonrpc/call.ts";
import { BackOff } from "../../nodes/backOff.ts";
import type { StateCost } from "../cost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../writeSet.ts";
import { askSourceNode, NodeSupport, type SourceNode, type SourceNodes, scopeWithin } from "./sourceNodes.ts";
import type { UnprovenReason, WitnessJob, WriteSetJobOutput, WriteSetThread } from "./writeSetThread.ts";

/** What came of the proof of one write set. The label value of a metric. */
export type WitnessResult = "proven" | UnprovenReason | "unsupported" | "late" | "tooLarge" | "error";

export interface WitnessOptions extends SourceNodes {
  readonly thread: Pick<WriteSetThread, "run">;
  readonly cost: Pick<StateCost, "unitsOf" | "shouldFollow" | "spend">;
  readonly nowMs?: () => number;
  /** Whether write sets of this block may be proven. */
  readonly isAllowed: (block: BlockId) => boolean;
  /** Whether they are proven although the reads of clients do not pay for it. */
  readonly isAlways: boolean;
  /** Returns the header of a canonical block, with its hash. */
  readonly headerOf: (block: BlockId) => HeaderFields | undefined;
  /** Called with each result. */
  readonly onResult: (source: WriteSetSourceKind, result: WitnessResult) => void;
}

const METHOD = "debug_executionWitness";
const PROOF_METHOD = "eth_getProof";
/** Witnesses of one block are asked of this number of nodes. */
const MAX_NODES = 2;
/** More accounts that are open are not asked for. */
const MAX_OPEN = 128;
/** The proofs of a block before the first one is known, and the weight of the newest block after that. */
const FIRST_OPEN = 12;
const OPEN_WEIGHT = 0.1;
/** After this number of write sets in a row that were not proven, no witness is asked for this time. */
const PAUSE = { failures: 3, openMs: 600_000 } as const;

/** The source of a write set. */
type Claimant = Pick<WriteSetSource, "kind" | "unitsPerBlock">;

interface Headers {
  readonly header: HeaderFields;
  readonly parent: HeaderFields;
}

interface Witnessed {
  readonly node: SourceNode;
  readonly bytes: Uint8Array;
}

const resultOf = (failure: WriteSetFailure): WitnessResult =>
  failure === "unsupported" || failure === "late" || failure === "tooLarge" ? failure : "error";

type ProvenJob = WriteSetJobOutput & { readonly kind: "proven" };

const provenOr = (output: WriteSetJobOutput): ProvenJob | WitnessResult => {
  if (output.kind === "proven") {
    return output;
  }
  return output.kind === "unproven" ? output.reason : output.kind === "failed" ? resultOf(output.reason) : "error";
};

/**
 * Proves write sets by execution witnesses (docs/reference/state.md, Execution witnesses). A write set that is not proven stays what
 * it was. Nothing here can make a wrong one proven: the header's state root decides.
 */
export class Witness {
  readonly #options: WitnessOptions;
  readonly #support = new NodeSupport<"unsupported">();
  #openAccounts = FIRST_OPEN;
  readonly #backOff: BackOff;

  constructor(options: WitnessOptions) {
    const { nowMs } = options;
    this.#options = options;
    this.#backOff = new BackOff({ ...PAUSE, ...(nowMs && { nowMs }) });
  }

  /** Reads a write set and, if that is worth its units, the block's witness at the same time. Returns it proven, or as it was. */
  async prove(
    source: Claimant,
    block: BlockId,
    signal: AbortSignal,
    read: () => Promise<WriteSet | WriteSetFailure>,
  ): Promise<WriteSet | WriteSetFailure> {
    const nodes = this.#nodesFor(block);
    const headers = nodes.length > 0 && this.#isWanted(source, block) ? this.#headersOf(block) : undefined;
    if (headers === undefined) {
      return read();
    }
    const ending = new AbortController();
    const scope = scopeWithin(this.#options.blockTimeMs(), AbortSignal.any([signal, ending.signal]));
    const reading = this.#readWitness(nodes, block, scope);
    const claim = await read();
    if (typeof claim === "string") {
      ending.abort();
      return claim;
    }
    const witness = await reading;
    const outcome =
      typeof witness === "string" ? resultOf(witness) : await this.#proveBy(witness, headers, claim, scope);
    const result = typeof outcome === "string" ? outcome : "proven";
    this.#backOff[result === "proven" ? "succeeded" : "failed"]();
    this.#options.onResult(source.kind, result);
    return typeof outcome === "string"
      ? claim
      : { block, packed: outcome.packed, grade: "proven", ...(claim.isShared === true && { isShared: true }) };
  }

  #nodesFor(block: BlockId): readonly SourceNode[] {
    return this.#options.nodesFor(block).filter(({ name }) => this.#support.of(name) === undefined);
  }

  #isWanted({ unitsPerBlock }: Claimant, block: BlockId): boolean {
    const { isAllowed, isAlways, cost } = this.#options;
    const units = cost.unitsOf(METHOD) + this.#openAccounts * cost.unitsOf(PROOF_METHOD);
    return this.#backOff.available && isAllowed(block) && (isAlways || cost.shouldFollow(unitsPerBlock + units));
  }

  #headersOf(block: BlockId): Headers | undefined {
    const { headerOf } = this.#options;
    const header = headerOf(block);
    const hash = header?.parentHash;
    const parent = isHash(hash) ? headerOf({ number: block.number - 1n, hash }) : undefined;
    return header === undefined || parent === undefined ? undefined : { header, parent };
  }

  async #readWitness(
    nodes: readonly SourceNode[],
    block: BlockId,
    scope: CallScope,
  ): Promise<Witnessed | WriteSetFailure> {
    const { cost } = this.#options;
    let failure: WriteSetFailure = "unsupported";
    for (const node of nodes.slice(0, MAX_NODES)) {
      // Some clients take no hash here. The witness of another block proves nothing.
      const bytes = await askSourceNode(node, createCall(METHOD, [formatQuantity(block.number)]), scope);
      if (bytes === "unsupported") {
        this.#support.learn(node.name, bytes);
        continue;
      }
      cost.spend("writeSets", cost.unitsOf(METHOD));
      if (typeof bytes !== "string") {
        return { node, bytes };
      }
      failure = bytes;
    }
    return failure;
  }

  /** Returns the proven writes, or why they are not. */
  async #proveBy(
    { node, bytes: witness }: Witnessed,
    { header, parent }: Headers,
    { block, packed }: WriteSet,
    scope: CallScope,
  ): Promise<ProvenJob | WitnessResult> {
    const { thread } = this.#options;
    const job = { kind: "witness", block, header, parent, packed, witness, proofs: [] } as const;
    const output = await thread.run(job, scope);
    const addresses = output.kind === "open" ? output.addresses : [];
    if (output.kind === "proven" || output.kind === "open") {
      this.#openAccounts += OPEN_WEIGHT * (addresses.length - this.#openAccounts);
    }
    if (output.kind !== "open") {
      return provenOr(output);
    }
    const proofs = await this.#readProofs(node, block, addresses, scope);
    return typeof proofs === "string" ? resultOf(proofs) : provenOr(await thread.run({ ...job, proofs }, scope));
  }

  async #readProofs(
    node: SourceNode,
    { hash }: BlockId,
    addresses: readonly Address[],
    scope: CallScope,
  ): Promise<WitnessJob["proofs"] | WriteSetFailure> {
    if (addresses.length > MAX_OPEN) {
      return "tooLarge";
    }
    const { cost } = this.#options;
    cost.spend("writeSets", addresses.length * cost.unitsOf(PROOF_METHOD));
    const proofs = await Promise.all(
      addresses.map(async (address) => {
        const call = createCall(PROOF_METHOD, [address, [], { blockHash: hash }]);
        return [address, await askSourceNode(node, call, scope)] as const;
      }),
    );
    const known: (readonly [Address, Uint8Array])[] = [];
    for (const [address, proof] of proofs) {
      if (typeof proof === "string") {
        return proof;
      }
      // Of a part of a reply, the channel would copy the whole reply.
      known.push([address, new Uint8Array(proof)]);
    }
    return known;
  }
}

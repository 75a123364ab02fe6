import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { type Check, NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { isNull } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { BlockTransactions } from "./blockRows.ts";
import { isListedAtIndex } from "./blockRows.ts";
import { checkBody, type ExpectedLocation, isJson, type ResponseChecks } from "./checkBody.ts";
import { claimsAbsence } from "./checkProof.ts";
import { checksOfCall, expectedProof, locationOfBlock } from "./checksOfCall.ts";
import type { Evidence } from "./evidence.ts";
import type { Finding } from "./findings.ts";
import { KnownBlocks, type KnownHeader, VerifiedHeaders } from "./knownBlocks.ts";
import { readResponseBlock } from "./responseBlock.ts";
import { checkForm } from "./resultForms.ts";
import type { VerifiedBody, VerifyThreads } from "./verifyThreads.ts";

export type VerifyLevel = "off" | "cheap" | "full";

/** The node that returned a response. */
export interface VerifiedNode {
  readonly name: string;
  send(call: Call, scope: Pick<Context, "signal" | "deadlineMs">): Promise<Uint8Array>;
}

/** A call to a node whose response is verified. */
export interface VerifiedCall {
  readonly node: VerifiedNode;
  /** The form of `request` that the node received. */
  readonly call: Call;
  readonly request: RpcRequest;
  readonly context: Context;
}

/** Parsing and hashing of larger responses takes more than about 1 ms, so a thread does it. */
const MAX_PARSED_BYTES = 24 * 1024;
/** The same limit for a scan alone. */
const MAX_SCANNED_BYTES = 128 * 1024;
/** The check that the error names if the thread failed. */
const CHECK_OF: Readonly<Record<ResponseChecks["kind"], Check>> = {
  json: "json",
  block: "block",
  transaction: "transaction",
  receipt: "transaction",
  raw: "transaction",
  receipts: "receipts",
  logs: "logs",
  proof: "proof",
  accessList: "accessList",
};

const lacksHeader = ({ name }: VerifiedNode, what: string): NodeError =>
  new NodeError("missingData", name, `header not found: ${name} has ${what} alone`, { code: CODES.SERVER });

/** The error of a response that belongs to another branch than the view. */
export const ofOtherBranch = ({ name }: Pick<VerifiedNode, "name">, { method }: Call): NodeError =>
  new NodeError("otherBranch", name, `header not found: ${name} answers ${method} of another branch`, {
    code: CODES.SERVER,
  });

/** Verifies the responses of one chain's nodes. */
export class Verifier {
  readonly level: VerifyLevel;
  readonly #evidence: Evidence;
  readonly #pool: Pick<VerifyThreads, "check">;
  readonly #headers: VerifiedHeaders;
  readonly #blocks = new KnownBlocks();

  constructor(level: VerifyLevel, evidence: Evidence, pool: Pick<VerifyThreads, "check">) {
    this.level = level;
    this.#evidence = evidence;
    this.#pool = pool;
    this.#headers = new VerifiedHeaders(evidence);
  }

  /** Returns the bloom in hex of the block whose header has that hash; undefined if the header is not known. */
  bloomOf(block: BlockId, heads: Heads): string | undefined {
    if (this.level !== "full" || this.#evidence.isOff("header")) {
      return undefined;
    }
    return this.#headers.find(block, heads)?.logsBloom;
  }

  /** Whether the receipts root of block receipts that are served is verified. */
  verifiesReceipts(): boolean {
    const needed: readonly Check[] = ["header", "receipts", "depositReceipts"];
    return this.level === "full" && !needed.some((check) => this.#evidence.isOff(check));
  }

  /** Whether the receipts of a block are known, so that a single one is compared with them. */
  hasReceipts(hash: string): boolean {
    return this.level === "full" && this.#blocks.get(hash).receipts !== undefined;
  }

  /**
   * Returns the body, which may be in other memory; a plain value if the verification is fast.
   * Throws or rejects with UnverifiedError.
   */
  verify(verifiedCall: VerifiedCall, body: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { level } = this;
    const { node, call, request } = verifiedCall;
    if (level === "off") {
      return body;
    }
    if (request.write) {
      return this.check(node.name, body, { kind: "json" });
    }
    const form = checkForm(call.method, body);
    if (form === "wrong" || form === "missing") {
      const isScanned = body.byteLength <= MAX_SCANNED_BYTES;
      // A node without the block returns `null`.
      throw new UnverifiedError(node.name, isScanned && !isJson(body) ? "json" : "form", form === "wrong");
    }
    const verified = level === "full" ? this.#verifyByHeader(verifiedCall, body) : undefined;
    if (verified !== undefined) {
      return verified;
    }
    const checks = checksOfCall(call, request, level === "full");
    if (form === "scanned" && checks.kind === "json") {
      return body;
    }
    return level === "full" ? this.#verifyInBlock(verifiedCall, body, checks) : this.check(node.name, body, checks);
  }

  /** Verifies a response that the header of its block commits to; undefined for any other method. */
  #verifyByHeader(verifiedCall: VerifiedCall, body: Uint8Array): Promise<Uint8Array> | undefined {
    const { call, request } = verifiedCall;
    switch (call.method) {
      case "eth_getBlockReceipts":
        return this.#verifyReceipts(verifiedCall, body);
      case "eth_getProof":
        return this.#verifyProof(verifiedCall, body);
      case "eth_getBlockAccessList":
      case "debug_getRawBlockAccessList": {
        const location = isNull({ body }) ? undefined : locationOfBlock(call, request);
        return location && this.#verifyAccessList(verifiedCall, location, body);
      }
      default:
        return undefined;
    }
  }

  /** Verifies a body by the given checks. Returns and throws like `verify`. */
  check(node: string, body: Uint8Array, checks: ResponseChecks): Uint8Array | Promise<Uint8Array> {
    const maxBytes = checks.kind === "json" ? MAX_SCANNED_BYTES : MAX_PARSED_BYTES;
    const bytes = body.byteLength + (checks.kind === "logs" ? (checks.receipts?.byteLength ?? 0) : 0);
    if (bytes > maxBytes) {
      return this.#checkInThread(node, body, checks);
    }
    if (checks.kind === "json" && isJson(body)) {
      return body;
    }
    this.#requireVerified(checkBody(body, checks), node);
    return body;
  }

  async #checkInThread(node: string, body: Uint8Array, checks: ResponseChecks): Promise<Uint8Array> {
    let verified: VerifiedBody;
    try {
      verified = await this.#pool.check(body, checks);
    } catch (cause) {
      throw new UnverifiedError(node, CHECK_OF[checks.kind], false, { cause });
    }
    this.#requireVerified(verified.findings, node);
    return verified.body;
  }

  #requireVerified(findings: readonly Finding[], node: string): void {
    let isVerified = true;
    for (const finding of findings) {
      const verdict = this.#evidence.evaluate(finding, node);
      if (verdict === "wrong" || verdict === "unconfirmed") {
        throw new UnverifiedError(node, finding.check, verdict === "wrong");
      }
      isVerified &&= verdict === "verified";
    }
    const last = findings.at(-1);
    if (isVerified && last !== undefined) {
      this.#blocks.add({
        transactions: last.transactions,
        // The root of a header without a computed hash verifies nothing.
        receipts: this.verifiesReceipts() ? last.receipts : undefined,
      });
    }
  }

  /** Verifies one transaction or receipt, also by what is known of its block. */
  #verifyInBlock(
    { node, context }: VerifiedCall,
    body: Uint8Array,
    checks: ResponseChecks,
  ): Uint8Array | Promise<Uint8Array> {
    const isInBlock = checks.kind === "transaction" || checks.kind === "receipt";
    if (!isInBlock) {
      return this.check(node.name, body, checks);
    }
    const id = readResponseBlock(body, "blockHash");
    if (id === undefined) {
      return this.check(node.name, body, { ...checks, scannedBlock: null });
    }
    const scannedBlock = id.hash;
    const { transactions: block, receipts } = this.#blocks.get(id.hash);
    if (checks.kind === "transaction") {
      return this.check(node.name, body, { ...checks, scannedBlock, block });
    }
    const found = this.#evidence.isOff("header") ? undefined : this.#headers.find(id, context.view.heads);
    const header = found?.isComputed ? found : undefined;
    const known = { ...checks, scannedBlock, block, receipts, header };
    return block === undefined && receipts !== undefined && !isListedAtIndex(body, checks.hash, receipts)
      ? this.#readTransactions(node, id.hash, context).then((read) =>
          this.check(node.name, body, { ...known, block: read }),
        )
      : this.check(node.name, body, known);
  }

  /**
   * Reads the transactions of a block whose receipts name another transaction at an index than a single receipt.
   * The receipts root does not cover the hash of a transaction, so that either response may be wrong.
   */
  async #readTransactions(node: VerifiedNode, hash: string, context: Context): Promise<BlockTransactions> {
    const body = await node.send(createCall("eth_getBlockByHash", [hash, true]), context);
    const location = { hash };
    await this.check(node.name, body, { kind: "block", location, checksHashes: true, transactions: "full" });
    const { transactions } = this.#blocks.get(hash);
    if (transactions === undefined) {
      throw new UnverifiedError(node.name, "transaction", false);
    }
    return transactions;
  }

  async #verifyReceipts({ node, call, request, context }: VerifiedCall, body: Uint8Array): Promise<Uint8Array> {
    const checks = checksOfCall(call, request, true);
    if (checks.kind !== "receipts" || isNull({ body })) {
      return this.check(node.name, body, checks);
    }
    const hash = readResponseBlock(body, "firstBlockHash")?.hash ?? request.block?.hash ?? checks.location.hash;
    const location = { ...checks.location, ...(hash !== undefined && { hash }) };
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "receipts");
    }
    const { transactions } = this.#blocks.get(header.hash);
    return this.check(node.name, body, { ...checks, header, transactions });
  }

  /** Verifies a block access list by the hash in its header. A list without such a hash is served as it is. */
  async #verifyAccessList(
    { node, context }: VerifiedCall,
    location: ExpectedLocation,
    body: Uint8Array,
  ): Promise<Uint8Array> {
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "an access list");
    }
    const { accessListHash: hash, isComputed } = header;
    return this.check(
      node.name,
      body,
      isComputed && hash !== undefined ? { kind: "accessList", hash } : { kind: "json" },
    );
  }

  /** Verifies a proof by the state root of its block. It is served as it is if no such root is known. */
  async #verifyProof({ node, call, request, context }: VerifiedCall, body: Uint8Array): Promise<Uint8Array> {
    const expected = expectedProof(call, request);
    if (expected === undefined || !this.#judgesProofs(expected.isBound)) {
      return this.check(node.name, body, { kind: "json" });
    }
    const { location, address, keys, isBound } = expected;
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "a proof");
    }
    const { stateRoot, isComputed } = header;
    const isProvable = isComputed && stateRoot !== undefined;
    const checks: ResponseChecks = isProvable
      ? { kind: "proof", request: { stateRoot, address, keys } }
      : { kind: "json" };
    try {
      return await this.check(node.name, body, checks);
    } catch (error) {
      if (!(error instanceof UnverifiedError) || error.check !== "proof") {
        throw error;
      }
      if (!isBound) {
        throw ofOtherBranch(node, call);
      }
      throw claimsAbsence(parseJson(body), address) ? new UnverifiedError(node.name, "proof", false) : error;
    }
  }

  /** The proof of a node that may be on another branch is compared only if forebay knows the chain's encoding. */
  #judgesProofs(isBound: boolean): boolean {
    const evidence = this.#evidence;
    return !evidence.isOff("header") && !evidence.isOff("proof") && (isBound || evidence.hasPassed("proof"));
  }

  /** Returns the header that receipts, an access list, or a proof must match; undefined if it is not available. */
  async #readHeader(
    node: VerifiedNode,
    location: ExpectedLocation,
    context: Context,
  ): Promise<KnownHeader | undefined> {
    const { hash, number } = location;
    const header = hash === undefined ? undefined : this.#headers.find({ ...location, hash }, context.view.heads);
    if (header !== undefined) {
      return header;
    }
    if (hash === undefined && number === undefined) {
      return undefined;
    }
    const call =
      hash === undefined
        ? createCall("eth_getBlockByNumber", [formatQuantity(number ?? 0n), false])
        : createCall("eth_getBlockByHash", [hash, false]);
    const block = await node.send(call, context);
    return this.#headers.add(await this.check(node.name, block, { kind: "block", location, checksHashes: true }));
  }
}

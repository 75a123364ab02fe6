import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { type Check, NodeError, UnverifiedError } from "../core/node.ts";
import type { Proof, RpcRequest } from "../core/rpcSource.ts";
import { hasItems, isNothing } from "../core/wholeResults.ts";
import { formatQuantity, type Hash, isData, isHash, parseData } from "../ethereum/hex.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import { rawTransactionHash } from "../ethereum/rawTransactionHash.ts";
import { asBuffer, parseJson, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import { type Awaitable, type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { BlockTransactions } from "./blockRows.ts";
import { countTransactions, isListedAtIndex } from "./blockRows.ts";
import { checkBody, type ExpectedLocation, isJson, type ResponseChecks } from "./checkBody.ts";
import { claimsAbsence } from "./checkProof.ts";
import { checksOfCall, expectedProof, locationOfBlock } from "./checksOfCall.ts";
import type { AnsweredCall, Evidence } from "./evidence.ts";
import type { Finding, UnknownItem } from "./findings.ts";
import { isSame, quantityOf } from "./jsonFields.ts";
import { KnownBlocks, VerifiedHeaders } from "./knownBlocks.ts";
import type { KnownHeader } from "./knownHeader.ts";
import { readResponseBlock } from "./responseBlock.ts";
import { checkForm } from "./resultForms.ts";
import { UnknownTypes } from "./unknownTypes.ts";
import type { VerifyThreads } from "./verifyThreads.ts";

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

/** A call of a client, or of forebay itself. */
type ReadCall = Pick<VerifiedCall, "node" | "call" | "context">;

/** How far a response that has passed is verified. */
export interface VerifiedResponse {
  readonly proof?: Proof | undefined;
  /** Of a list of which single items may be errors: whether each is a result. */
  readonly isWhole?: boolean | undefined;
  /** The block to which the response is bound, if it is proven. Of a block or header that passed, its own. */
  readonly block?: BlockId | undefined;
  /** Types that forebay does not know leave a part unchecked, and another node may show more. */
  readonly isPartial?: boolean;
}

/** What the checks of a response show. */
interface Verdict {
  /** All checks passed, and there were some. */
  readonly isVerified: boolean;
  /** There are none for `null`, and for the right proof of an absent account. */
  readonly hasFindings: boolean;
  /** See Finding. */
  readonly boundTo: BlockId | undefined;
  readonly known?: KnownHeader | undefined;
  /** The items that could not be checked. */
  readonly unknown: readonly UnknownItem[];
  /** See VerifiedResponse. */
  readonly isWhole: boolean | undefined;
}

/** Of receipts that state a refund, whose block has transactions that forebay cannot check. Another node may show them. */
const UNKNOWN_REFUND: VerifiedResponse = { isPartial: true };

/** Of a response whose form alone is verified. */
const STATED: VerifiedResponse = {};

const JSON_CHECKS: ResponseChecks = { kind: "json" };
const LIST_CHECKS: ResponseChecks = { kind: "json", hasItems: true };
const IS_JSON: Verdict = { isVerified: true, hasFindings: true, isWhole: undefined, boundTo: undefined, unknown: [] };

/** The checks that verify a part of every response they pass. Those of others verify its form alone. */
const VERIFYING: ReadonlySet<ResponseChecks["kind"]> = new Set(["block", "transaction", "raw", "receipts"]);

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

/** The methods that count what a block has. */
const COUNTS: ReadonlySet<string> = new Set([
  "eth_getBlockTransactionCountByHash",
  "eth_getBlockTransactionCountByNumber",
  "eth_getUncleCountByBlockHash",
  "eth_getUncleCountByBlockNumber",
]);

const ACCESS_LISTS: ReadonlySet<string> = new Set(["eth_getBlockAccessList", "debug_getRawBlockAccessList"]);

/** Whether a single receipt is compared with more than its own form. */
const isCompared = (checks: ResponseChecks): boolean =>
  checks.kind === "receipt" && (checks.receipts !== undefined || checks.header !== undefined);

/** A response that passed is proven if the request or the served chain has the hash of the block that binds it. */
const boundResponse = (
  { isVerified }: Verdict,
  block: BlockId | undefined,
  { location, heads }: { readonly location: ExpectedLocation; readonly heads: Heads },
): VerifiedResponse => {
  if (!isVerified) {
    return STATED;
  }
  const isNamed = block !== undefined && (location.hash !== undefined || heads.at(block.number)?.hash === block.hash);
  return isNamed ? { proof: "proven", block } : { proof: "checked" };
};

/** Whether receipts, given as JSON text, state gas that their block gave back. */
const statesRefund = (body: Uint8Array): boolean => {
  const bytes = asBuffer(body);
  for (let at = bytes.indexOf(REFUND); at !== -1; at = bytes.indexOf(REFUND, at + REFUND.length)) {
    const colon = skipSpace(bytes, at + REFUND.length);
    if (bytes[skipSpace(bytes, colon + 1)] === QUOTE) {
      return true;
    }
  }
  return false;
};
const REFUND = '"opGasRefund"';

/** A node that accepted a raw transaction returns its hash. That of an unknown type is not compared. */
const requireSentHash = ({ node, call }: VerifiedCall, body: Uint8Array): void => {
  const [raw] = call.method === "eth_sendRawTransaction" ? call.params : [];
  const hash = isData(raw) ? rawTransactionHash(parseData(raw)) : undefined;
  if (hash !== undefined && !isSame(parseJson(body), hash)) {
    throw new UnverifiedError(node.name, "transaction", true);
  }
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
  readonly #types = new UnknownTypes();
  readonly #hasLagoon: () => boolean;

  /** `hasLagoon`: whether the chain has a time for Lagoon. */
  constructor(
    level: VerifyLevel,
    evidence: Evidence,
    pool: Pick<VerifyThreads, "check">,
    hasLagoon: () => boolean = () => false,
  ) {
    this.level = level;
    this.#hasLagoon = hasLagoon;
    this.#evidence = evidence;
    this.#pool = pool;
    this.#headers = new VerifiedHeaders(evidence);
  }

  /** Returns the header with that hash, if it was computed, or is that of a block of the ring. Undefined if it is not known. */
  headerOf(block: Partial<Pick<BlockId, "number">> & { readonly hash: string }, heads: Heads): KnownHeader | undefined {
    if (this.level !== "full" || this.#evidence.isOff("header")) {
      return undefined;
    }
    return this.#headers.find(block, heads);
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

  /** Returns a plain value if the verification is fast. Throws or rejects with UnverifiedError. */
  verify(verifiedCall: VerifiedCall, body: Uint8Array): Awaitable<VerifiedResponse> {
    const { level } = this;
    const { node, call, request } = verifiedCall;
    if (level === "off") {
      return STATED;
    }
    if (request.write) {
      return whenKnown(this.#checkForm(verifiedCall, body), (verified) => {
        requireSentHash(verifiedCall, body);
        return verified;
      });
    }
    const form = checkForm(call.method, body);
    if (form === "wrong" || form === "missing") {
      const isScanned = body.byteLength <= MAX_SCANNED_BYTES;
      // A node without the block returns `null`.
      throw new UnverifiedError(node.name, isScanned && !isJson(body) ? "json" : "form", form === "wrong");
    }
    if (isNothing(call.method, body)) {
      return STATED;
    }
    const isFull = level === "full";
    const checks = checksOfCall(call, request, isFull);
    if (isFull) {
      return this.#verifyFully(verifiedCall, body, { checks, isScanned: form === "scanned" });
    }
    if (checks.kind === "json") {
      return form === "scanned" ? STATED : this.#checkForm(verifiedCall, body);
    }
    return whenKnown(this.check(verifiedCall, body, checks), () => STATED);
  }

  /** `isScanned`: the form of the body shows that it is JSON. */
  #verifyFully(
    verifiedCall: VerifiedCall,
    body: Uint8Array,
    { checks, isScanned }: { readonly checks: ResponseChecks; readonly isScanned: boolean },
  ): Awaitable<VerifiedResponse> {
    const { call } = verifiedCall;
    if (call.method === "eth_getProof") {
      return this.#verifyProof(verifiedCall, body);
    }
    if (COUNTS.has(call.method)) {
      return this.#verifyCount(verifiedCall, body);
    }
    if (ACCESS_LISTS.has(call.method)) {
      const location = locationOfBlock(call, verifiedCall.request);
      return location === undefined
        ? this.#checkForm(verifiedCall, body)
        : this.#verifyAccessList(verifiedCall, location, body);
    }
    switch (checks.kind) {
      case "json":
        return isScanned ? STATED : this.#checkForm(verifiedCall, body);
      case "receipts":
        return this.#verifyReceipts(verifiedCall, body, checks);
      case "block":
        return this.#verifyBlock(verifiedCall, body, checks);
      case "transaction":
      case "receipt":
        return this.#verifyInBlock(verifiedCall, body, checks);
      default:
        return this.#checkPart(verifiedCall, body, checks);
    }
  }

  /** Verifies the number of a block's transactions or uncles, if they are known. A node asked by number may be on another branch. */
  #verifyCount(verifiedCall: VerifiedCall, body: Uint8Array): Awaitable<VerifiedResponse> {
    const { node, call, request, context } = verifiedCall;
    const [named] = call.params;
    const hash = isHash(named) ? named : request.block?.hash;
    const expected = hash && this.#countIn(call, { hash, number: request.block?.number }, context.view.heads);
    return whenKnown(this.#checkForm(verifiedCall, body), (verified) => {
      if (hash === undefined || expected === undefined) {
        return verified;
      }
      if (quantityOf(parseJson(body)) === BigInt(expected.count)) {
        return { proof: "proven", block: { number: expected.number, hash } };
      }
      if (isHash(named)) {
        throw new UnverifiedError(node.name, "block", true);
      }
      return verified;
    });
  }

  #countIn({ method }: Call, block: { readonly hash: Hash; readonly number: bigint | undefined }, heads: Heads) {
    if (!method.startsWith("eth_getUncle")) {
      const { transactions } = this.#blocks.get(block.hash);
      return transactions && { count: countTransactions(transactions), number: transactions.number };
    }
    const header = this.#headers.find(
      { hash: block.hash, ...(block.number !== undefined && { number: block.number }) },
      heads,
    );
    return header?.isComputed === true && header.hasNoUncles ? { count: 0, number: header.number } : undefined;
  }

  #checkForm(answered: AnsweredCall, body: Uint8Array): Awaitable<VerifiedResponse> {
    const checks = hasItems(answered.call.method) ? LIST_CHECKS : JSON_CHECKS;
    return whenKnown(this.check(answered, body, checks), ({ isWhole }) =>
      isWhole === undefined ? STATED : { isWhole },
    );
  }

  /** Verifies a response of which the checks verify a part. */
  #checkPart(answered: AnsweredCall, body: Uint8Array, checks: ResponseChecks): Awaitable<VerifiedResponse> {
    return whenKnown(this.check(answered, body, checks), (checked) => ({
      proof: checked.isVerified && (VERIFYING.has(checks.kind) || isCompared(checks)) ? "checked" : undefined,
    }));
  }

  /** Verifies a block or a header. It is proven if the request or the served chain has its hash. */
  #verifyBlock(
    verifiedCall: VerifiedCall,
    body: Uint8Array,
    checks: ResponseChecks & { kind: "block" },
  ): Awaitable<VerifiedResponse> {
    const { heads } = verifiedCall.context.view;
    const scanned = readResponseBlock(body, "hash");
    const isKnown = scanned !== undefined && checks.transactions === "hashes";
    const block = isKnown ? this.#blocks.get(scanned.hash).transactions : undefined;
    const all = { ...checks, block, scannedBlock: scanned ?? null };
    return whenKnown(this.#checkBlock(verifiedCall, body, all), (checked) => {
      const { proof } = boundResponse(checked, checked.boundTo, { location: checks.location, heads });
      return { proof, block: scanned, ...this.#partOf(verifiedCall, "transactions", checked) };
    });
  }

  /** Checks a block. Transactions of unknown types are checked by their bytes, if the node has them. */
  #checkBlock(answered: ReadCall, body: Uint8Array, checks: ResponseChecks & { kind: "block" }): Awaitable<Verdict> {
    const facts = { hasLagoon: this.#hasLagoon() };
    return whenKnown(this.check(answered, body, { ...checks, facts }), (checked) =>
      checked.unknown.length === 0
        ? checked
        : this.#types
            .readTransactions(answered.node, checked.unknown, answered.context)
            .then((raws) =>
              raws === undefined ? checked : this.check(answered, body, { ...checks, facts: { ...facts, raws } }),
            ),
    );
  }

  #partOf(
    { node }: ReadCall,
    list: "transactions" | "receipts",
    { unknown }: Verdict,
  ): Pick<VerifiedResponse, "isPartial"> {
    return unknown.length > 0 && this.#types.needsOther(node, list, unknown) ? { isPartial: true } : {};
  }

  /** Verifies a body by the given checks. Returns and throws like `verify`. */
  check(answered: AnsweredCall, body: Uint8Array, checks: ResponseChecks): Awaitable<Verdict> {
    const maxBytes = checks.kind === "json" ? MAX_SCANNED_BYTES : MAX_PARSED_BYTES;
    const bytes = body.byteLength + (checks.kind === "logs" ? (checks.receipts?.byteLength ?? 0) : 0);
    if (bytes > maxBytes) {
      return this.#checkInThread(answered, body, checks);
    }
    if (checks === JSON_CHECKS && isJson(body)) {
      return IS_JSON;
    }
    return this.#requireVerified(checkBody(body, checks), answered);
  }

  async #checkInThread(answered: AnsweredCall, body: Uint8Array, checks: ResponseChecks): Promise<Verdict> {
    let findings: readonly Finding[];
    try {
      findings = await this.#pool.check(body, checks);
    } catch (cause) {
      throw new UnverifiedError(answered.node.name, CHECK_OF[checks.kind], false, { cause });
    }
    return this.#requireVerified(findings, answered);
  }

  #requireVerified(findings: readonly Finding[], answered: AnsweredCall): Verdict {
    let isVerified = findings.length > 0;
    for (const finding of findings) {
      const verdict = this.#evidence.evaluate(finding, answered);
      if (verdict === "wrong" || verdict === "unconfirmed") {
        throw new UnverifiedError(answered.node.name, finding.check, verdict === "wrong");
      }
      isVerified &&= verdict === "verified";
    }
    const last = findings.at(-1);
    this.#types.add(isVerified ? (last?.unknown ?? []) : []);
    if (isVerified && last !== undefined) {
      this.#blocks.add({
        transactions: last.transactions,
        // The root of a header without a computed hash verifies nothing.
        receipts: this.verifiesReceipts() ? last.receipts : undefined,
      });
    }
    const known = isVerified ? findings.find((finding) => finding.known !== undefined)?.known : undefined;
    if (known !== undefined) {
      this.#headers.addHeader(known);
    }
    const hasFindings = findings.length > 0;
    const unknown = findings.flatMap((finding) => (finding.outcome === "partial" ? (finding.unknown ?? []) : []));
    const boundTo = findings.find((finding) => finding.boundTo !== undefined)?.boundTo;
    return { isVerified, hasFindings, isWhole: last?.isWhole, boundTo, unknown, known };
  }

  /** Verifies one transaction or receipt, also by what is known of its block. */
  #verifyInBlock(
    verifiedCall: VerifiedCall,
    body: Uint8Array,
    checks: ResponseChecks & { kind: "transaction" | "receipt" },
  ): Awaitable<VerifiedResponse> {
    const { node, context } = verifiedCall;
    const id = readResponseBlock(body, "blockHash");
    if (id === undefined) {
      return checks.kind === "transaction"
        ? this.#checkTransaction(verifiedCall, body, { ...checks, scannedBlock: null })
        : this.#checkPart(verifiedCall, body, { ...checks, scannedBlock: null });
    }
    const { transactions: block, receipts } = this.#blocks.get(id.hash);
    if (checks.kind === "transaction") {
      const facts = { hasLagoon: this.#hasLagoon() };
      return this.#checkTransaction(verifiedCall, body, { ...checks, scannedBlock: id, block, facts });
    }
    const found = this.#evidence.isOff("header") ? undefined : this.#headers.find(id, context.view.heads);
    const header = found?.isComputed ? found : undefined;
    const known = { ...checks, scannedBlock: id, block, receipts, header };
    const isElsewhere = receipts !== undefined && !isListedAtIndex(body, checks.hash, receipts);
    if (block !== undefined || !(isElsewhere || statesRefund(body))) {
      return this.#checkPart(verifiedCall, body, known);
    }
    return this.#readTransactions(node, id.hash, context).then(async (read) => {
      if (read === undefined && isElsewhere) {
        throw new UnverifiedError(node.name, "transaction", false);
      }
      const checked = await this.#checkPart(verifiedCall, body, { ...known, block: read });
      return read === undefined ? UNKNOWN_REFUND : checked;
    });
  }

  /** Checks one transaction. Of a type that forebay does not know, nothing but the place is checked. */
  #checkTransaction(
    verifiedCall: VerifiedCall,
    body: Uint8Array,
    checks: ResponseChecks & { kind: "transaction" },
  ): Awaitable<VerifiedResponse> {
    return whenKnown(this.check(verifiedCall, body, checks), (checked) => ({
      proof: checked.isVerified ? "checked" : undefined,
      ...this.#partOf(verifiedCall, "transactions", checked),
    }));
  }

  /**
   * Reads the transactions of a block whose receipts name another transaction at an index than a single receipt, or that gives back
   * gas. The receipts root covers neither the hash of a transaction nor a refund. Undefined if the types of some are not known.
   */
  async #readTransactions(node: VerifiedNode, hash: string, context: Context): Promise<BlockTransactions | undefined> {
    const call = createCall("eth_getBlockByHash", [hash, true]);
    const body = await node.send(call, context);
    const checks = { kind: "block", location: { hash }, checksHashes: true, transactions: "full" } as const;
    await this.#checkBlock({ node, call, context }, body, checks);
    return this.#blocks.get(hash).transactions;
  }

  async #verifyReceipts(
    verifiedCall: VerifiedCall,
    body: Uint8Array,
    checks: ResponseChecks & { kind: "receipts" },
  ): Promise<VerifiedResponse> {
    const { node, request, context } = verifiedCall;
    const hash = readResponseBlock(body, "firstBlockHash")?.hash ?? request.block?.hash ?? checks.location.hash;
    const location = { ...checks.location, ...(hash !== undefined && { hash }) };
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "receipts");
    }
    const { transactions: known } = this.#blocks.get(header.hash);
    const transactions =
      known === undefined && statesRefund(body) ? await this.#readTransactions(node, header.hash, context) : known;
    const checked = await this.#checkList(verifiedCall, body, { ...checks, header, facts: { transactions } });
    if (transactions === undefined && statesRefund(body)) {
      return UNKNOWN_REFUND;
    }
    const proof = checked.isVerified && header.isComputed ? "checked" : undefined;
    return { proof, ...this.#partOf(verifiedCall, "receipts", checked) };
  }

  /** Checks the receipts of a block. Those of unknown types are checked by their bytes, if the node has them. */
  async #checkList(
    answered: ReadCall,
    body: Uint8Array,
    checks: ResponseChecks & { kind: "receipts" },
  ): Promise<Verdict> {
    const postExec = this.#hasLagoon() ? [POST_EXEC_TYPE] : [];
    const facts = { ...checks.facts, standardTypes: [...postExec, ...this.#types.standard] };
    const checked = await this.check(answered, body, { ...checks, facts });
    const hash = checks.header?.hash;
    const raws =
      checked.unknown.length === 0 || hash === undefined
        ? undefined
        : await this.#types.readReceipts(answered.node, hash, answered.context);
    return raws === undefined ? checked : this.check(answered, body, { ...checks, facts: { ...facts, raws } });
  }

  /** Verifies a block access list by the hash in its header. A list without such a hash is served as it is. */
  async #verifyAccessList(
    verifiedCall: VerifiedCall,
    location: ExpectedLocation,
    body: Uint8Array,
  ): Promise<VerifiedResponse> {
    const { node, context } = verifiedCall;
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "an access list");
    }
    const { accessListHash, isComputed } = header;
    if (!isComputed || accessListHash === undefined) {
      return this.#checkForm(verifiedCall, body);
    }
    const checked = await this.check(verifiedCall, body, { kind: "accessList", hash: accessListHash });
    return boundResponse(checked, isHash(header.hash) ? { number: header.number, hash: header.hash } : undefined, {
      location,
      heads: context.view.heads,
    });
  }

  /** Verifies a proof by the state root of its block. It is served as it is if no such root is known. */
  async #verifyProof(verifiedCall: VerifiedCall, body: Uint8Array): Promise<VerifiedResponse> {
    const { node, call, request, context } = verifiedCall;
    const expected = expectedProof(call, request);
    if (expected === undefined || !this.#judgesProofs(expected.isBound)) {
      return this.#checkForm(verifiedCall, body);
    }
    const { location, address, keys, isBound } = expected;
    const header = await this.#readHeader(node, location, context);
    if (header === undefined) {
      throw lacksHeader(node, "a proof");
    }
    const { stateRoot, isComputed } = header;
    const isProvable = isComputed && stateRoot !== undefined;
    if (!isProvable) {
      return this.#checkForm(verifiedCall, body);
    }
    try {
      const checked = await this.check(verifiedCall, body, { kind: "proof", request: { stateRoot, address, keys } });
      return this.#isProof(checked)
        ? { proof: "proven", block: { number: header.number, hash: location.hash } }
        : STATED;
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

  /** The right proof of an absent account is no finding. It proves something if forebay knows the chain's encoding. */
  #isProof({ isVerified, hasFindings }: Verdict): boolean {
    return this.#evidence.hasPassed("proof") && (isVerified || !hasFindings);
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
    const { known } = await this.check({ node, call }, block, { kind: "block", location, checksHashes: true });
    return known ?? this.#headers.add(block);
  }
}

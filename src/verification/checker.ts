import type { Context } from "../core/context.ts";
import type { Grade } from "../core/grade.ts";
import { type BlockId, isCanonicalIn } from "../core/heads.ts";
import { type Check, NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { hasItems } from "../core/wholeResults.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type Awaitable, type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { checkBody, isJson, type ResponseChecks } from "./checkBody.ts";
import type { AnsweredCall, Evidence } from "./evidence.ts";
import type { ExpectedLocation } from "./expectedLocation.ts";
import type { Finding, UnknownItem } from "./findings.ts";
import { KnownBlocks, VerifiedHeaders } from "./knownBlocks.ts";
import type { KnownHeader } from "./knownHeader.ts";
import { UnknownTypes } from "./unknownTypes.ts";
import type { VerifyThreads } from "./verifyThreads.ts";

/** The node that returned a response. */
export interface VerifiedNode {
  readonly name: string;
  send(call: Call, scope: Pick<Context, "signal" | "deadlineMs">): Promise<Uint8Array>;
}

/** A call of a client, or of forebay itself. */
export interface ReadCall {
  readonly node: VerifiedNode;
  /** The form of the request that the node received. */
  readonly call: Call;
  readonly context: Context;
}

/** A call to a node whose response is verified. */
export interface VerifiedCall extends ReadCall {
  readonly request: RpcRequest;
}

/** How far a response that has passed is verified. */
export interface VerifiedResponse {
  readonly grade?: Grade | undefined;
  /** For a list whose items may be errors: whether each is a result. */
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

/** A response whose form alone is verified. */
export const STATED: VerifiedResponse = {};

const JSON_CHECKS: ResponseChecks = { kind: "json" };
const LIST_CHECKS: ResponseChecks = { kind: "json", hasItems: true };
const IS_JSON: Verdict = { isVerified: true, hasFindings: true, isWhole: undefined, boundTo: undefined, unknown: [] };

/** Parsing and hashing of larger responses takes more than about 1 ms, so a thread does it. */
const MAX_PARSED_BYTES = 24 * 1024;
/** The same limit for a scan alone. */
export const MAX_SCANNED_BYTES = 128 * 1024;

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

/** A response that passed is proven if the request or the served chain has the hash of the block that binds it. */
export const boundResponse = (
  { isVerified }: Verdict,
  block: BlockId | undefined,
  { location, context }: { readonly location: ExpectedLocation; readonly context: Context },
): VerifiedResponse => {
  if (!isVerified) {
    return STATED;
  }
  const { heads } = context.view;
  const isNamed = block !== undefined && (location.hash !== undefined || isCanonicalIn(heads, block));
  return isNamed ? { grade: "proven", block } : { grade: "checked" };
};

/** The error of a node that lacks the header that its response must match. */
export const lacksHeader = ({ name }: VerifiedNode, what: string): NodeError =>
  new NodeError("missingData", name, `header not found: ${name} has ${what} alone`, { code: CODES.SERVER });

/** The error of a response that belongs to another branch than the view. */
export const ofOtherBranch = ({ name }: Pick<VerifiedNode, "name">, { method }: Call): NodeError =>
  new NodeError("otherBranch", name, `header not found: ${name} answers ${method} of another branch`, {
    code: CODES.SERVER,
  });

/** Runs the checks of responses, on this thread or another, and remembers what has passed. */
export class Checker {
  readonly evidence: Evidence;
  readonly headers: VerifiedHeaders;
  readonly blocks = new KnownBlocks();
  readonly types = new UnknownTypes();
  /** Whether the chain has a time for Lagoon. */
  readonly hasLagoon: () => boolean;
  readonly #threads: Pick<VerifyThreads, "check">;

  constructor(evidence: Evidence, threads: Pick<VerifyThreads, "check">, hasLagoon: () => boolean) {
    this.evidence = evidence;
    this.headers = new VerifiedHeaders(evidence);
    this.hasLagoon = hasLagoon;
    this.#threads = threads;
  }

  /** Whether the receipts root of block receipts that are served is verified. */
  verifiesReceipts(): boolean {
    const needed: readonly Check[] = ["header", "receipts", "depositReceipts"];
    return !needed.some((check) => this.evidence.isOff(check));
  }

  /** Checks a body. Returns a plain value if that is fast. Throws or rejects with UnverifiedError. */
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

  /** Checks that a response is JSON, and whether each item of a list is a result. */
  checkForm(answered: AnsweredCall, body: Uint8Array): Awaitable<VerifiedResponse> {
    const checks = hasItems(answered.call.method) ? LIST_CHECKS : JSON_CHECKS;
    return whenKnown(this.check(answered, body, checks), ({ isWhole }) =>
      isWhole === undefined ? STATED : { isWhole },
    );
  }

  /** Returns the header that a response must match, from a node if it is not known; undefined if the node lacks it. */
  async readHeader(node: VerifiedNode, location: ExpectedLocation, context: Context): Promise<KnownHeader | undefined> {
    const { hash, number } = location;
    const header = hash === undefined ? undefined : this.headers.find({ ...location, hash }, context.view.heads);
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
    return known ?? this.headers.add(block);
  }

  /** Whether another node may show more of a list with items that could not be checked. */
  partOf(
    { node }: ReadCall,
    list: "transactions" | "receipts",
    { unknown }: Verdict,
  ): Pick<VerifiedResponse, "isPartial"> {
    return unknown.length > 0 && this.types.needsOther(node, list, unknown) ? { isPartial: true } : {};
  }

  async #checkInThread(answered: AnsweredCall, body: Uint8Array, checks: ResponseChecks): Promise<Verdict> {
    let findings: readonly Finding[];
    try {
      findings = await this.#threads.check(body, checks);
    } catch (cause) {
      throw new UnverifiedError(answered.node.name, CHECK_OF[checks.kind], false, { cause });
    }
    return this.#requireVerified(findings, answered);
  }

  #requireVerified(findings: readonly Finding[], answered: AnsweredCall): Verdict {
    const hasFindings = findings.length > 0;
    let isVerified = hasFindings;
    for (const finding of findings) {
      const verdict = this.evidence.evaluate(finding, answered);
      if (verdict === "wrong" || verdict === "unconfirmed") {
        throw new UnverifiedError(answered.node.name, finding.check, verdict === "wrong");
      }
      isVerified &&= verdict === "verified";
    }
    const known = isVerified ? this.#remember(findings) : undefined;
    const unknown = findings.flatMap((finding) => (finding.outcome === "partial" ? (finding.unknown ?? []) : []));
    const boundTo = findings.find((finding) => finding.boundTo !== undefined)?.boundTo;
    return { isVerified, hasFindings, isWhole: findings.at(-1)?.isWhole, boundTo, unknown, known };
  }

  /** Keeps what later responses are compared with. Returns the header, if its hash was computed. */
  #remember(findings: readonly Finding[]): KnownHeader | undefined {
    const last = findings.at(-1);
    this.types.add(last?.unknown ?? []);
    this.blocks.add({
      transactions: last?.transactions,
      // The root of a header without a computed hash verifies nothing.
      receipts: this.verifiesReceipts() ? last?.receipts : undefined,
    });
    const known = findings.find((finding) => finding.known !== undefined)?.known;
    return known && this.headers.addHeader(known);
  }
}

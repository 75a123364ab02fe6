import type { Grade } from "../../core/grade.ts";
import type { BlockId } from "../../core/heads.ts";
import { NodeError } from "../../core/node.ts";
import { isAddress } from "../../ethereum/hex.ts";
import { createCall } from "../../jsonrpc/call.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { Audit } from "../audit.ts";
import type { StateCost } from "../cost.ts";
import type { StateFollower } from "../stateFollower.ts";
import { accountKey, type StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { type CallResult, valuesRead } from "./callResult.ts";
import { type BlockCall, fieldsOfCall, paramsOfKey } from "./callRun.ts";
import type { CallTable } from "./callTable.ts";

/** The result of a call that no node was asked for. */
export interface LocalResult extends BlockCall, Pick<CallResult, "body" | "reads" | "node"> {
  readonly grade: Grade;
}

export interface CallChecksOptions {
  readonly chain: string;
  readonly values: Pick<ValueStore, "get">;
  readonly cost: Pick<StateCost, "unitsOf" | "spend">;
  readonly follower: Pick<StateFollower, "generation">;
  readonly table: Pick<CallTable, "clear">;
  readonly audit: Pick<Audit, "compare" | "nodeBeside" | "onLocalRead" | "takeSample">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly random?: () => number;
  /** Removes a node's response to a call from the cache. */
  forget(call: BlockCall): void;
}

/** The position of the block parameter. */
const BLOCK = 1;
/** Values of one read set that are read again. */
const MAX_KEYS = 1_000;
/** Codes that are remembered. */
const MAX_CODES = 1_000;

const decoder = new TextDecoder();

/**
 * Compares a share of the local results of calls with a node, at the block of the result. If one differs, all values that it read
 * are compared. If all are right, the execution is wrong: the code that the call runs is forwarded until a restart.
 */
export class CallChecks {
  readonly #options: CallChecksOptions;
  readonly #random: () => number;
  /** Hashes of codes whose execution here gave another result than a node. */
  readonly #forwardedCodes = new Set<string>();

  constructor(options: CallChecksOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
  }

  /** Called with each local result. */
  onLocalResult(result: LocalResult): void {
    const { audit } = this.#options;
    const { keys } = result.reads;
    const key = keys[Math.floor(this.#random() * keys.length)];
    if (key !== undefined && result.grade !== "proven") {
      audit.onLocalRead(key);
    }
    if (audit.takeSample()) {
      void this.#read(result).then((outcome) => this.compare(result, outcome));
    }
  }

  /** Compares a local result with that of a node at the same block, or with the node's error. Never rejects. */
  async compare(result: LocalResult, outcome: unknown): Promise<void> {
    const { chain, telemetry, forget } = this.#options;
    if (!isComparable(outcome)) {
      return;
    }
    telemetry.metrics.stateAnswers.inc({ chain, method: result.method, event: "sampled" });
    if (!differs(result, outcome)) {
      return;
    }
    // One result may be an accident. The BLOCKHASH of geth is zero for a block that exists if the call runs out of time, or during a
    // reorganisation. It ignores the error of reading the header. Source: geth, core/evm.go, GetHashFn.
    forget(result);
    const second = await this.#read(result);
    if (isComparable(second) && differs(result, second)) {
      await this.#report(result, second);
    }
  }

  /** Whether nodes answer a call, because an execution of its code was wrong. */
  isForwarded(key: string, block: BlockId): boolean {
    const code = this.#forwardedCodes.size === 0 ? undefined : this.#codeOf(key, block);
    return code !== undefined && this.#forwardedCodes.has(code);
  }

  /** Reads the result of a node of another origin, or undefined if it does not respond. */
  async #read({ key, method, block, node }: LocalResult): Promise<unknown> {
    const { audit, cost } = this.#options;
    const call = createCall(method, paramsOfKey(key).with(BLOCK, { blockHash: block.hash }));
    cost.spend("sample", cost.unitsOf(method));
    const fetched = await audit
      .nodeBeside(node)
      ?.reader.fetch([], block, [call])
      .catch(() => undefined);
    return fetched?.outcomes[0];
  }

  async #report(result: LocalResult, outcome: unknown): Promise<void> {
    const { chain, table, follower, telemetry } = this.#options;
    const { key, method, block, body, grade } = result;
    const { generation } = follower;
    const actual = outcome instanceof NodeError ? outcome.message : outcome;
    table.clear();
    telemetry.metrics.stateAnswers.inc({ chain, method, event: "differed" });
    if (grade === "proven") {
      telemetry.metrics.stateDifferences.inc({ chain, kind: "call", proof: "proven" });
    }
    telemetry.log.error(
      { chain, request: key, number: block.number.toString(), hash: block.hash, known: decoder.decode(body), actual },
      "a local answer differs from the node's",
    );
    const areRight = await this.#areValuesRight(result);
    if (!areRight || generation !== follower.generation) {
      return;
    }
    const code = this.#codeOf(key, block);
    if (code !== undefined && this.#forwardedCodes.size < MAX_CODES) {
      this.#forwardedCodes.add(code);
    }
    telemetry.log.error(
      { chain, request: key },
      "local result differs from the node's: this code is forwarded until a restart",
    );
  }

  /** Compares the values of a read set with a node. */
  async #areValuesRight({ reads, block, node }: LocalResult): Promise<boolean> {
    const { values, audit } = this.#options;
    const other = audit.nodeBeside(node);
    const known = new Map<StateKey, string>();
    for (const key of valuesRead(reads).slice(0, MAX_KEYS)) {
      const value = values.get(key, block);
      if (value !== undefined) {
        known.set(key, value);
      }
    }
    return known.size === 0 || other === undefined || audit.compare("sample", other, known, block);
  }

  /** Returns the hash of the code that a call runs first. Undefined: it creates a contract, or the code is not known. */
  #codeOf(key: string, block: BlockId): string | undefined {
    const { to } = fieldsOfCall(key);
    return isAddress(to) ? this.#options.values.get(accountKey(to, "code"), block) : undefined;
  }
}

/** A string is a result. A node's `revert` shows that the call fails. Other errors say nothing about the call. */
const isComparable = (outcome: unknown): boolean =>
  typeof outcome === "string" || (outcome instanceof NodeError && outcome.kind === "revert");

const differs = ({ body }: LocalResult, outcome: unknown): boolean => {
  const known: unknown = JSON.parse(decoder.decode(body));
  return typeof outcome !== "string" || outcome.toLowerCase() !== String(known).toLowerCase();
};

import { readFileSync } from "node:fs";
import type { HeadChange, Heads } from "../core/heads.ts";
import {
  CLZ_CODE,
  chainForks,
  detectForkFromBlock,
  hasClz,
  hasNewestForks,
  namedForks,
  opForksUpTo,
  parseGenesisForks,
  withShownForks,
} from "../ethereum/chainForks.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import {
  findHeaderDifference,
  findRuleDifference,
  findUnknownFrom,
  type RuleDifference,
  readSystemContracts,
  withUnknownFrom,
} from "../ethereum/nodeRules.ts";
import { areRulesKnown, type ChainForks, type EthereumFork, type OpFork } from "../ethereum/rules.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

export type ForksOption = "auto" | "none" | EthereumFork | OpFork | { readonly genesis: string };

type CallNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

const readGenesis = (file: string): ChainForks => {
  const forks = parseGenesisForks(JSON.parse(readFileSync(file, "utf8")));
  if (forks === undefined) {
    throw new Error(`${file} is no genesis file: it has no config.chainId`);
  }
  return forks;
};

/** Returns the newest fork that a node shows. Karst does not change blocks, but it adds an opcode. */
const readNewestFork = async (callNode: CallNode): Promise<OpFork | undefined> => {
  const shown = detectForkFromBlock(await callNode("eth_getBlockByNumber", ["latest", true]));
  if (shown !== "jovian") {
    return shown;
  }
  const result = await callNode("eth_call", [{ input: CLZ_CODE }, "latest"]).catch(() => undefined);
  return hasClz(result) ? "karst" : "jovian";
};

export interface ResolvedForks {
  readonly forks: ChainForks;
  /** Whether `forks` has the chain's own fork times. */
  readonly hasTimes: boolean;
}

/**
 * Returns the rules of a chain: configured, known by its id, or shown by its newest block.
 * Returns undefined if they are unknown. Nothing is executed then, because wrong rules give wrong results.
 */
export const resolveForks = async (
  option: ForksOption,
  chainId: bigint,
  callNode: CallNode,
): Promise<ResolvedForks | undefined> => {
  if (option === "none") {
    return undefined;
  }
  if (typeof option === "object") {
    return { forks: readGenesis(option.genesis), hasTimes: true };
  }
  if (option !== "auto") {
    return { forks: namedForks(chainId, option), hasTimes: false };
  }
  const known = chainForks(chainId);
  if (known !== undefined && hasNewestForks(known)) {
    return { forks: known, hasTimes: true };
  }
  const shown = await readNewestFork(callNode);
  if (known !== undefined) {
    return { forks: withShownForks(known, shown), hasTimes: true };
  }
  return shown && { forks: opForksUpTo(chainId, shown), hasTimes: false };
};

const CHECK_MS = 10 * 60_000;

export interface RulesWatchOptions {
  readonly chain: string;
  readonly forks: ChainForks;
  /** Whether `forks` has the chain's own fork times, so that they can be compared with those of a node. */
  readonly hasTimes: boolean;
  readonly genesisHash: () => Hash;
  readonly heads: { current(): Heads | undefined; subscribe(listener: (change: HeadChange) => void): () => void };
  readonly callNode: (method: string, params: readonly unknown[]) => Promise<unknown>;
  readonly forwarded: { set(reason: "rulesUnknown", isSo: boolean): void };
  readonly telemetry: Telemetry;
}

/** Follows the rules of a chain: its fork times, limited by the headers and the eth_config of its nodes. */
export class RulesWatch {
  readonly #options: RulesWatchOptions;
  readonly #logged = new Set<string>();
  readonly #stops: (() => void)[] = [];
  #configDifference: RuleDifference | undefined;
  #headerDifference: RuleDifference | undefined;
  #systemContracts: readonly Address[] = [];
  #forks: ChainForks;

  constructor(options: RulesWatchOptions) {
    this.#options = options;
    this.#forks = options.forks;
  }

  /** Resolves after the first read of a node's rules. */
  async start(): Promise<void> {
    const { heads, hasTimes } = this.#options;
    this.#stops.push(heads.subscribe((change) => this.#checkHead(change.heads)));
    if (hasTimes) {
      const timer = setInterval(() => void this.#checkConfig(), CHECK_MS);
      timer.unref();
      this.#stops.push(() => clearInterval(timer));
      await this.#checkConfig();
    }
    const current = heads.current();
    if (current !== undefined) {
      this.#checkHead(current);
    }
  }

  get forks(): ChainForks {
    return this.#forks;
  }

  /** Empty if no node has reported them. */
  get systemContracts(): readonly Address[] {
    return this.#systemContracts;
  }

  close(): void {
    for (const stop of this.#stops.splice(0)) {
      stop();
    }
  }

  /** A reorganisation, or blocks of another node, can end a difference. */
  #checkHead(heads: Heads): void {
    const { timestamp, number } = heads.latest;
    const header = { number, timestamp, fields: heads.header(number) ?? {} };
    this.#headerDifference = findHeaderDifference(header, this.#options.forks, this.#headerDifference);
    this.#update(timestamp);
  }

  /** Without a response to eth_config, the last difference stays. */
  async #checkConfig(): Promise<void> {
    const { callNode, forks, genesisHash, heads } = this.#options;
    try {
      const config = await callNode("eth_config", []);
      this.#configDifference = findRuleDifference(config, forks, genesisHash());
      this.#systemContracts = readSystemContracts(config);
    } catch {
      return;
    }
    const timestamp = heads.current()?.latest.timestamp;
    if (timestamp !== undefined) {
      this.#update(timestamp);
    }
  }

  #update(headTimestamp: bigint): void {
    const { chain, forks, forwarded, telemetry } = this.#options;
    const differences = [this.#configDifference, this.#headerDifference].flatMap((difference) => difference ?? []);
    const unknownFrom = findUnknownFrom(forks, differences);
    if (unknownFrom !== this.#forks.unknownFrom) {
      this.#forks = withUnknownFrom(forks, unknownFrom);
    }
    const isKnown = areRulesKnown(this.#forks, headTimestamp);
    for (const difference of differences) {
      this.#log(difference);
    }
    if (!isKnown && differences.length === 0 && unknownFrom !== undefined) {
      this.#log({ from: unknownFrom, what: "a fork that is not implemented" });
    }
    telemetry.metrics.rulesUnknown.set({ chain }, isKnown ? 0 : 1);
    forwarded.set("rulesUnknown", !isKnown);
  }

  #log({ from, what }: RuleDifference): void {
    if (this.#logged.has(what)) {
      return;
    }
    this.#logged.add(what);
    const { chain, telemetry } = this.#options;
    telemetry.log.error(
      { chain, from: Number(from), what },
      "the rules of blocks from this time on are not known: nodes execute them",
    );
  }
}

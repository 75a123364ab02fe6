import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { errorText } from "../core/errorText.ts";
import type { FollowedHeads, Heads } from "../core/heads.ts";
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
import { forksOfFile } from "../ethereum/forksFile.ts";
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

/** Reads the forks of a chain from a file with fork times, and from the table. Throws an error that names the file. */
export const readForksFile = (file: string, chainId: bigint): ChainForks | undefined => {
  try {
    return forksOfFile(JSON.parse(readFileSync(file, "utf8")), chainId);
  } catch (cause) {
    throw new Error(`${file}: ${errorText(cause)}`, { cause });
  }
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
  forksFile?: string,
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
  const known = forksFile === undefined ? chainForks(chainId) : readForksFile(forksFile, chainId);
  if (known !== undefined && hasNewestForks(known)) {
    return { forks: known, hasTimes: true };
  }
  const shown = await readNewestFork(callNode);
  if (known !== undefined) {
    return { forks: { ...withShownForks(known, shown), isShown: true }, hasTimes: true };
  }
  return shown && { forks: { ...opForksUpTo(chainId, shown), isShown: true }, hasTimes: false };
};

/** Follows the rules of a chain. Resolves after the first read of a node's rules, with undefined if the rules are unknown. */
export const watchRules = async (
  option: ForksOption,
  chainId: bigint,
  options: Omit<RulesWatchOptions, "forks" | "hasTimes">,
): Promise<RulesWatch | undefined> => {
  const { chain, callNode, forksFile, forwarded, telemetry } = options;
  const resolved = await resolveForks(option, chainId, callNode, forksFile).catch((err: unknown) => {
    telemetry.log.warn({ err, chain }, "the chain's rules could not be read: nothing is executed here");
    return undefined;
  });
  if (resolved === undefined) {
    forwarded.set("rulesUnknown", option !== "none");
    return undefined;
  }
  const rules = new RulesWatch({ ...options, ...resolved, forksFile: option === "auto" ? forksFile : undefined });
  await rules.start();
  return rules;
};

const CHECK_MS = 10 * 60_000;
const WATCH_MS = 2_000;

export interface RulesWatchOptions {
  readonly chain: string;
  readonly forks: ChainForks;
  /** Whether `forks` has the chain's own fork times, so they can be compared with those of a node. */
  readonly hasTimes: boolean;
  /** Fork times beside those of the table. It is read again when it changes. */
  readonly forksFile?: string | undefined;
  readonly genesisHash: () => Hash;
  readonly heads: FollowedHeads;
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
  /** Without the differences of the nodes. */
  #known: ChainForks;
  #forks: ChainForks;

  constructor(options: RulesWatchOptions) {
    this.#options = options;
    this.#known = options.forks;
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
    }
    await this.#check();
    this.#watchFile();
  }

  async #check(): Promise<void> {
    const { heads, hasTimes } = this.#options;
    if (hasTimes) {
      await this.#checkConfig();
    }
    const current = heads.current();
    if (current !== undefined) {
      this.#checkHead(current);
    }
  }

  /** `stat` sees how Kubernetes changes a mounted file. */
  #watchFile(): void {
    const { forksFile: file, hasTimes } = this.#options;
    if (file === undefined || !hasTimes) {
      return;
    }
    const onStat = (): void => void this.#readFile(file);
    watchFile(file, { interval: WATCH_MS, persistent: false }, onStat);
    this.#stops.push(() => unwatchFile(file, onStat));
  }

  async #readFile(file: string): Promise<void> {
    const { chain, telemetry } = this.#options;
    try {
      this.#known = readForksFile(file, this.#known.chainId) ?? this.#known;
    } catch (err) {
      telemetry.log.error({ err, chain }, "fork times rejected: the old ones stay active");
      return;
    }
    telemetry.log.info({ chain }, "fork times read from the file");
    this.#forks = this.#known;
    this.#headerDifference = undefined;
    this.#configDifference = undefined;
    await this.#check();
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
    this.#headerDifference = findHeaderDifference(header, this.#known, this.#headerDifference);
    this.#update(timestamp);
  }

  /** Without a response to eth_config, the last difference stays. */
  async #checkConfig(): Promise<void> {
    const { callNode, genesisHash, heads } = this.#options;
    try {
      const config = await callNode("eth_config", []);
      this.#configDifference = findRuleDifference(config, this.#known, genesisHash());
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
    const { chain, forwarded, telemetry } = this.#options;
    const forks = this.#known;
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

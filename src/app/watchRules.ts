import type { HeadChange, Heads } from "../core/heads.ts";
import { smaller } from "../ethereum/bigintOrder.ts";
import type { Hash } from "../ethereum/hex.ts";
import { findRuleDifference, type RuleDifference } from "../ethereum/nodeRules.ts";
import { areRulesKnown, type ChainForks } from "../ethereum/rules.ts";
import { unknownFields } from "../ethereum/unknownFields.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

const CHECK_MS = 10 * 60_000;

export interface RulesWatchOptions {
  readonly chain: string;
  readonly forks: ChainForks;
  /** Whether `forks` has the chain's own fork times, so that a node's can be compared with them. */
  readonly hasTimes: boolean;
  readonly genesisHash: () => Hash;
  readonly heads: { current(): Heads | undefined; subscribe(listener: (change: HeadChange) => void): () => void };
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
  readonly telemetry: Telemetry;
}

/** The rules of a chain as they are known now: its fork times, limited by what headers and eth_config of its nodes show. */
export class RulesWatch {
  readonly #options: RulesWatchOptions;
  readonly #logged = new Set<string>();
  readonly #stops: (() => void)[] = [];
  #fromConfig: RuleDifference | undefined;
  #fromHeader: RuleDifference | undefined;
  #forks: ChainForks;

  constructor(options: RulesWatchOptions) {
    this.#options = options;
    this.#forks = options.forks;
  }

  /** Resolves once a node was asked for its rules. */
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
    if (current !== undefined) this.#checkHead(current);
  }

  get forks(): ChainForks {
    return this.#forks;
  }

  close(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #checkHead(heads: Heads): void {
    const { timestamp, number } = heads.latest;
    const names = unknownFields(heads.header(number) ?? {});
    if (names.length === 0) {
      // A reorganisation or another node's blocks: this head is of a known fork again.
      this.#fromHeader = undefined;
    } else {
      const from = this.#fromHeader?.from ?? timestamp;
      this.#fromHeader = { from: smaller(from, timestamp), what: `header field ${names.join(", ")}` };
    }
    this.#update(timestamp);
  }

  /** A node without eth_config tells nothing; what was seen before still holds. */
  async #checkConfig(): Promise<void> {
    const { ask, forks, genesisHash, heads } = this.#options;
    try {
      this.#fromConfig = findRuleDifference(await ask("eth_config", []), forks, genesisHash());
    } catch {
      return;
    }
    const timestamp = heads.current()?.latest.timestamp;
    if (timestamp !== undefined) this.#update(timestamp);
  }

  #update(headTimestamp: bigint): void {
    const { chain, forks, telemetry } = this.#options;
    const found = [this.#fromConfig, this.#fromHeader].flatMap((difference) => difference ?? []);
    const times = [forks.unknownFrom, ...found.map(({ from }) => from)].flatMap((time) => time ?? []);
    const [unknownFrom] = times.sort((one, other) => Number(one - other));
    if (unknownFrom !== this.#forks.unknownFrom) {
      const { unknownFrom: _, ...known } = forks;
      this.#forks = unknownFrom === undefined ? known : { ...known, unknownFrom };
    }
    const isKnown = areRulesKnown(this.#forks, headTimestamp);
    for (const difference of found) this.#log(difference);
    if (!isKnown && found.length === 0 && unknownFrom !== undefined) {
      this.#log({ from: unknownFrom, what: "a fork that is not implemented" });
    }
    telemetry.metrics.rulesUnknown.set({ chain }, isKnown ? 0 : 1);
  }

  #log({ from, what }: RuleDifference): void {
    if (this.#logged.has(what)) return;
    this.#logged.add(what);
    const { chain, telemetry } = this.#options;
    telemetry.log.error(
      { chain, from: Number(from), what },
      "the rules of blocks from this time on are not known: nodes execute them",
    );
  }
}

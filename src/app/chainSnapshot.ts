import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { ChainConfig } from "../config/schema.ts";
import type { BlockId, HeaderFields } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { parseSealedBlock } from "../nodes/blockReads.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { isCanonicalIn } from "../state/awaitedBlocks.ts";
import type { AnswerSource, AnswerTarget } from "../state/calls/storedAnswers.ts";
import { packSnapshot, type SnapshotChain, SnapshotEnded, type SnapshotParts } from "../state/snapshot/packSnapshot.ts";
import {
  newestCanonical,
  type Restored,
  type RestoreTarget,
  restoreSnapshot,
} from "../state/snapshot/restoreSnapshot.ts";
import type { SnapshotHeader } from "../state/snapshot/snapshotFormat.ts";
import { maxMissingBlocks, type StateFollower } from "../state/stateFollower.ts";
import type { DataStorage } from "../storage/dataStorage.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { hasHeaderHash } from "../verification/checkHeader.ts";
import type { ChainViews } from "./chainViews.ts";
import { rulesOf, untilLinked } from "./stateSuccession.ts";
import type { Upstreams } from "./upstreams.ts";

/** A killed process loses what became known since. On fast chains, the interval is shorter. */
const INTERVAL_MS = 300_000;
/** The part of the blocks that may be missing which come in an interval. The restart takes time too. */
const INTERVAL_SHARE = 3 / 4;

/** Returns the time between two snapshots. Beyond the blocks that may be missing, a restart would lose all values. */
export const snapshotIntervalMs = (blockTimeMs: number): number =>
  Math.min(INTERVAL_MS, maxMissingBlocks(blockTimeMs) * blockTimeMs * INTERVAL_SHARE);

/** The thread opens the folder while the chain reads its first head. */
const OPEN_MS = 1_000;
/** A snapshot is at most this part of the folder, of which there are two at a time. */
const MAX_SHARE = 1 / 16;
/** The end of the process waits this long for a save. A million values take 3 to 8 s. */
export const SNAPSHOT_SAVE_MS = 10_000;
const MAX_WRITE_MS = 60_000;

/** Options of which known values depend. */
const optionsOf = ({ state: { source }, reads: { agree } }: ChainConfig) => ({ source, agree });

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

const toText = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** Where snapshots are stored. */
type SnapshotStorage = Pick<DataStorage, "maxBytes" | "onOpened" | "readSnapshot" | "writeSnapshot" | "removeSnapshot">;

export interface ChainSnapshotOptions {
  readonly config: ChainConfig;
  readonly upstreams: Upstreams;
  readonly views: Pick<ChainViews, "forks">;
  readonly storage: SnapshotStorage;
  readonly telemetry: Pick<Telemetry, "log">;
  readonly signal: AbortSignal;
}

/** Values to which those of a snapshot can be added. */
export interface RestorableState extends SnapshotParts {
  /** Compares the cost of missing blocks with that of learning the values again. `savedUnits`: of a minute's reads that known values answer. */
  isWorthIt(missingBlocks: number, savedUnits: number): boolean;
  /** Undefined: calls are not answered here. */
  readonly answers: AnswerTarget | undefined;
}

/** What is saved, with its follower. */
export interface SavedState extends RestorableState {
  readonly answers: (AnswerSource & AnswerTarget) | undefined;
  readonly follower: Pick<StateFollower, "generation" | "untilApplied" | "beginAt" | "forget">;
}

/** The snapshot of one chain's known state in the data folder. */
export class ChainSnapshot {
  readonly #options: ChainSnapshotOptions;
  #saved: SavedState | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  /** The number of calls of `discard`. */
  #discards = 0;
  /** The block of the newest snapshot. */
  #newest: string | undefined;
  /** Another process has the folder, whose snapshot may be restored later. */
  #isAwaited = false;
  #unsubscribe: (() => void) | undefined;

  constructor(options: ChainSnapshotOptions) {
    this.#options = options;
  }

  /** Restores what was known before a restart, into empty values. If the folder is not open, `begin` awaits it. Never rejects. */
  async restore(state: RestorableState): Promise<void> {
    this.#isAwaited = !(await this.#untilOpen());
    if (this.#isAwaited) {
      return;
    }
    const { values } = state;
    await this.#read(state, {
      answers: state.answers,
      addHeaders: (headers) => this.#addHeaders(headers),
      findBlock: (header) => this.#findBlock(header, state),
      begin: (block) => {
        values.begin(block);
        return true;
      },
      drop: () => values.clear(),
      isCurrent: () => true,
    });
  }

  /** Goes on for a chain that this one replaces, with its values. */
  succeed({ isAwaited }: { readonly isAwaited: boolean }): void {
    this.#isAwaited = isAwaited;
  }

  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** Saves this state again and again from now on, and restores the snapshot of a process that had the folder until then. */
  begin(saved: SavedState): void {
    this.#saved = saved;
    this.#timer ??= setInterval(
      () => void this.save(),
      snapshotIntervalMs(this.#options.upstreams.heads.blockTimeMs),
    ).unref();
    if (this.#isAwaited) {
      this.#unsubscribe ??= this.#options.storage.onOpened(() => void this.#takeOver());
    }
  }

  /** Ends the saving: another chain has the values now. */
  end(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
    this.#saved = undefined;
  }

  /** Adds the values of the process before to those that this one has learned meanwhile. */
  async #takeOver(): Promise<void> {
    const saved = this.#saved;
    if (!this.#isAwaited || saved === undefined) {
      return;
    }
    const { follower } = saved;
    let { generation } = follower;
    await this.#read(saved, {
      answers: saved.answers,
      addHeaders: () => undefined,
      findBlock: async (header) => {
        const block = await this.#findBlock(header, saved);
        await (block && follower.untilApplied(block));
        return block;
      },
      begin: (block) => {
        const hasBegun = saved === this.#saved && follower.beginAt(block);
        generation = follower.generation;
        return hasBegun;
      },
      drop: () => follower.forget("fault"),
      isCurrent: () => saved === this.#saved && follower.generation === generation,
    });
    this.#isAwaited = false;
  }

  async #read(parts: SnapshotParts, target: RestoreTarget): Promise<void> {
    const { config, storage, telemetry } = this.#options;
    try {
      const restored = await restoreSnapshot(storage.readSnapshot(this.#name), this.#chain(), parts, target);
      if (restored !== undefined) {
        this.#onRestored(restored);
      }
    } catch (err) {
      if (!(err instanceof SnapshotEnded)) {
        telemetry.log.warn({ chain: config.name, err }, "the snapshot of known state is dropped");
        await storage.removeSnapshot(this.#name);
      }
    }
  }

  /** Writes what is known now, unless nothing changed. Never rejects. */
  save(): Promise<void> {
    const saved = this.#saved;
    const head = saved?.values.head?.hash;
    if (saved === undefined || head === undefined || head === this.#newest || this.#isAwaited) {
      return this.#writing ?? Promise.resolve();
    }
    this.#writing ??= this.#write(saved, head).finally(() => {
      this.#writing = undefined;
    });
    // A disk that hangs must not keep the process.
    return Promise.race([this.#writing, wait(SNAPSHOT_SAVE_MS, undefined, { ref: false })]);
  }

  /** Removes the snapshot, because a value was wrong. */
  discard(): void {
    this.#discards++;
    this.#newest = undefined;
    void this.#options.storage.removeSnapshot(this.#name);
  }

  async #write(saved: SavedState, head: string): Promise<void> {
    const { config, storage, telemetry } = this.#options;
    const { follower } = saved;
    const { generation } = follower;
    const endMs = performance.now() + MAX_WRITE_MS;
    const discards = this.#discards;
    const isTrusted = (): boolean => discards === this.#discards;
    const isCurrent = (): boolean =>
      saved === this.#saved && follower.generation === generation && isTrusted() && performance.now() < endMs;
    const maxBytes = Math.floor(storage.maxBytes * MAX_SHARE);
    try {
      const chunks = packSnapshot({ ...saved, headers: this.#headers }, this.#chain(), { maxBytes, isCurrent });
      const isWritten = await storage.writeSnapshot(this.#name, chunks);
      if (isWritten && isTrusted()) {
        this.#newest = head;
      } else if (isWritten) {
        await storage.removeSnapshot(this.#name);
      }
    } catch (err) {
      const level = err instanceof SnapshotEnded ? "debug" : "error";
      telemetry.log[level]({ chain: config.name, err }, "the snapshot of known state was not written");
    }
  }

  get #headers(): readonly HeaderFields[] {
    return this.#options.upstreams.heads.sealed.flatMap(({ header }) => (header === undefined ? [] : [header]));
  }

  /** The chain links to these blocks instead of reading them. Whoever writes to the storage can write a header of another block. */
  #addHeaders(headers: readonly unknown[]): void {
    const blocks = headers
      .map(parseSealedBlock)
      .filter((sealed) => sealed !== undefined)
      .filter(({ header }) => header !== undefined && hasHeaderHash(header));
    this.#options.upstreams.heads.addKnown(blocks);
  }

  /** Chains with one chain id and genesis can be different ones: a fork beside its origin. */
  get #name(): string {
    const { config, upstreams } = this.#options;
    return `${config.name}:${upstreams.genesis.chainId}:${upstreams.genesis.hash}`;
  }

  #chain(): SnapshotChain {
    const { config, upstreams } = this.#options;
    const { chainId, hash } = upstreams.genesis;
    const rules = JSON.stringify([rulesOf(this.#options) ?? null, optionsOf(config)], toText);
    const nodes = config.nodes.map((node, index) => ({
      name: nodeName(node, index),
      address: digest(node.url),
    }));
    return { chainId: String(chainId), genesis: hash, rules: digest(rules), nodes };
  }

  /** Returns whether the folder is open. */
  async #untilOpen(): Promise<boolean> {
    const { storage, signal } = this.#options;
    const opened = Promise.withResolvers<boolean>();
    const unsubscribe = storage.onOpened(() => opened.resolve(true));
    const ending = AbortSignal.any([signal, timeoutSignal(OPEN_MS)]);
    ending.addEventListener("abort", () => opened.resolve(false), { once: true });
    const isOpen = await opened.promise;
    unsubscribe();
    return isOpen;
  }

  async #findBlock(header: SnapshotHeader, state: RestorableState): Promise<BlockId | undefined> {
    const { heads } = this.#options.upstreams;
    const number = BigInt(header.number);
    const missing = Math.max(0, Number((heads.current()?.latest.number ?? number) - number));
    if (!state.isWorthIt(missing, header.costs.repeatedUnits)) {
      return undefined;
    }
    await untilLinked({ number, hash: header.hashes[0] ?? "0x" }, this.#options);
    const current = heads.current();
    return current && newestCanonical(header, isCanonicalIn(current));
  }

  #onRestored({ block, ...counts }: Restored): void {
    const { config, telemetry } = this.#options;
    telemetry.log.info(
      { chain: config.name, ...counts, number: block?.number.toString() },
      "known state is restored from the data folder",
    );
  }
}

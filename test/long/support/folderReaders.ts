import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../support/builders/randomValues.ts";
import { ask } from "../../support/clients/askAll.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { callAtOneBlock } from "../../world/judge/comparedReads.ts";
import type { FolderWorld } from "./folderWorld.ts";

const READERS = 2;
const PAUSE_MS = 20;
const NEW_PAUSE_MS = 60;
const MAX_SHOWN = 5;

/** What clients saw in a whole run. */
export interface FolderTally {
  answers: number;
  wrong: number;
  failed: number;
  /** The first wrong or failed answers. */
  readonly shown: string[];
}

export interface FolderClients {
  readonly world: FolderWorld;
  readonly tally: FolderTally;
  /** By call that was answered: the time of its first answer, on the clock of `performance`. */
  readonly answeredMs: Map<ChainCall, number>;
  random(): number;
}

/** Clients that read final blocks and state all the time, each one request after the other, until forebay is killed. */
export class FolderReaders {
  readonly #url: string;
  readonly #clients: FolderClients;
  readonly #running: Promise<unknown>;
  #isOver = false;

  constructor(url: string, clients: FolderClients) {
    this.#url = url;
    this.#clients = clients;
    const { random, answeredMs, world } = clients;
    const known = (): ChainCall | undefined =>
      answeredMs.size === 0 ? undefined : pick(random, [...answeredMs.keys()]);
    const fresh = (): ChainCall | undefined => world.calls[answeredMs.size];
    this.#running = Promise.all([
      ...Array.from({ length: READERS }, () => this.#repeat(PAUSE_MS, () => this.#readFinal(known()))),
      this.#repeat(NEW_PAUSE_MS, () => this.#readFinal(fresh())),
      this.#repeat(PAUSE_MS, () => this.#readState()),
    ]);
  }

  /** From now on, an answer may fail, because forebay is killed. A wrong one still counts. */
  expectEnd(): void {
    this.#isOver = true;
  }

  /** Resolves when the last requests have ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #repeat(pauseMs: number, read: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await read().catch((error: unknown) => this.#fail(String(error)));
      await sleep(this.#clients.random() * 2 * pauseMs);
    }
  }

  async #readFinal(call: ChainCall | undefined): Promise<void> {
    if (call === undefined) {
      return;
    }
    const { world, tally, answeredMs } = this.#clients;
    const { result, text } = await ask(`${this.#url}/sealed`, call);
    if (result === undefined) {
      this.#fail(`${call.method} ${text.slice(0, 200)}`);
      return;
    }
    tally.answers++;
    this.#check(JSON.stringify(call), result, world.truthOf(call));
    if (!answeredMs.has(call)) {
      answeredMs.set(call, performance.now());
    }
  }

  /** Reads all balances at one block, which the answer names. */
  async #readState(): Promise<void> {
    const { world, tally } = this.#clients;
    const calls = world.accounts.map((account) => ({ method: "eth_getBalance", params: [account, "latest"] }));
    const answered = await callAtOneBlock(`${this.#url}/state`, "latest", calls);
    if (answered === undefined) {
      this.#fail("latest has no block");
      return;
    }
    for (const [index, { result, error }] of answered.results.entries()) {
      const account = world.accounts[index];
      if (error !== undefined || account === undefined) {
        this.#fail(`eth_getBalance ${error?.message}`);
        continue;
      }
      tally.answers++;
      this.#check(`${account} at ${answered.hash}`, result, world.balanceAt(answered.hash, account));
    }
  }

  #check(what: string, actual: unknown, expected: unknown): void {
    if (actual !== expected) {
      this.#clients.tally.wrong++;
      this.#show(`${what}: ${String(actual).slice(0, 200)} instead of ${String(expected).slice(0, 200)}`);
    }
  }

  #fail(text: string): void {
    if (!this.#isOver) {
      this.#clients.tally.failed++;
      this.#show(text);
    }
  }

  #show(text: string): void {
    const { shown } = this.#clients.tally;
    if (shown.length < MAX_SHOWN) {
      shown.push(text);
    }
  }
}

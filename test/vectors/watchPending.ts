import { setTimeout as wait } from "node:timers/promises";
import { connectSocket } from "../support/clients/socketClient.ts";
import { positionOf } from "./playBuilder.ts";
import { type LogId, logId, type RecordedTruth } from "./recordedTruth.ts";

/** Values that a client read of one view. */
interface Sample {
  readonly atMs: number;
  readonly mode: string;
  readonly number: number;
  readonly transactions: readonly string[];
  readonly latest: number;
  readonly nonces: readonly bigint[];
  readonly values: readonly string[];
  readonly logs: readonly string[] | undefined;
}

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

interface BlockFields {
  readonly number: string;
  readonly transactions: readonly string[];
}

const POLL_MS = 25;
const FILTER_MS = 120;
/** After the last event, so that nothing wrong follows. */
const TAIL_MS = 300;
const MAX_LATE_MS = 20_000;
/** Values of these modes are promised to be true. */
const TRUE_MODES: ReadonlySet<string> = new Set(["live", "degraded"]);

export interface Watch {
  /** Ends the clients. Returns what was wrong, in order of time. */
  end(sealed: readonly number[], isReorganised: boolean): Promise<readonly string[]>;
  readonly modes: ReadonlySet<string>;
  readonly samples: number;
  /** Returns the largest number of transactions with which this block was pending. */
  mostPending(number: number): number;
}

const requestOf = (method: string, params: readonly unknown[], id: number) => ({ jsonrpc: "2.0", id, method, params });

/** Reads `pending` again and again in one batch, and checks each answer. */
class Poller {
  readonly problems: string[] = [];
  readonly modes = new Set<string>();
  readonly mostPending = new Map<number, number>();
  samples = 0;
  readonly #url: string;
  readonly #truth: RecordedTruth;
  readonly #startedMs = performance.now();
  readonly #nonces: bigint[] = [];
  #isOver = false;
  #last: Sample | undefined;

  constructor(url: string, truth: RecordedTruth) {
    this.#url = url;
    this.#truth = truth;
  }

  end(): void {
    this.#isOver = true;
  }

  async run(isReorganised: () => boolean): Promise<void> {
    while (!this.#isOver) {
      const sample = await this.#read();
      if (sample) {
        this.#check(sample, isReorganised());
      }
      await wait(POLL_MS);
    }
  }

  #report(sample: Pick<Sample, "atMs" | "mode">, text: string): void {
    this.problems.push(`${Math.round(sample.atMs)} ms, ${sample.mode}: ${text}`);
  }

  async #read(): Promise<Sample | undefined> {
    const { accounts, slots } = this.#truth.watched;
    const calls: readonly (readonly [string, readonly unknown[]])[] = [
      ["eth_getBlockByNumber", ["pending", false]],
      ["eth_getBlockByNumber", ["latest", false]],
      ["eth_getLogs", [{ fromBlock: "pending" }]],
      ...accounts.flatMap((address): (readonly [string, readonly unknown[]])[] => [
        ["eth_getTransactionCount", [address, "pending"]],
        ["eth_getBalance", [address, "pending"]],
      ]),
      ...slots.map(([address, slot]) => ["eth_getStorageAt", [address, slot, "pending"]] as const),
    ];
    const response = await fetch(this.#url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(calls.map(([method, params], id) => requestOf(method, params, id))),
    });
    const mode = response.headers.get("x-forebay-pending") ?? "none";
    const atMs = performance.now() - this.#startedMs;
    const answers = (await response.json()) as readonly Answer[];
    this.modes.add(mode);
    const [pending, latest, logs, ...values] = answers;
    const failed = values.find(({ error }) => error !== undefined);
    if (!pending?.result || !latest?.result) {
      this.#report({ atMs, mode }, `pending or latest is null: ${JSON.stringify([pending, latest])}`);
      return undefined;
    }
    this.samples++;
    const { number, transactions } = pending.result as BlockFields;
    const texts = failed ? [] : values.map(({ result }) => String(result));
    return {
      atMs,
      mode,
      number: Number(number),
      transactions,
      latest: Number((latest.result as BlockFields).number),
      nonces: failed ? [] : accounts.map((_, at) => BigInt(texts[2 * at] ?? 0)),
      values: texts,
      logs: logs?.error ? undefined : ((logs?.result ?? []) as readonly LogId[]).map(logId),
    };
  }

  #check(sample: Sample, isReorganised: boolean): void {
    const before = this.#last;
    this.#last = sample;
    if (sample.number > sample.latest) {
      const most = Math.max(this.mostPending.get(sample.number) ?? 0, sample.transactions.length);
      this.mostPending.set(sample.number, most);
    }
    this.#checkOrder(sample, isReorganised ? undefined : before);
    if (TRUE_MODES.has(sample.mode) && sample.values.length > 0) {
      this.#checkValues(sample);
      this.#checkNonces(sample, isReorganised);
    }
  }

  /** A transaction that was shown and is sealed stays in the view. */
  #checkOrder(sample: Sample, before: Sample | undefined): void {
    const shown = `${sample.number} with ${sample.transactions.length} transactions`;
    const sealed = this.#truth.transactionsOf(sample.number);
    if (TRUE_MODES.has(sample.mode) && sample.transactions.some((hash, at) => sealed[at] !== hash)) {
      const isKnown = sealed.length > 0;
      if (isKnown) {
        this.#report(sample, `${shown}: not the sealed ones`);
      }
    }
    if (before === undefined) {
      return;
    }
    const kept = before.transactions.filter((hash) => this.#truth.transactionsOf(before.number).includes(hash));
    const isBehind =
      sample.number < before.number ||
      (sample.number === before.number && kept.some((hash) => !sample.transactions.includes(hash)));
    if (isBehind && !this.#isWithdrawn(sample, before)) {
      this.#report(sample, `${shown} after ${before.number} with ${before.transactions.length} (${before.mode})`);
    }
  }

  /** The first message of a block is withdrawn if the next one fails: the block below, which is not sealed, may lack its last one. */
  #isWithdrawn({ mode, number, latest }: Sample, before: Sample): boolean {
    const positions = this.#truth.positionsOf(before.number, before.transactions.length);
    const isFirst = positions.includes(positionOf(before.number, 0));
    return mode === "degraded" && isFirst && before.number === number + 1 && number > latest;
  }

  #checkValues(sample: Sample): void {
    const { number, transactions, values, logs } = sample;
    const positions = this.#truth.positionsOf(number, transactions.length);
    const isTrue = positions.some((position) => {
      const expected = this.#truth.valuesAt(position);
      return expected.every((value, at) => value === values[at]);
    });
    if (!isTrue) {
      this.#report(sample, `the values are not those of ${number} after ${transactions.length} transactions`);
    }
    if (number <= sample.latest) {
      return;
    }
    const below = Array.from({ length: number - sample.latest - 1 }, (_, at) => sample.latest + 1 + at);
    const expected = [
      ...below.flatMap((each) => this.#truth.logsOf(each, Number.POSITIVE_INFINITY)),
      ...this.#truth.logsOf(number, transactions.length),
    ];
    if (JSON.stringify(logs) !== JSON.stringify(expected)) {
      this.#report(sample, `${logs?.length} logs instead of ${expected.length}`);
    }
  }

  #checkNonces(sample: Sample, isReorganised: boolean): void {
    for (const [at, nonce] of sample.nonces.entries()) {
      const highest = this.#nonces[at] ?? 0n;
      if (nonce < highest && !isReorganised) {
        this.#report(sample, `nonce ${highest}, then ${nonce} of ${this.#truth.watched.accounts[at]}`);
      }
      this.#nonces[at] = nonce > highest || isReorganised ? nonce : highest;
    }
  }
}

type Removable = LogId & { readonly removed?: boolean };

/** Whether a client was sent all these logs. */
const hasLogs = (events: readonly unknown[], expected: readonly string[]): boolean => {
  const sent = new Set((events as readonly Removable[]).map(logId));
  return expected.every((id) => sent.has(id));
};

/** Returns the logs that a client holds in the end, and reports repeated, unknown and wrongly removed ones. */
const netLogs = (events: readonly Removable[], name: string, problems: string[], isTrue: (id: string) => boolean) => {
  const held = new Set<string>();
  for (const event of events) {
    const id = logId(event);
    if (event.removed !== true) {
      if (held.has(id)) {
        problems.push(`${name}: ${id} twice`);
      }
      held.add(id);
      continue;
    }
    if (!held.delete(id)) {
      problems.push(`${name}: ${id} removed, and was not there`);
    }
    if (isTrue(id)) {
      problems.push(`${name}: ${id} removed, and it is sealed`);
    }
  }
  return held;
};

const compareSets = (
  name: string,
  held: ReadonlySet<string>,
  expected: readonly string[],
  problems: string[],
): void => {
  const missing = expected.filter((id) => !held.has(id));
  const surplus = [...held].filter((id) => !expected.includes(id));
  if (missing.length + surplus.length > 0) {
    problems.push(`${name}: ${missing.length} missing, ${surplus.length} surplus`);
  }
};

/** Starts the clients of one chain: polls of `pending`, subscriptions, a filter. */
export const watchPending = async (
  url: string,
  truth: RecordedTruth,
  isReorganising: () => boolean,
): Promise<Watch> => {
  const poller = new Poller(url, truth);
  const socket = await connectSocket(url);
  const newHeads = await socket.subscribe("newHeads");
  const logs = await socket.subscribe("logs", {});
  const pendingLogs = await socket.subscribe("pendingLogs", {});
  const blocks = await socket.subscribe("newFlashblocks");
  const transactions = await socket.subscribe("newFlashblockTransactions");
  const { result: filter } = await socket.call("eth_newFilter", {});
  const polled: unknown[] = [];
  const state = { isOver: false };
  const readFilter = async (): Promise<void> => {
    const { result, error } = await socket.call("eth_getFilterChanges", filter);
    if (error === undefined) {
      polled.push(...(result as readonly unknown[]));
    }
  };
  const filtering = (async () => {
    while (!state.isOver) {
      await wait(FILTER_MS);
      await readFilter();
    }
  })();
  const polling = poller.run(isReorganising);
  return {
    get modes() {
      return poller.modes;
    },
    get samples() {
      return poller.samples;
    },
    mostPending: (number) => poller.mostPending.get(number) ?? 0,
    end: async (sealed, isReorganised) => {
      const expected = sealed.flatMap((number) => truth.logsOf(number, Number.POSITIVE_INFINITY));
      // On a busy machine, the last events are late. Nothing wrong follows after them.
      const untilMs = performance.now() + MAX_LATE_MS;
      const isComplete = (): boolean =>
        newHeads.length >= sealed.length && [logs, polled, pendingLogs].every((list) => hasLogs(list, expected));
      while (!isComplete() && performance.now() < untilMs) {
        await wait(POLL_MS);
      }
      await wait(TAIL_MS);
      state.isOver = true;
      poller.end();
      await Promise.all([polling, filtering]);
      await readFilter();
      await socket.close();
      const problems = [...poller.problems];
      const all = new Set(expected);
      const isWronglyRemoved = (id: string): boolean => !isReorganised && all.has(id);
      for (const [name, list] of [
        ["logs", logs],
        ["filter", polled],
        ["pendingLogs", pendingLogs],
      ] as const) {
        compareSets(name, netLogs(list as readonly Removable[], name, problems, isWronglyRemoved), expected, problems);
      }
      const seenBlocks = (blocks as readonly BlockFields[]).map(
        (block) => `${Number(block.number)} with ${block.transactions.length}`,
      );
      const forward = (blocks as readonly BlockFields[]).findIndex((block, at) => {
        const before = (blocks as readonly BlockFields[])[at - 1];
        return before !== undefined && Number(before.number) > Number(block.number);
      });
      if (forward >= 0 && !isReorganised) {
        problems.push(`newFlashblocks: ${seenBlocks[forward]} after ${seenBlocks[forward - 1]}`);
      }
      for (const [at, seen] of seenBlocks.entries()) {
        const hash = Reflect.get(Object(blocks[at]), "hash");
        const isRepeated = blocks.findIndex((block) => Reflect.get(Object(block), "hash") === hash) < at;
        if (isRepeated && !isReorganised && isEmptyMessage(blocks, at) === false) {
          problems.push(`newFlashblocks: ${seen} twice`);
        }
      }
      const repeated = transactions.filter((hash, at) => transactions.indexOf(hash) < at);
      if (repeated.length > 0 && !isReorganised) {
        problems.push(`newFlashblockTransactions: ${repeated.length} twice`);
      }
      const heads = (newHeads as readonly BlockFields[]).map(({ number }) => Number(number));
      if (!isReorganised && heads.join() !== [...sealed].join()) {
        problems.push(`newHeads: ${heads.join()}`);
      }
      return problems;
    },
  };
};

/** An empty message repeats the hash of the one before. */
const isEmptyMessage = (blocks: readonly unknown[], at: number): boolean =>
  Reflect.get(Object(blocks[at]), "hash") === Reflect.get(Object(blocks[at - 1]), "hash");

import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Address, formatData, type Hash, type Hex } from "../../src/ethereum/hex.ts";
import type { Transaction } from "../../src/ethereum/transaction.ts";
import type { Anvil } from "./anvil.ts";
import { type BlockJob, startJob } from "./blockJob.ts";
import type { Flashblock, MetadataGeneration } from "./flashblock.ts";
import type { HeldTransaction, Mempool } from "./mempool.ts";
import type { NodeBlock } from "./nodeBlock.ts";

export interface SealedBlock {
  readonly number: bigint;
  readonly hash: Hash;
  readonly block: NodeBlock;
}

export interface SequencerEvents {
  message: [Flashblock];
  sealed: [SealedBlock];
  /** An error of the devnet itself; it continues with the next block. The error also rejects waits for other events with `once`. */
  error: [unknown];
}

export interface SequencerOptions {
  readonly chainId: number;
  readonly blockTimeMs: number;
  readonly flashblockMs: number;
  readonly generation: MetadataGeneration;
  readonly deposits: boolean;
  readonly manual: boolean;
  readonly ready: (() => Promise<void>) | undefined;
  /** Whether a block that is late has the time of the clock. If not, it has the time at which it was due. */
  readonly followsClock: boolean;
  /** Returns the current node, because it can be restarted. */
  readonly node: () => Anvil;
  readonly mempool: Mempool;
}

export interface Sequencer {
  readonly events: EventEmitter<SequencerEvents>;
  /** Returns the EIP-2718 bytes of a transaction in a block. */
  rawOf(hash: Hash): Hex | undefined;
  /** Returns the sender's nonce after all transactions that the node has. */
  nextNonce(sender: Address): Promise<bigint>;
  step(): Promise<Flashblock>;
  seal(): Promise<SealedBlock>;
  pauseSealing(): void;
  reorg(depth: number): Promise<void>;
  /** Runs `act` between two blocks. No block begins during the run. */
  between<T>(act: () => Promise<T>): Promise<T>;
  setRunning(isRunning: boolean): void;
  close(): Promise<void>;
}

const MAX_RAWS = 50_000;
/** Share of the time between two messages for sending transactions to the node. */
const HANDOVER_SHARE = 0.6;

/** Runs actions one at a time, in order. */
const createTurns = () => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(act: () => Promise<T>): Promise<T> => {
    const turn = last.then(act);
    last = turn.catch(() => undefined);
    return turn;
  };
};

export const latestBlock = async (anvil: Anvil): Promise<NodeBlock> =>
  (await anvil.call("eth_getBlockByNumber", "latest", false)) as NodeBlock;

/** Builds blocks on the node message by message, and seals them, by timers or by calls of the test. */
export const createSequencer = (options: SequencerOptions): Sequencer => {
  const { node, mempool, blockTimeMs, flashblockMs } = options;
  const messagesABlock = Math.max(1, Math.round(blockTimeMs / flashblockMs));
  const events = new EventEmitter<SequencerEvents>();
  const closing = new AbortController();
  const turn = createTurns();
  const raws = new Map<Hash, Hex>();
  /** The nonce after the transactions that were sent to the node, by sender. */
  const handedNonces = new Map<Address, bigint>();
  let job: BlockJob | undefined;
  let isSealing = true;
  let isRunning = true;
  let payloads = 0;
  let previous = "0-0";

  const begin = async (): Promise<BlockJob> => {
    const parent = await latestBlock(node());
    const nowSeconds = BigInt(Math.floor(Date.now() / 1_000));
    const due = BigInt(parent.timestamp) + BigInt(Math.floor(blockTimeMs / 1_000));
    payloads++;
    return startJob(node(), {
      payloadId: `0x03${(BigInt(options.chainId) * 0x1_0000_0000n + BigInt(payloads)).toString(16).padStart(14, "0").slice(-14)}`,
      timestamp: options.followsClock && nowSeconds > due ? nowSeconds : due,
      deposits: options.deposits,
      generation: options.generation,
    });
  };

  /** Counts the sent transactions without a read at `pending`, for which the node would execute the whole block. */
  const nextNonces = async (senders: readonly Address[]): Promise<Map<Address, bigint>> => {
    const params = senders.map((sender) => [sender, "latest"]);
    const counts = await node().callAll("eth_getTransactionCount", params);
    const sealed = counts.map((count) => BigInt(String(count)));
    return new Map(
      senders.map((sender, at) => {
        const [ofNode, handed] = [sealed[at] ?? 0n, handedNonces.get(sender) ?? 0n];
        return [sender, handed > ofNode ? handed : ofNode];
      }),
    );
  };

  const takeHeld = async (gasLeft: bigint): Promise<HeldTransaction[]> =>
    mempool.take(await nextNonces(mempool.senders()), gasLeft);

  const remember = (transactions: readonly Transaction[]): void => {
    for (const { hash, raw } of transactions) {
      raws.set(hash, formatData(raw));
    }
    for (const hash of raws.keys().take(Math.max(0, raws.size - MAX_RAWS))) {
      raws.delete(hash);
    }
  };

  const sendNext = async (): Promise<Flashblock> => {
    job ??= await begin();
    // Index 0 has only the required transactions, unless it is the block's only message.
    const takesUsers = job.length > 0 || (messagesABlock === 1 && !options.manual);
    const held = takesUsers ? await takeHeld(job.gasLeft) : [];
    const budgetMs = options.manual ? Number.POSITIVE_INFINITY : flashblockMs * HANDOVER_SHARE;
    const { message, left } = await job.next(held, previous, budgetMs);
    mempool.putBack(left);
    for (const { sender, transaction } of job.handed) {
      handedNonces.set(sender, transaction.nonce + 1n);
    }
    remember(job.included.slice(job.included.length - message.diff.transactions.length));
    previous = `${job.number}-${message.index}`;
    events.emit("message", message);
    return message;
  };

  const seal = async (): Promise<SealedBlock> => {
    if (job === undefined) {
      await sendNext();
    }
    const expected = job?.included.map(({ hash }) => hash).join();
    job = undefined;
    await node().mine("evm_mine");
    const block = await latestBlock(node());
    if (block.transactions.join() !== expected) {
      throw new Error(`sealed another block: ${block.number}`);
    }
    const sealed = { number: BigInt(block.number), hash: block.hash, block };
    events.emit("sealed", sealed);
    return sealed;
  };

  const forget = (): void => {
    job = undefined;
    handedNonces.clear();
  };

  /** Returns the transactions of an unfinished block to the waiting ones. */
  const giveBack = async (): Promise<void> => {
    if (job === undefined) {
      return;
    }
    mempool.putBack(job.handed);
    forget();
    await node().call("anvil_dropAllTransactions");
  };

  const tick = async (): Promise<void> => {
    if (!isRunning || closing.signal.aborted) {
      return;
    }
    try {
      if (job !== undefined && job.length >= messagesABlock && isSealing) {
        await seal();
      }
      await sendNext();
    } catch (error) {
      if (closing.signal.aborted) {
        return;
      }
      events.emit("error", error);
      // One of its transactions may be the cause of the failure, so that they are not retried.
      forget();
      await node()
        .call("anvil_dropAllTransactions")
        .catch(() => undefined);
    }
  };

  const run = async (): Promise<void> => {
    let dueMs = performance.now();
    while (!closing.signal.aborted) {
      await options.ready?.();
      await turn(tick);
      // If the machine is too slow, reduce the pace instead of building a queue.
      dueMs = Math.max(dueMs + flashblockMs, performance.now());
      await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };

  const running = options.manual ? Promise.resolve() : run();

  return {
    events,
    rawOf: (hash) => raws.get(hash),
    nextNonce: async (sender) => (await nextNonces([sender])).get(sender) ?? 0n,
    step: () => turn(sendNext),
    seal: () => turn(seal),
    pauseSealing: () => {
      isSealing = false;
    },
    setRunning: (value) => {
      isRunning = value;
    },
    reorg: (depth) =>
      turn(async () => {
        await giveBack();
        handedNonces.clear();
        await node().mine("anvil_reorg", depth, []);
      }),
    between: (act) =>
      turn(async () => {
        if (isRunning) {
          await giveBack();
        }
        return act();
      }),
    close: async () => {
      closing.abort();
      await running;
      await turn(async () => undefined);
    },
  };
};

import { encodeDeployData, encodeFunctionData, getContractAddress, type Hex } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { type Anvil, startAnvil } from "../../devnet/anvil.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "../../devnet/token.ts";
import type { Lifespan } from "../servers/redis.ts";
import { type Front, startFront } from "./front.ts";

const CHAIN_ID = 901;
const GENESIS_SECONDS = 1_700_000_000;
const SECONDS_PER_BLOCK = 2;
const BASE_FEE = 1_000_000_000n;
/** anvil finalizes blocks 64 below its head. No reorganisation of these tests is that deep. */
const FIRST_BLOCKS = 100;
const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");

export const sender = SENDER.address;
export const recipient = `0x${"ba51".padStart(40, "0")}` as const;
export const token = getContractAddress({ from: sender, nonce: 0n });

interface NodeBlock {
  readonly number: Hex;
  readonly hash: Hex;
  readonly parentHash: Hex;
  readonly timestamp: Hex;
  readonly baseFeePerGas: Hex;
  readonly transactions: readonly Hex[];
}

/** A real node whose blocks the test mines. Equal blocks on two such nodes have equal hashes. */
export interface ForkingNode {
  readonly anvil: Anvil;
  readonly url: string;
  latest(): Promise<NodeBlock>;
  /** Returns the hashes of the heads that the node had between two times, each for at least `minMs`. */
  headsDuring(fromMs: number, toMs: number, minMs: number): readonly string[];
  /** Mines a block with two transactions. Blocks of one number with different `variant` differ. */
  mine(variant: number): Promise<void>;
  /** Replaces the newest blocks by the same number of empty ones. */
  reorg(depth: number): Promise<void>;
  /** Leaves its own branch for that of `other`, block by block. */
  follow(other: ForkingNode): Promise<void>;
}

/**
 * A node whose chain changes between two requests, never during one, as in a node with snapshots of its state. Anvil alone
 * answers a request by block hash from the state of the block that it is writing.
 */
interface AtomicNode extends Front {
  /** Runs a change once no request is in flight. Later requests wait until the change is done. */
  change(action: () => Promise<void>): Promise<void>;
}

const createAtomicNode = async (anvil: Anvil): Promise<AtomicNode> => {
  let changing: Promise<void> | undefined;
  const answering = new Set<Promise<string>>();

  const answer = async (body: string): Promise<string> => {
    while (changing !== undefined) {
      await changing;
    }
    const text = anvil.post(body);
    answering.add(text);
    return text.finally(() => answering.delete(text));
  };

  const front = await startFront(answer);
  return {
    ...front,
    change: async (action) => {
      while (changing !== undefined) {
        await changing;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      changing = promise;
      try {
        await Promise.allSettled(answering);
        await action();
      } finally {
        changing = undefined;
        resolve();
      }
    },
  };
};

const createNode = (anvil: Anvil, { url, change }: AtomicNode): ForkingNode => {
  const blockAt = async (block: string) => (await anvil.call("eth_getBlockByNumber", block, false)) as NodeBlock | null;
  const latest = async (): Promise<NodeBlock> => {
    const block = await blockAt("latest");
    if (block === null) {
      throw new Error("a node without blocks");
    }
    return block;
  };
  const seal = async (raws: readonly unknown[], timestamp: number, baseFee: string): Promise<void> => {
    await anvil.call("anvil_setNextBlockBaseFeePerGas", baseFee);
    for (const raw of raws) {
      await anvil.call("eth_sendRawTransaction", raw);
    }
    await anvil.call("evm_setNextBlockTimestamp", timestamp);
    await anvil.call("evm_mine");
  };
  const sign = (nonce: number, to: Hex | undefined, data: Hex, value = 0n): Promise<Hex> =>
    SENDER.signTransaction({
      ...{ type: "eip1559", chainId: CHAIN_ID, nonce, data, value, gas: 2_000_000n },
      ...{ maxFeePerGas: 10n * BASE_FEE, maxPriorityFeePerGas: 1n },
      ...(to !== undefined && { to }),
    });

  const mine = async (variant: number): Promise<void> => {
    const parent = await latest();
    const nonce = Number(await anvil.call("eth_getTransactionCount", sender, "latest"));
    const deploy = encodeDeployData({ abi: TOKEN_ABI, bytecode: TOKEN_BYTECODE, args: [[sender], 10n ** 24n] });
    const transfer = encodeFunctionData({
      ...{ abi: TOKEN_ABI, functionName: "transfer" },
      args: [recipient, BigInt(variant + 1)],
    });
    const raws = [
      await sign(nonce, nonce === 0 ? undefined : token, nonce === 0 ? deploy : transfer),
      await sign(nonce + 1, recipient, "0x", BigInt(variant + 1)),
    ];
    await seal(raws, Number(parent.timestamp) + SECONDS_PER_BLOCK, `0x${BASE_FEE.toString(16)}`);
  };
  const reorg = async (depth: number): Promise<void> => {
    await anvil.call("anvil_reorg", depth, []);
    await anvil.call("anvil_dropAllTransactions");
  };
  const follow = async (other: ForkingNode): Promise<void> => {
    const missing: NodeBlock[] = [];
    let block: NodeBlock | null = await other.latest();
    while (block !== null && (await blockAt(block.number))?.hash !== block.hash) {
      missing.unshift(block);
      block = (await other.anvil.call("eth_getBlockByHash", block.parentHash, false)) as NodeBlock | null;
    }
    const depth = Number((await latest()).number) - Number(block?.number ?? 0);
    if (depth > 0) {
      await anvil.call("anvil_rollback", depth);
    }
    await anvil.call("anvil_dropAllTransactions");
    for (const { number, hash, timestamp, baseFeePerGas, transactions } of missing) {
      const raws = await Promise.all(
        transactions.map((transaction) => other.anvil.call("eth_getRawTransactionByHash", transaction)),
      );
      await seal(raws, Number(timestamp), baseFeePerGas);
      const sealed = await blockAt("latest");
      if (sealed?.hash !== hash) {
        throw new Error(`block ${number} did not come out the same`);
      }
    }
  };

  const stays: { readonly fromMs: number; toMs: number; readonly head: Hex }[] = [];
  /** Requests wait from the call on. */
  const move = async (act: () => Promise<void>): Promise<void> => {
    const stay = stays.at(-1);
    if (stay !== undefined) {
      stay.toMs = performance.now();
    }
    await change(act);
    stays.push({ fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY, head: (await latest()).hash });
  };
  return {
    anvil,
    url,
    latest,
    headsDuring: (from, to, minMs) =>
      stays.filter(({ fromMs, toMs }) => Math.min(to, toMs) - Math.max(from, fromMs) >= minMs).map(({ head }) => head),
    mine: (variant) => move(() => mine(variant)),
    reorg: (depth) => move(() => reorg(depth)),
    follow: (other) => move(() => follow(other)),
  };
};

/** Starts two nodes with equal blocks. They end with the test. */
export const startForkingNodes = async (t: Lifespan): Promise<readonly [ForkingNode, ForkingNode]> => {
  const args = ["--chain-id", `${CHAIN_ID}`, "--no-mining", "--timestamp", `${GENESIS_SECONDS}`, "--order", "fifo"];
  const start = async () => {
    const anvil = await startAnvil(args);
    t.after(() => anvil.close());
    const gate = await createAtomicNode(anvil);
    t.after(() => gate.close());
    const node = createNode(anvil, gate);
    await node.mine(0);
    // Without a fixed interval, timestamps would depend on the clock.
    await anvil.call("anvil_setBlockTimestampInterval", SECONDS_PER_BLOCK);
    await anvil.call("anvil_mine", `0x${FIRST_BLOCKS.toString(16)}`);
    await anvil.call("anvil_removeBlockTimestampInterval");
    for (let count = 0; count < 24; count++) {
      await node.mine(0);
    }
    return node;
  };
  const [one, other] = await Promise.all([start(), start()]);
  const hashes = await Promise.all([one, other].map(async (node) => (await node.latest()).hash));
  if (hashes[0] !== hashes[1]) {
    throw new Error("the two nodes are not alike");
  }
  return [one, other];
};

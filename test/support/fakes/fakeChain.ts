import { hash as digest } from "node:crypto";

export interface FakeBlock {
  readonly number: bigint;
  readonly hash: `0x${string}`;
  readonly parentHash: `0x${string}`;
  readonly timestamp: bigint;
  /** The result of eth_getBlockByNumber. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface FakeChainOptions {
  readonly chainId?: number;
  /** Number of the newest block at the start. */
  readonly height?: number;
  readonly secondsPerBlock?: number;
  readonly startSeconds?: number;
  /** Chains of different seeds have different blocks from genesis on. */
  readonly seed?: string;
  /** The first blocks. `height` may be higher. Default: none. */
  readonly base?: readonly FakeBlock[];
}

/** A generated chain that several fake nodes may share; listeners get every change with the new blocks. */
export interface FakeChain {
  readonly chainId: number;
  readonly blocks: readonly FakeBlock[];
  readonly latest: FakeBlock;
  /** Returns a block of any branch, as a node does that keeps replaced blocks. */
  byHash(hash: unknown): FakeBlock | undefined;
  mine(count?: number): void;
  /** Drops the newest `depth` blocks and mines `count` others in their place. */
  reorg(depth: number, count: number): void;
  /** Removes the newest blocks, as when a node is reset to a snapshot. */
  rewind(height: number): void;
  onBlocks(listener: (blocks: readonly FakeBlock[]) => void): () => void;
}

const quantity = (value: bigint | number): string => `0x${value.toString(16)}`;
const hashOf = (text: string): `0x${string}` => `0x${digest("sha256", text)}`;
const zeros = (bytes: number): string => `0x${"00".repeat(bytes)}`;

/** The members that all blocks share. */
const FIXED = {
  logsBloom: zeros(256),
  miner: zeros(20),
  gasLimit: quantity(30_000_000),
  gasUsed: "0x0",
  baseFeePerGas: "0x7",
  extraData: "0x",
  nonce: zeros(8),
  mixHash: zeros(32),
  sha3Uncles: hashOf("uncles"),
  difficulty: "0x0",
  size: "0x200",
  transactions: [],
  uncles: [],
} as const;

const formatBlock = ({ number, hash, parentHash, timestamp }: Omit<FakeBlock, "json">) => ({
  ...{ hash, number: quantity(number), parentHash, timestamp: quantity(timestamp) },
  stateRoot: hashOf(`state:${hash}`),
  receiptsRoot: hashOf(`receipts:${hash}`),
  transactionsRoot: hashOf(`transactions:${hash}`),
  ...FIXED,
});

/** Creates a block. Most are never read, so that it is formatted when it is. */
const createBlock = (fields: Omit<FakeBlock, "json">): FakeBlock => {
  let json: FakeBlock["json"] | undefined;
  return {
    ...fields,
    get json() {
      json ??= formatBlock(fields);
      return json;
    },
  };
};

export const createFakeChain = (options: FakeChainOptions = {}): FakeChain => {
  const { secondsPerBlock = 2, startSeconds = 1_700_000_000, seed = "seed", base = [], height = 10 } = options;
  const listeners = new Set<(blocks: readonly FakeBlock[]) => void>();
  const blocks = [...base];
  const known = new Map<unknown, FakeBlock>(base.map((block) => [block.hash, block]));
  let branch = 0;

  const block = (number: number): FakeBlock => {
    const parentHash = blocks[number - 1]?.hash ?? `0x${"0".repeat(64)}`;
    const hash = hashOf(`${seed}:${branch}:${number}:${parentHash}`);
    const timestamp = BigInt(startSeconds + Math.floor(number * secondsPerBlock));
    return createBlock({ number: BigInt(number), hash, parentHash, timestamp });
  };

  const grow = (count: number): void => {
    const added = Array.from({ length: count }, () => {
      const next = block(blocks.length);
      blocks.push(next);
      known.set(next.hash, next);
      return next;
    });
    for (const listener of listeners) {
      listener(added);
    }
  };

  grow(height + 1 - base.length);
  return {
    chainId: options.chainId ?? 31_337,
    blocks,
    get latest() {
      const latest = blocks.at(-1);
      if (!latest) {
        throw new Error("the fake chain has no block");
      }
      return latest;
    },
    byHash: (hash) => known.get(hash),
    mine: (count = 1) => grow(count),
    reorg: (depth, count) => {
      branch += 1;
      blocks.length -= depth;
      grow(count);
    },
    rewind: (to) => {
      branch += 1;
      blocks.length = to + 1;
    },
    onBlocks: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};

import { createHash } from "node:crypto";
import { hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../../src/ethereum/bloom.ts";
import { formatData } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseHeader } from "../../../src/verification/checkHeader.ts";
import type { NodeCall } from "./front.ts";
import type { AskTruth, Lie } from "./lyingNode.ts";

type Block = Readonly<Record<string, unknown>>;

const quantity = (value: bigint): string => `0x${value.toString(16)}`;
const inventedHash = (number: bigint): string => `0x${createHash("sha256").update(`invented:${number}`).digest("hex")}`;

/** Creates a block that no chain has. Invented blocks are linked to each other. */
const invent = (template: Block, number: bigint): Block => ({
  ...template,
  number: quantity(number),
  hash: inventedHash(number),
  parentHash: inventedHash(number - 1n),
});

const BLOCK = "eth_getBlockByNumber";
const isLatest = ({ method, params: [tag] }: NodeCall): boolean => method === BLOCK && tag === "latest";
const asBlock = (value: unknown): Block => (typeof value === "object" && value !== null ? { ...value } : {});

/** The newest block of the honest node, also if the call was for another one. */
const LATEST = ["latest", false] as const;

/** Reports a head with this number, and returns `below` invented blocks below it. */
export const headAt = (name: string, number: bigint, below = 1n): Lie => ({
  name,
  methods: [BLOCK, "eth_blockNumber"],
  result: async (result, call, truth) => {
    if (call.method === "eth_blockNumber") {
      return quantity(number);
    }
    const [tag] = call.params;
    const asked = tag === "latest" ? number : typeof tag === "string" && tag.startsWith("0x") ? BigInt(tag) : -1n;
    if (asked > number || asked < number - below) {
      return result;
    }
    return invent(asBlock(await truth(BLOCK, LATEST)), asked);
  },
});

/** Reports a head `blocks` above the honest one, and invented blocks down to the honest head. */
export const headAhead = (name: string, blocks: bigint): Lie => ({
  name,
  methods: [BLOCK],
  result: async (result, { params: [tag] }, truth) => {
    const latest = asBlock(await truth(BLOCK, LATEST));
    const head = BigInt(String(latest.number));
    const asked =
      tag === "latest" ? head + blocks : typeof tag === "string" && tag.startsWith("0x") ? BigInt(tag) : -1n;
    return asked > head && asked <= head + blocks ? invent(latest, asked) : result;
  },
});

const MARK = "0xbad0bad0";

/** Returns an empty child of a block. Its hash and its roots are right. */
const childOf = (parent: Block): Block => {
  const child = {
    ...parent,
    ...{ number: quantity(BigInt(String(parent.number)) + 1n), parentHash: parent.hash },
    ...{ timestamp: quantity(BigInt(String(parent.timestamp)) + 1n), miner: `${MARK}${"0".repeat(32)}` },
    ...{ transactions: [], transactionsRoot: orderedTrieRoot([]), receiptsRoot: orderedTrieRoot([]) },
    ...{ gasUsed: "0x0", logsBloom: formatData(createBloom()) },
  };
  return { ...child, hash: hashHeader(parseHeader(child)) };
};

/**
 * Announces `blocks` invented blocks on the honest head, and has a state of its own after them.
 * Each of them passes every check of a single block.
 */
export const inventedBlocks = (name: string, blocks: number): Lie => {
  const invented = new Map<unknown, Block>();
  const branch = async (truth: AskTruth): Promise<readonly Block[]> => {
    const chain = [asBlock(await truth(BLOCK, LATEST))];
    for (let count = 0; count < blocks; count++) {
      const child = childOf(chain.at(-1) ?? {});
      invented.set(child.hash, child);
      chain.push(child);
    }
    return chain.slice(1);
  };
  const isInvented = (params: readonly unknown[]): boolean =>
    params.some((param) => invented.has(param) || invented.has(Object(param).blockHash));
  return {
    name,
    result: async (result, { method, params }, truth) => {
      const [first] = params;
      if (method === BLOCK) {
        const chain = await branch(truth);
        const byTag = first === "latest" ? chain.at(-1) : chain.find(({ number }) => number === first);
        return byTag ?? result;
      }
      if (method === "eth_blockNumber") {
        return (await branch(truth)).at(-1)?.number;
      }
      if (method === "eth_getBlockByHash") {
        return invented.get(first) ?? result;
      }
      if (!isInvented(params)) {
        return result;
      }
      return method === "eth_getBlockReceipts" || method === "eth_getLogs" ? [] : MARK;
    },
    // The honest node does not know an invented block.
    response: async (response, { id, method, params }) =>
      isInvented(params) && "error" in response
        ? { jsonrpc: "2.0", id, result: method === "eth_getLogs" ? [] : MARK }
        : response,
  };
};

/** Reports an old block as its newest one, and has none above. */
export const headBehind = (name: string, number: bigint): Lie => ({
  name,
  methods: [BLOCK, "eth_blockNumber"],
  result: (result, call, truth) => {
    if (call.method === "eth_blockNumber") {
      return quantity(number);
    }
    const [tag] = call.params;
    if (tag === "latest") {
      return truth(BLOCK, [quantity(number), false]);
    }
    return typeof tag === "string" && tag.startsWith("0x") && BigInt(tag) > number ? null : result;
  },
});

/** Changes fields of the newest block; the rest of it is true. */
export const latestWith = (name: string, change: (block: Block) => unknown): Lie => ({
  name,
  methods: [BLOCK],
  result: (result, call) => (isLatest(call) && result !== null ? change(asBlock(result)) : result),
});

export const wrongParent = latestWith("another parent of the newest block", (block) => ({
  ...block,
  parentHash: inventedHash(0n),
}));

export const numberOff = (name: string, offset: bigint): Lie =>
  latestWith(name, (block) => ({ ...block, number: quantity(BigInt(String(block.number)) + offset) }));

/** Alternates between the right and the wrong head. */
export const everyOther = (name: string, lie: Lie): Lie => {
  let count = 0;
  return {
    ...lie,
    name,
    result: (result, call, truth) => {
      if (isLatest(call)) {
        count++;
      }
      return count % 2 === 0 ? result : lie.result?.(result, call, truth);
    },
  };
};

/** Wrong heads for a chain of any height, for example while it reorganises. */
export const HEAD_LIES: readonly Lie[] = [
  headAt("2^60", 2n ** 60n),
  headAt("2^256-1", 2n ** 256n - 1n),
  headAt("5,000", 5_000n),
  headAt("5,000 and more", 5_000n, 64n),
  headAhead("50 ahead", 50n),
  headAhead("3 ahead", 3n),
  headBehind("behind", 60n),
  headBehind("genesis", 0n),
  everyOther("alternating", headAt("far ahead", 5_000n)),
  wrongParent,
  numberOff("next number", 1n),
  numberOff("lower number", -5n),
  latestWith("null", () => null),
  inventedBlocks("an invented child", 1),
  inventedBlocks("an invented chain of 5", 5),
];

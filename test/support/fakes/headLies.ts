import { createHash } from "node:crypto";
import type { Lie, LieCall } from "./lyingNode.ts";

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
const isLatest = ({ method, params: [tag] }: LieCall): boolean => method === BLOCK && tag === "latest";
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
];

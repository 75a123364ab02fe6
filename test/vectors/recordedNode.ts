import { formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { type Hash, isHash, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { hashesOf, type Recording } from "./playBuilder.ts";
import { createWitnessNode, type WitnessBlock } from "./witnessNode.ts";

const NODE_LATENCY_MS = 20;

/** The first block of the chain. Its fields do not matter. */
const genesis = (): WitnessBlock => {
  const header = {
    parentHash: ZERO_HASH,
    miner: ZERO_ADDRESS,
    stateRoot: ZERO_HASH,
    transactionsRoot: ZERO_HASH,
    receiptsRoot: ZERO_HASH,
    logsBloom: new Uint8Array(256),
    number: 0n,
    gasLimit: 30_000_000n,
    gasUsed: 0n,
    timestamp: 0n,
    extraData: "0x",
    mixHash: ZERO_HASH,
  } as const;
  const hash = hashHeader(header);
  return { ...formatHeader(header, hash), number: "0x0", hash, size: "0x200", transactions: [], uncles: [] };
};

type Fields = Readonly<Record<string, unknown>>;

/** A node with the recorded blocks and the state of their witnesses. The test moves its head. */
export interface RecordedNode {
  readonly url: string;
  /** Seals the recorded block of that number, and all blocks below it. */
  setHead(number: number): void;
  /** Replaces the head by another block with the same transactions, until the head is set again. */
  replaceHead(): void;
  /** While it is down, each request fails. */
  setDown(isDown: boolean): void;
}

/** Returns the same block with another hash. */
const siblingOf = (block: WitnessBlock): WitnessBlock => ({ ...block, hash: `0x5b${block.hash.slice(4)}` as Hash });

/** `knownAt` returns a value that the witnesses of the blocks above may lack, as `eth_getStorageAt` and others return it. */
export const startRecordedNode = async (
  t: { after(end: () => unknown): void },
  recording: Recording,
  knownAt: (number: number, method: string, params: readonly unknown[]) => string | undefined = () => undefined,
): Promise<RecordedNode> => {
  let head = BigInt(recording.parent.number);
  let replaced: bigint | undefined;
  const recorded = recording.blocks.map((block): WitnessBlock => ({ uncles: [], transactions: [], ...block }));
  const siblings = new Map(recorded.map((block) => [BigInt(block.number), siblingOf(block)]));
  const blocks = [genesis(), ...recorded];
  const all = [...blocks, ...siblings.values()];
  const states = new Map(recording.states);
  for (const { number, hash } of recorded) {
    const state = recording.states.get(hash);
    const sibling = siblings.get(BigInt(number));
    if (state && sibling) {
      states.set(sibling.hash, state);
    }
  }
  const canonical = (number: bigint): WitnessBlock | undefined => {
    if (number > head) {
      return undefined;
    }
    return number === replaced ? siblings.get(number) : blocks.find((block) => BigInt(block.number) === number);
  };
  const numberOf = (tag: unknown): bigint =>
    String(tag).startsWith("0x") ? BigInt(String(tag)) : tag === "latest" || tag === undefined ? head : -1n;
  const byHash = (hash: unknown) => all.find((block) => block.hash === hash && BigInt(block.number) <= head);
  const show = (block: WitnessBlock | undefined, full: unknown) =>
    block ? { ...block, transactions: full ? block.transactions : hashesOf(block) } : null;
  const receiptsOf = (block: WitnessBlock): readonly Fields[] => {
    const original = blocks.find(({ number }) => number === block.number);
    const text = JSON.stringify(recording.receipts.get(original?.hash ?? "0x") ?? []);
    return JSON.parse(text.replaceAll(original?.hash ?? "", block.hash)) as readonly Fields[];
  };
  const logsOf = (block: WitnessBlock) => receiptsOf(block).flatMap(({ logs }) => logs as readonly Fields[]);
  const canonicalBlocks = () => blocks.flatMap(({ number }) => canonical(BigInt(number)) ?? []);
  const getLogs = ([filter]: readonly unknown[]) => {
    const { blockHash, fromBlock, toBlock, address } = filter as Fields;
    const inRange = canonicalBlocks().filter(
      ({ number, hash }) =>
        (blockHash === undefined || hash === blockHash) &&
        (blockHash !== undefined ||
          (BigInt(number) >= numberOf(fromBlock) && BigInt(number) <= numberOf(toBlock ?? "latest"))),
    );
    return inRange
      .flatMap(logsOf)
      .filter((log) => address === undefined || [address].flat().some((each) => each === log.address));
  };
  const known =
    (method: string, position: number) =>
    (params: readonly unknown[]): string | undefined => {
      const id = params[position];
      const hash = typeof id === "object" && id !== null ? Object.values(id)[0] : id;
      const block = isHash(hash) ? byHash(hash) : canonical(numberOf(hash));
      return block && knownAt(Number(block.number), method, params);
    };
  const node = createWitnessNode({
    ...recording,
    blocks: [...recorded, ...siblings.values()],
    states,
    latencyMs: NODE_LATENCY_MS,
    handlers: {
      eth_getBlockByNumber: ([tag, full]) => show(canonical(numberOf(tag)), full),
      eth_getBlockByHash: ([hash, full]) => show(byHash(hash), full),
      eth_getBlockReceipts: ([id]) => {
        const block = isHash(id) ? byHash(id) : canonical(numberOf(id));
        return block ? receiptsOf(block) : null;
      },
      eth_getTransactionReceipt: ([hash]) =>
        canonicalBlocks()
          .flatMap(receiptsOf)
          .find(({ transactionHash }) => transactionHash === hash) ?? null,
      eth_getTransactionByHash: ([hash]) =>
        canonicalBlocks()
          .flatMap(({ transactions }) => transactions as readonly Fields[])
          .find((transaction) => transaction.hash === hash) ?? null,
      eth_getTransactionByBlockHashAndIndex: ([hash, index]) =>
        ((byHash(hash)?.transactions ?? []) as readonly Fields[])[Number(index)] ?? null,
      eth_getLogs: getLogs,
      eth_getBalance: known("eth_getBalance", 1),
      eth_getTransactionCount: known("eth_getTransactionCount", 1),
      eth_getStorageAt: known("eth_getStorageAt", 2),
    },
  });
  node.setHead(head);
  const url = await node.listen();
  t.after(() => node.close());
  const setHead = (number: bigint, isReplaced: boolean): void => {
    head = number;
    replaced = isReplaced ? number : undefined;
    node.setHead(number);
  };
  return {
    url,
    setHead: (number) => setHead(BigInt(number), false),
    replaceHead: () => setHead(head, true),
    setDown: (isDown) => {
      node.isDown = isDown;
    },
  };
};

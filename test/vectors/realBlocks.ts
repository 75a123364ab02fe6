import assert from "node:assert/strict";
import { RLP } from "@ethereumjs/rlp";
import { createOpForks, opForks } from "../../src/ethereum/chainForks.ts";
import { type Data, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { parseFlashblock } from "../../src/feed/parseFlashblock.ts";
import type { ExecutableMessage } from "../../src/pending/executableMessage.ts";
import { headerFields } from "./vectorChain.ts";
import { readJsonLines, readVector } from "./vectorFolder.ts";
import { createWitnessState, type WitnessState } from "./witness.ts";
import type { WitnessBlock } from "./witnessNode.ts";
import { xzText } from "./xzText.ts";

/** Real blocks with their execution witnesses (real-blocks/README.txt). */
export interface RealBlocks {
  readonly forks: ChainForks;
  /** The parent of the first executed block. */
  readonly parent: WitnessBlock;
  /** Ancestors that the blocks read, the parent, and the executed blocks, in ascending order. */
  readonly blocks: readonly WitnessBlock[];
  /** The state after each block except the last one, by block hash. */
  readonly states: ReadonlyMap<Hash, WitnessState>;
  /** Feed messages, one text frame each. */
  readonly frames: readonly string[];
}

type Header = Readonly<Record<string, Data>>;

const decodeHeader = (rlp: Data): WitnessBlock => {
  const bytes = parseData(rlp);
  return { ...headerFields(RLP.decode(bytes) as Uint8Array[]), hash: keccak256Hex(bytes) } as WitnessBlock & Header;
};

interface BlockFile {
  readonly blockHeader: Header & { readonly number: Data; readonly parentHash: Hash };
  readonly actualBlockTxs: readonly Data[];
  readonly witness: {
    readonly Headers: readonly [Header & { readonly number: Data; readonly stateRoot: Hash }];
    readonly Codes: Readonly<Record<Hash, string>>;
    readonly State: Readonly<Record<Hash, string>>;
  };
  readonly expectedStateRoot: Hash;
}

const prefixed = (hex: string): Data => (hex.startsWith("0x") ? (hex as Data) : `0x${hex}`);

/** Base Sepolia 37312300, cut into 11 messages. */
export const readBaseSepolia = (): RealBlocks & { readonly expectedStateRoot: Hash } => {
  const file: BlockFile = JSON.parse(xzText("real-blocks/base-sepolia-37312300.witness.json.xz"));
  const forks = opForks(84_532n);
  if (forks === undefined) {
    throw new Error("the forks of Base Sepolia are not known");
  }
  const { blockHeader, witness, expectedStateRoot } = file;
  const [parentHeader] = witness.Headers;
  const parent: WitnessBlock = { ...parentHeader, hash: blockHeader.parentHash };
  const state = createWitnessState({
    root: parentHeader.stateRoot,
    nodes: Object.values(witness.State).map(prefixed),
    codes: Object.values(witness.Codes).map(prefixed),
  });
  // The file does not have two fields of the header, so that the block's hash is unknown.
  const sealed: WitnessBlock = { ...blockHeader, hash: keccak256Hex(Buffer.from(JSON.stringify(blockHeader))) };
  return {
    forks,
    parent,
    blocks: [parent, sealed],
    states: new Map([[parent.hash, state]]),
    frames: readVector("real-blocks/base-sepolia-37312300.11messages.feed.jsonl").trim().split("\n"),
    expectedStateRoot,
  };
};

const BUILDER = "base-builder-98a8db8d";
const RECORDING = `${BUILDER}.jovian.1000ms-200ms`;
const BUILDER_CHAIN_ID = 901n;

interface SealedLine {
  readonly witness: {
    readonly state: readonly Data[];
    readonly codes: readonly Data[];
    /** Headers as RLP in ascending order. The last one is the parent's. */
    readonly headers: readonly Data[];
  };
  readonly block: WitnessBlock & { readonly parentHash: Hash };
  readonly receipts: readonly Readonly<Record<string, unknown>>[];
}

export interface Arrival {
  /** Milliseconds. */
  readonly at: number;
  readonly opcode: string;
  readonly block: number;
  readonly index: number;
}

/** Blocks 429 to 433 of a real builder, with the arrival time of each frame. */
export const readRecordedBuilder = (): RealBlocks & {
  readonly arrivals: readonly Arrival[];
  readonly receipts: ReadonlyMap<Hash, SealedLine["receipts"]>;
} => {
  const lines: SealedLine[] = xzText(`real-blocks/${RECORDING}.sealed.jsonl.xz`)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const [first] = lines;
  if (first === undefined) {
    throw new Error("no block was recorded");
  }
  const ancestors = first.witness.headers.map(decodeHeader);
  const parent = ancestors.at(-1);
  if (parent === undefined) {
    throw new Error("a witness has no parent header");
  }
  const parents = lines.map(({ witness }) => decodeHeader(witness.headers.at(-1) ?? "0x"));
  const states = lines.map(({ witness }, at): [Hash, WitnessState] => {
    const { hash, stateRoot } = parents[at] ?? parent;
    return [hash, createWitnessState({ root: stateRoot as Hash, nodes: witness.state, codes: witness.codes })];
  });
  return {
    forks: createOpForks(BUILDER_CHAIN_ID, {
      regolith: 0n,
      canyon: 0n,
      ecotone: 0n,
      fjord: 0n,
      granite: 0n,
      holocene: 0n,
      isthmus: 0n,
      jovian: 0n,
    }),
    parent,
    blocks: [...ancestors, ...lines.map(({ block }) => block)],
    states: new Map(states),
    frames: readVector(`real-blocks/${RECORDING}.jsonl`).trim().split("\n"),
    arrivals: readJsonLines(`real-blocks/${RECORDING}.arrivals.jsonl`) as Arrival[],
    receipts: new Map(lines.map(({ block, receipts }) => [block.hash, receipts])),
  };
};

export const messagesOf = ({ frames }: Pick<RealBlocks, "frames">): readonly FeedMessage[] =>
  frames.map((frame) => {
    const parsed = parseFlashblock(frame);
    assert.ok("message" in parsed);
    return parsed.message;
  });

/** `firstId`: jobs of one executor have ascending ids. */
export const jobsOf = (messages: readonly FeedMessage[], firstId = 10): readonly ExecutableMessage[] => {
  let environment: ExecutableMessage["environment"] | undefined;
  return messages.map((message, at): ExecutableMessage => {
    const { index, transactions, commitments, accessList } = message;
    environment = message.environment ?? environment;
    assert.ok(environment);
    const { gasUsed, logsBloom, receiptsRoot } = commitments;
    return {
      id: firstId + at,
      before: at === 0 ? undefined : firstId + at - 1,
      environment,
      index,
      transactions,
      accessList,
      expected: { gasUsed, logsBloom, receiptsRoot },
    };
  });
};

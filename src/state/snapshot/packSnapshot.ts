import { randomInt } from "node:crypto";
import { runSliced } from "../runSliced.ts";
import type { SourcedValues } from "../sourcedValues.ts";
import type { SourceTrust } from "../sourceTrust.ts";
import type { StateCost } from "../stateCost.ts";
import { keyName } from "../stateKey.ts";
import type { ListedValue, ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import { ChunkWriter, type SnapshotHeader, writeHeader } from "./snapshotFormat.ts";

/** The known state of one chain, with its givers and costs. */
export interface SnapshotParts {
  readonly values: ValueStore;
  readonly sourced: SourcedValues;
  readonly trust: Pick<SourceTrust, "evidenceOf">;
  readonly cost: Pick<StateCost, "recent" | "resume" | "usedKeys">;
}

/** The chain for which a snapshot holds. */
export type SnapshotChain = Pick<SnapshotHeader, "chainId" | "genesis" | "rules"> & {
  readonly nodes: readonly { readonly name: string; readonly address: string }[];
};

/** The values changed in a way that makes a snapshot wrong. */
export class SnapshotEnded extends Error {
  override readonly name = "SnapshotEnded";
}

/** Values that are remembered as used. */
const MAX_USED_KEYS = 10_000;
const MAX_ID = 0xffff_ffff;

interface PackOptions {
  /** The snapshot ends with the values that fit. */
  readonly maxBytes: number;
  /** Whether values of nodes are still trusted as they were at the begin. */
  isCurrent(): boolean;
}

/**
 * Packs what is known at the newest readable block into chunks, in slices. Write sets of later blocks may be applied meanwhile.
 * Values that answer no read are left out. Throws SnapshotEnded.
 */
export const packSnapshot = async function* (
  parts: SnapshotParts,
  chain: SnapshotChain,
  { maxBytes, isCurrent }: PackOptions,
): AsyncGenerator<Uint8Array, void> {
  const { values } = parts;
  const block = values.head;
  if (block === undefined) {
    throw new SnapshotEnded("no block is readable");
  }
  const header = createHeader(parts, chain);
  const { isTrusted } = values;
  const check = (): void => {
    if (!isCurrent() || !values.isApplied(block) || values.isTrusted !== isTrusted) {
      throw new SnapshotEnded("the values were dropped");
    }
  };
  yield writeHeader(header);
  let chunks = 1;
  let bytes = 0;
  const codes = new Set<string>();
  const listed = isTrusted ? values.valuesAt(block) : [].values();
  const format = createFormat(parts, header);
  for (let isLast = false; !isLast && bytes < maxBytes; ) {
    const writer = new ChunkWriter("values");
    isLast = await runSliced(fill(writer, listed, { check, format, codes }));
    if (!writer.isEmpty) {
      const chunk = writer.finish(header.id, chunks++);
      bytes += chunk.length;
      yield chunk;
    }
  }
  for (const hash of codes) {
    const code = values.code(hash);
    if (code !== undefined && bytes + code.length < maxBytes) {
      const writer = new ChunkWriter("codes");
      writer.addCode({ hash, code });
      bytes += code.length;
      yield writer.finish(header.id, chunks++);
    }
  }
  yield new ChunkWriter("end").finish(header.id, chunks);
};

type Format = (value: ListedValue) => Parameters<ChunkWriter["addValue"]>[0];

const createHeader = ({ values, sourced, trust, cost }: SnapshotParts, chain: SnapshotChain): SnapshotHeader => ({
  id: randomInt(MAX_ID),
  chainId: chain.chainId,
  genesis: chain.genesis,
  rules: chain.rules,
  number: String(values.head?.number ?? 0n),
  hashes: [...values.readableHashes],
  nodes: chain.nodes.map(({ name, address }) => ({ name, address, progress: trust.evidenceOf(name).progress })),
  carriers: sourced.carriers.map((name) => name ?? null),
  costs: cost.recent,
});

const createFormat = ({ cost }: SnapshotParts, { nodes, number }: SnapshotHeader): Format => {
  const used = new Set(cost.usedKeys.mostUsed(MAX_USED_KEYS).map(keyName));
  const positions = new Map(nodes.map(({ name }, position) => [name, position]));
  return ({ key, value, node, from }) => ({
    key,
    value,
    node: node === undefined ? undefined : positions.get(node),
    age: Number(number) - from,
    isUsed: used.has(keyName(key)),
  });
};

interface FillOptions {
  readonly format: Format;
  /** Receives the hashes of codes. */
  readonly codes: Set<string>;
  /** Throws if the values are no longer those of the begin. */
  check(): void;
}

/** Adds values until the chunk is full. Returns whether no value is left. */
const fill = function* (
  writer: ChunkWriter,
  listed: Iterator<ListedValue | undefined>,
  { check, format, codes }: FillOptions,
): Generator<void, boolean> {
  while (!writer.isFull) {
    check();
    const next = listed.next();
    if (next.done === true) {
      return true;
    }
    const formatted = next.value && format(next.value);
    // A node that was removed has no position.
    if (formatted !== undefined && (next.value?.node === undefined || formatted.node !== undefined)) {
      writer.addValue(formatted);
      if (formatted.key.field === "code" && formatted.value !== ZERO_VALUE) {
        codes.add(formatted.value);
      }
    }
    yield;
  }
  return false;
};

import { randomInt } from "node:crypto";
import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { StoredDefaults } from "../calls/nodeDefaults.ts";
import type { AnswerSource, StoredAnswer } from "../calls/storedAnswers.ts";
import type { StateCost } from "../cost.ts";
import { runSliced } from "../runSliced.ts";
import type { Entry } from "../store/entryPages.ts";
import type { ListedValue, ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import { formatAnswer } from "./answerFormat.ts";
import { type ChunkKind, ChunkWriter, type SnapshotHeader, type SnapshotValue, writeHeader } from "./snapshotFormat.ts";

/** The known state of one chain, with its costs. */
export interface SnapshotParts {
  readonly values: ValueStore;
  readonly cost: Pick<StateCost, "recent" | "resume">;
}

/** What a snapshot is made of. */
export interface PackedParts extends SnapshotParts {
  /** Undefined: calls are not answered here. */
  readonly answers: AnswerSource | undefined;
  /** The headers of the newest canonical blocks. */
  readonly headers: readonly HeaderFields[];
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

/** The clock is looked at after some steps: a header takes as long as these. */
export const STEPS_OF_HEADER: readonly undefined[] = Array.from({ length: 16 });

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
  parts: PackedParts,
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
  const packed: Packed = { id: header.id, chunks: 1, bytes: 0, maxBytes };
  yield* packLists("headers", packed, (writer) => fillHeaders(writer, parts.headers));
  const codes = new Set<string>();
  const listed = isTrusted ? values.valuesAt(block) : [].values();
  const format = createFormat(header, await runSliced(usedEntries(parts, block)));
  yield* packLists("values", packed, (writer) => fill(writer, listed, { values, check, format, codes }));
  for (const hash of codes) {
    const code = hash === ZERO_VALUE ? undefined : values.code(hash);
    if (code !== undefined && packed.bytes + code.length < maxBytes) {
      const writer = new ChunkWriter("codes");
      writer.addCode({ hash, code });
      yield finish(writer, packed);
    }
  }
  const answers = (isTrusted && parts.answers?.answersAt(block)) || [].values();
  yield* packLists("answers", packed, (writer) => fillAnswers(writer, answers, { check, header }));
  yield finish(new ChunkWriter("end"), packed);
};

/** How much of a snapshot is packed. */
interface Packed {
  readonly id: number;
  readonly maxBytes: number;
  chunks: number;
  bytes: number;
}

const finish = (writer: ChunkWriter, packed: Packed): Uint8Array => {
  const chunk = writer.finish(packed.id, packed.chunks++);
  packed.bytes += chunk.length;
  return chunk;
};

/** Packs chunks of one kind, while there is room. `fillChunk` returns whether nothing is left. */
const packLists = async function* (
  kind: ChunkKind,
  packed: Packed,
  fillChunk: (writer: ChunkWriter) => Generator<void, boolean>,
): AsyncGenerator<Uint8Array, void> {
  for (let isLast = false; !isLast && packed.bytes < packed.maxBytes; ) {
    const writer = new ChunkWriter(kind);
    isLast = await runSliced(fillChunk(writer));
    if (!writer.isEmpty) {
      yield finish(writer, packed);
    }
  }
};

type Format = (value: ListedValue) => SnapshotValue;

const createHeader = ({ values, cost, answers }: PackedParts, chain: SnapshotChain): SnapshotHeader => ({
  id: randomInt(MAX_ID),
  chainId: chain.chainId,
  genesis: chain.genesis,
  rules: chain.rules,
  number: String(values.head?.number ?? 0n),
  hashes: [...values.readableHashes],
  nodes: chain.nodes.map(({ name, address }) => ({
    ...{ name, address },
    defaults: formatDefaults(answers?.defaults.find(({ node }) => node === name)),
  })),
  costs: cost.recent,
});

const formatDefaults = (stored: StoredDefaults | undefined) =>
  stored && {
    gas: String(stored.defaults.gas),
    hasZeroSender: stored.defaults.hasZeroSender,
    fromHeader: [...stored.defaults.fromHeader],
  };

const createFormat =
  ({ number }: SnapshotHeader, used: ReadonlySet<Entry>): Format =>
  ({ entry, field, from }) => ({ field, age: Number(number) - from, isUsed: used.has(entry) });

/** Returns the entries of values that clients read lately. */
const usedEntries = function* ({ values }: SnapshotParts, block: BlockId): Generator<void, ReadonlySet<Entry>> {
  const entries = new Set<Entry>();
  for (const key of values.used.listMostUsed(MAX_USED_KEYS)) {
    if (key !== undefined) {
      entries.add(values.entryOf(key, block));
    }
    yield;
  }
  return entries;
};

interface FillOptions {
  readonly values: ValueStore;
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
  { values, check, format, codes }: FillOptions,
): Generator<void, boolean> {
  while (!writer.isFull) {
    check();
    const next = listed.next();
    if (next.done === true) {
      return true;
    }
    const { value } = next;
    if (value !== undefined) {
      values.copyTo(value, writer.addValue(format(value)));
      if (value.field === "code") {
        codes.add(values.valueOf(value));
      }
    }
    yield;
  }
  return false;
};

/** Adds all headers. Returns true: there are few. */
const fillHeaders = function* (writer: ChunkWriter, headers: readonly HeaderFields[]): Generator<void, boolean> {
  for (const fields of headers) {
    writer.addText(`${JSON.stringify(fields)}\n`);
    // A step is about as long as others.
    yield* STEPS_OF_HEADER;
  }
  return true;
};

interface FillAnswersOptions extends Pick<FillOptions, "check"> {
  readonly header: SnapshotHeader;
}

/** Adds answers until the chunk is full, in a step for each key that they read. Returns whether no answer is left. */
const fillAnswers = function* (
  writer: ChunkWriter,
  listed: Iterator<StoredAnswer | undefined>,
  { check, header }: FillAnswersOptions,
): Generator<void, boolean> {
  while (!writer.isFull) {
    check();
    const next = listed.next();
    if (next.done === true) {
      return true;
    }
    const { answer } = next.value ?? {};
    const node = header.nodes.findIndex(({ name }) => name === answer?.node);
    const age = answer === undefined ? -1 : Number(BigInt(header.number) - answer.block.number);
    // An older answer has no block of which the next process knows whether it is canonical.
    if (next.value !== undefined && node !== -1 && header.hashes[age] === answer?.block.hash) {
      writer.addText(formatAnswer(next.value, { age, node }));
      yield* next.value.answer.reads.keys.map(() => undefined);
    }
    yield;
  }
  return false;
};

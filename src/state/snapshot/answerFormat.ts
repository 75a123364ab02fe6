import { z } from "zod";
import { type EnvironmentOpcode, isEnvironmentOpcode } from "../../core/readSet.ts";
import { type Address, type Hash, isAddress, isHash } from "../../ethereum/hex.ts";
import { CALL_METHODS } from "../calls/callRun.ts";
import type { StoredAnswer } from "../calls/storedAnswers.ts";
import type { StateKey } from "../stateKey.ts";
import { DamagedSnapshot, SNAPSHOT_FIELDS } from "./snapshotFormat.ts";

const count = z.number().int().nonnegative();

/** One line of a chunk with answers: JSON. Addresses are named by their position. */
const line = z.object({
  key: z.string(),
  method: z.enum(CALL_METHODS),
  /** The bytes of the result: JSON text. */
  body: z.string(),
  /** The number of blocks between that of the answer and that of the snapshot. */
  age: count,
  isValid: z.boolean(),
  /** The position of the node that answered. */
  node: count,
  isRepeatable: z.boolean(),
  addresses: z.array(z.custom<Address>(isAddress)),
  /** Field, address and slot. */
  keys: z.array(z.tuple([z.enum(SNAPSHOT_FIELDS), count, z.custom<Hash>(isHash).nullable()])),
  emptiness: z.array(count),
  opcodes: z.array(z.custom<EnvironmentOpcode>(isEnvironmentOpcode)),
  feeRecipient: z.unknown(),
  gasLimit: z.unknown(),
});

/** Where an answer is from, in the order of a snapshot. */
interface AnswerOrigin {
  readonly age: number;
  readonly node: number;
}

/** An answer of a snapshot. The block and the name of the node are those of the origin. */
export interface SnapshotAnswer extends AnswerOrigin {
  readonly stored: Omit<StoredAnswer, "answer"> & { readonly answer: Omit<StoredAnswer["answer"], "block" | "node"> };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Formats an answer as a line. Throws if an account of a key is not among the addresses. */
export const formatAnswer = ({ key, method, answer, isValid }: StoredAnswer, origin: AnswerOrigin): string => {
  const { body, reads, header, isRepeatable } = answer;
  const addresses = [...reads.addresses];
  const positions = new Map(addresses.map((address, position) => [address, position]));
  const positionOf = (address: Address): number => {
    const position = positions.get(address);
    if (position === undefined) {
      throw new Error(`a read set has no account ${address}`);
    }
    return position;
  };
  const fields: z.input<typeof line> = {
    ...{ key, method, isValid, isRepeatable, addresses, ...origin, ...header },
    body: decoder.decode(body),
    keys: reads.keys.map(({ field, address, slot }) => [field, positionOf(address), slot ?? null]),
    emptiness: reads.emptiness.map(positionOf),
    opcodes: [...reads.blockOpcodes],
  };
  return `${JSON.stringify(fields)}\n`;
};

/** Parses a line of a chunk. Undefined: it is no JSON. */
export const parseLine = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Parses a line. Throws DamagedSnapshot. */
export const parseAnswer = (text: string): SnapshotAnswer => {
  const parsed = line.safeParse(parseLine(text));
  if (!parsed.success) {
    throw new DamagedSnapshot("an answer is not complete");
  }
  const { key, method, body, age, isValid, node, isRepeatable, addresses, emptiness, opcodes, ...rest } = parsed.data;
  const addressAt = (position: number): Address => {
    const address = addresses[position];
    if (address === undefined) {
      throw new DamagedSnapshot("an account of an answer is missing");
    }
    return address;
  };
  const keys = rest.keys.map(([field, position, slot]): StateKey => {
    const address = addressAt(position);
    if (field !== "slot") {
      return { field, address, slot: undefined };
    }
    if (slot === null) {
      throw new DamagedSnapshot("a slot of an answer is missing");
    }
    return { field, address, slot };
  });
  const reads = {
    ...{ keys, emptiness: emptiness.map(addressAt) },
    ...{ addresses: new Set(addresses), blockOpcodes: new Set(opcodes) },
  };
  const header = { feeRecipient: rest.feeRecipient, gasLimit: rest.gasLimit };
  const answer = { body: encoder.encode(body), reads, header, isRepeatable };
  return { age, node, stored: { key, method, isValid, answer } };
};

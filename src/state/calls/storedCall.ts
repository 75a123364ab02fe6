import { z } from "zod";
import { type EnvironmentOpcode, isEnvironmentOpcode } from "../../core/readSet.ts";
import { type Address, type Hash, isAddress, isHash } from "../../ethereum/hex.ts";
import type { CallReads } from "./callResult.ts";
import { CALL_METHODS, type CallMethod } from "./callRun.ts";

/** A call that can be executed again, as it outlives the process or the chain that learned it. No result does. */
export interface StoredCall {
  /** The canonical text of method and parameters. */
  readonly key: string;
  readonly method: CallMethod;
  /** The name of the node whose environment it has. */
  readonly node: string;
  /** What it read last. */
  readonly reads: CallReads;
}

const address = z.custom<Address>(isAddress);
const hash = z.custom<Hash>(isHash);

const parseText = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Whether a text is that of a method and an array of parameters. */
const isCallText = (text: string): boolean => {
  const parsed = parseText(text);
  return Array.isArray(parsed) && Array.isArray(parsed[1]);
};

const stored = z.object({
  key: z.string().refine(isCallText),
  method: z.enum(CALL_METHODS),
  node: z.string(),
  addresses: z.array(address),
  accounts: z.array(z.tuple([z.enum(["balance", "nonce", "code"]), address])),
  slots: z.array(z.tuple([address, hash])),
  emptiness: z.array(address),
  opcodes: z.array(z.custom<EnvironmentOpcode>(isEnvironmentOpcode)),
});

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const formatStoredCall = ({ key, method, node, reads }: StoredCall): Uint8Array => {
  const fields: z.input<typeof stored> = {
    ...{ key, method, node },
    addresses: [...reads.addresses],
    accounts: reads.keys
      .flatMap((read) => (read.field === "slot" ? [] : [[read.field, read.address] as const]))
      .map(([field, of]) => [field, of]),
    slots: reads.keys.flatMap((read) => (read.slot === undefined ? [] : [[read.address, read.slot]])),
    emptiness: [...reads.emptiness],
    opcodes: [...reads.blockOpcodes],
  };
  return encoder.encode(JSON.stringify(fields));
};

/** Returns undefined for the bytes of another format. */
export const parseStoredCall = (bytes: Uint8Array): StoredCall | undefined => {
  const parsed = stored.safeParse(parseText(decoder.decode(bytes)));
  if (!parsed.success) {
    return undefined;
  }
  const { key, method, node, addresses, accounts, slots, emptiness, opcodes } = parsed.data;
  const keys = [
    ...accounts.map(([field, of]) => ({ field, address: of, slot: undefined })),
    ...slots.map(([of, slot]) => ({ field: "slot", address: of, slot }) as const),
  ];
  return {
    ...{ key, method, node },
    reads: { keys, emptiness, addresses: new Set(addresses), blockOpcodes: new Set(opcodes) },
  };
};

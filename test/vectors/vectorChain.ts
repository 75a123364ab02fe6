import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RLP } from "@ethereumjs/rlp";
import { keccak256 } from "ethers";
import { readVectors, vectorFolder } from "./vectorFolder.ts";

/** The header fields of a block in eth_getBlockByNumber, with number and hash. */
export interface VectorBlock {
  readonly number: number;
  readonly hash: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const data = (value: unknown): string => `0x${value instanceof Uint8Array ? value.toHex() : ""}`;
const quantity = (value: unknown): string => {
  const digits = data(value).replace(/^0x0*/, "");
  return digits === "" ? "0x0" : `0x${digits}`;
};

const HEADER: readonly (readonly [string, (value: unknown) => string])[] = [
  ["parentHash", data],
  ["sha3Uncles", data],
  ["miner", data],
  ["stateRoot", data],
  ["transactionsRoot", data],
  ["receiptsRoot", data],
  ["logsBloom", data],
  ["difficulty", quantity],
  ["number", quantity],
  ["gasLimit", quantity],
  ["gasUsed", quantity],
  ["timestamp", quantity],
  ["extraData", data],
  ["mixHash", data],
  ["nonce", data],
  ["baseFeePerGas", quantity],
  ["withdrawalsRoot", data],
  ["blobGasUsed", quantity],
  ["excessBlobGas", quantity],
  ["parentBeaconBlockRoot", data],
  ["requestsHash", data],
];

export const headerFields = (header: readonly Uint8Array[]): Record<string, string> =>
  Object.fromEntries(
    header.map((value, index) => {
      const [name, format] = HEADER[index] ?? [`field${index}`, data];
      return [name, format(value)];
    }),
  );

const parseBlock = (item: unknown): VectorBlock => {
  if (!Array.isArray(item) || !Array.isArray(item[0]) || !Array.isArray(item[1])) {
    throw new Error("no block in chain.rlp");
  }
  const header: Uint8Array[] = item[0];
  const hash = keccak256(RLP.encode(header));
  const fields = headerFields(header);
  const transactions = item[1].map((transaction: Uint8Array | Uint8Array[]) =>
    keccak256(transaction instanceof Uint8Array ? transaction : RLP.encode(transaction)),
  );
  return { number: Number(fields.number), hash, fields: { ...fields, hash, uncles: [], transactions, size: "0x0" } };
};

const GENESIS = "debug_getRawHeader/get-genesis.io";

/** Reads the header of block 0 from a vector, because the chain file begins with block 1. */
const readGenesis = (): VectorBlock => {
  const raw = readVectors().find(({ name }) => name === GENESIS)?.exchanges[0]?.response.result;
  if (typeof raw !== "string") {
    throw new Error(`no vector ${GENESIS}`);
  }
  const header: unknown = RLP.decode(raw);
  if (!Array.isArray(header)) {
    throw new Error(`no header in ${GENESIS}`);
  }
  const hash = keccak256(raw);
  return { number: 0, hash, fields: { ...headerFields(header), hash, uncles: [], transactions: [], size: "0x0" } };
};

/** Blocks 0 to the head, in order. */
export const readVectorChain = (): readonly VectorBlock[] => {
  let rest: Uint8Array = readFileSync(join(vectorFolder, "execution-apis/chain.rlp"));
  const blocks: VectorBlock[] = [];
  while (rest.length > 0) {
    const { data: item, remainder } = RLP.decode(rest, true);
    blocks.push(parseBlock(item));
    rest = remainder;
  }
  return [readGenesis(), ...blocks];
};

import type { BlockHeader } from "../../src/ethereum/blockHeader.ts";
import { type Address, type Data, type Hash, parseData } from "../../src/ethereum/hex.ts";
import type { LogEntry } from "../../src/ethereum/receipt.ts";

/** A block of anvil, with hashes instead of transactions. */
export interface NodeBlock {
  readonly hash: Hash;
  readonly parentHash: Hash;
  readonly miner: Address;
  readonly stateRoot: Hash;
  readonly transactionsRoot: Hash;
  readonly receiptsRoot: Hash;
  readonly logsBloom: Data;
  readonly number: Data;
  readonly gasLimit: Data;
  readonly gasUsed: Data;
  readonly timestamp: Data;
  readonly extraData: Data;
  readonly mixHash: Hash;
  readonly baseFeePerGas: Data;
  readonly withdrawalsRoot: Hash;
  readonly blobGasUsed: Data;
  readonly excessBlobGas: Data;
  readonly parentBeaconBlockRoot: Hash;
  readonly requestsHash: Hash;
  readonly transactions: readonly Hash[];
}

export const headerOf = (block: NodeBlock): BlockHeader => ({
  parentHash: block.parentHash,
  miner: block.miner,
  stateRoot: block.stateRoot,
  transactionsRoot: block.transactionsRoot,
  receiptsRoot: block.receiptsRoot,
  logsBloom: parseData(block.logsBloom),
  number: BigInt(block.number),
  gasLimit: BigInt(block.gasLimit),
  gasUsed: BigInt(block.gasUsed),
  timestamp: BigInt(block.timestamp),
  extraData: block.extraData,
  mixHash: block.mixHash,
  baseFeePerGas: BigInt(block.baseFeePerGas),
  withdrawalsRoot: block.withdrawalsRoot,
  blobGasUsed: BigInt(block.blobGasUsed),
  excessBlobGas: BigInt(block.excessBlobGas),
  parentBeaconBlockRoot: block.parentBeaconBlockRoot,
  requestsHash: block.requestsHash,
});

/** A frame of anvil's callTracer; `index` orders the logs of all frames. */
export interface CallFrame {
  readonly from: Address;
  readonly to?: Address;
  readonly gasUsed: Data;
  readonly error?: string;
  readonly logs?: readonly (LogEntry & { readonly index: Data })[];
  readonly calls?: readonly CallFrame[];
}

/** The logs of successful frames. A failed frame discards its logs and those of its calls. */
export const logsOf = (frame: CallFrame): LogEntry[] => {
  const standing = (each: CallFrame): readonly (LogEntry & { readonly index: Data })[] =>
    each.error === undefined ? [...(each.logs ?? []), ...(each.calls ?? []).flatMap(standing)] : [];
  return standing(frame)
    .toSorted((a, b) => Number(a.index) - Number(b.index))
    .map(({ address, topics, data }) => ({ address, topics, data }));
};

export const accountsOf = (frame: CallFrame): Address[] => [
  frame.from,
  ...(frame.to === undefined ? [] : [frame.to]),
  ...(frame.calls ?? []).flatMap(accountsOf),
];

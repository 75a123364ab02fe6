/** Fields of a block object in the execution API, up to Osaka. */
const KNOWN_FIELDS = new Set([
  ...["hash", "number", "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot"],
  ...["logsBloom", "difficulty", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce"],
  ...["baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"],
  ...["transactions", "uncles", "withdrawals", "size"],
  // Nodes add these; they are not in the header.
  ...["totalDifficulty", "author", "sealFields", "signature", "step"],
]);

/** Returns the names of fields that no known fork has. Forebay does not know the rules of a block with such a field. */
export const unknownFields = (block: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.keys(block).filter((name) => !KNOWN_FIELDS.has(name) && block[name] !== null && block[name] !== undefined);

import { isForkActive, type Rules } from "./rules.ts";

/** Fields of a block object in the execution API, up to Osaka. */
const KNOWN_FIELDS = new Set([
  ...["hash", "number", "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot"],
  ...["logsBloom", "difficulty", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce"],
  ...["baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"],
  ...["transactions", "uncles", "withdrawals", "size"],
  // Nodes add these; they are not in the header.
  ...["totalDifficulty", "author", "sealFields", "signature", "step"],
]);

const AMSTERDAM_FIELDS: ReadonlySet<string> = new Set(["blockAccessListHash", "slotNumber"]);

/** Returns the names of fields that were added after Osaka. */
export const laterFields = (block: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.keys(block).filter((name) => !KNOWN_FIELDS.has(name) && block[name] !== null && block[name] !== undefined);

/** Returns which of the fields the rules do not have. Forebay does not know the rules of a block with such a field. */
export const unknownFields = (later: readonly string[], rules: Rules): readonly string[] =>
  later.filter((name) => !(AMSTERDAM_FIELDS.has(name) && isForkActive(rules, "amsterdam")));

/** Returns the names of fields that the rules have and the block does not. The block has older rules. */
export const missingFields = (later: readonly string[], rules: Rules): readonly string[] =>
  isForkActive(rules, "amsterdam") ? [...AMSTERDAM_FIELDS].filter((name) => !later.includes(name)) : [];

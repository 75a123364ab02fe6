import { isFields } from "../json/jsonBytes.ts";
import {
  arrayOf,
  atMost,
  type CanonicalJson,
  lengthOf,
  mapOf,
  objectOf,
  type Parser,
  readAddress,
  readData,
  readHash,
  readQuantity,
  readSlot,
} from "./paramSpec.ts";

const accessListFields = { address: readAddress, storageKeys: arrayOf(readHash) };

/** The 2^24 gas of a transaction (EIP-7825) pay for 8,830 addresses and slots: 2,400 and 1,900 gas each (EIP-2930). */
const MAX_ACCESS_LIST = 10_000;

const countEntries = (list: unknown): number =>
  Array.isArray(list)
    ? list.reduce<number>((sum, entry: unknown) => sum + 1 + (isFields(entry) ? lengthOf(entry.storageKeys) : 0), 0)
    : 0;

const accessList = atMost(MAX_ACCESS_LIST, "addresses and slots", arrayOf(objectOf(accessListFields)), countEntries);

/** The 2^24 gas of a transaction pay for 671 authorizations (EIP-7702), and a transaction has 6 blobs at most (EIP-7594). */
const MAX_LIST = 1_000;

const authorization = objectOf({
  chainId: readQuantity,
  address: readAddress,
  nonce: readQuantity,
  yParity: readQuantity,
  v: readQuantity,
  r: readQuantity,
  s: readQuantity,
});

const transactionFields = {
  from: readAddress,
  to: readAddress,
  gas: readQuantity,
  gasPrice: readQuantity,
  maxFeePerGas: readQuantity,
  maxPriorityFeePerGas: readQuantity,
  maxFeePerBlobGas: readQuantity,
  value: readQuantity,
  nonce: readQuantity,
  chainId: readQuantity,
  type: readQuantity,
  data: readData,
  input: readData,
  accessList,
  blobVersionedHashes: atMost(MAX_LIST, "values", arrayOf(readHash)),
  authorizationList: atMost(MAX_LIST, "values", arrayOf(authorization)),
};

/** GenericTransaction of the execution API. `data` is the older name of `input`. If both are set, `input` is used, as in geth. */
export const readTransaction = objectOf(transactionFields, { data: "input" });

const slots = mapOf(readSlot, readSlot);

const overrideFields = { balance: readQuantity, nonce: readQuantity, code: readData, state: slots, stateDiff: slots };
/** Of all accounts together. The names of 90,000 held the event loop for 130 ms. */
const MAX_OVERRIDDEN_SLOTS = 5_000;

const countOverridden = (byAddress: unknown): number =>
  Object.values(isFields(byAddress) ? byAddress : {})
    .flatMap((override) => (isFields(override) ? [override.state, override.stateDiff] : []))
    .reduce((sum: number, each) => sum + (isFields(each) ? Object.keys(each).length : 0), 0);

/** AccountOverride by address: the state overrides of eth_call and eth_estimateGas. */
export const readStateOverrides: Parser = atMost(
  MAX_OVERRIDDEN_SLOTS,
  "slots",
  mapOf(readAddress, objectOf(overrideFields)),
  countOverridden,
);

const hasOnly = (value: CanonicalJson, fields: object): boolean =>
  isFields(value) && Object.keys(value).every((key) => Object.hasOwn(fields, key));

/** Whether forebay knows all fields of a call and of its state overrides. A node may know more, or ignore the case of their names. */
export const hasKnownFields = (call: CanonicalJson, stateOverrides: CanonicalJson): boolean => {
  const accessList = isFields(call) && Array.isArray(call.accessList) ? call.accessList : [];
  return (
    hasOnly(call, transactionFields) &&
    accessList.every((entry: CanonicalJson) => hasOnly(entry, accessListFields)) &&
    (stateOverrides === null ||
      Object.values(stateOverrides).every((override: CanonicalJson) => hasOnly(override, overrideFields)))
  );
};

export const readBlockOverrides: Parser = objectOf({
  number: readQuantity,
  time: readQuantity,
  timestamp: readQuantity,
  gasLimit: readQuantity,
  feeRecipient: readAddress,
  coinbase: readAddress,
  prevRandao: readHash,
  random: readHash,
  baseFeePerGas: readQuantity,
  baseFee: readQuantity,
  blobBaseFee: readQuantity,
});

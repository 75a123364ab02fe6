import { isFields } from "../json/jsonBytes.ts";
import {
  arrayOf,
  type CanonicalJson,
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
  accessList: arrayOf(objectOf(accessListFields)),
  blobVersionedHashes: arrayOf(readHash),
  authorizationList: arrayOf(authorization),
};

/** GenericTransaction of the execution API. `data` is the older name of `input`. If both are set, `input` is used, as in geth. */
export const readTransaction = objectOf(transactionFields, { data: "input" });

const slots = mapOf(readSlot, readSlot);

const overrideFields = { balance: readQuantity, nonce: readQuantity, code: readData, state: slots, stateDiff: slots };
/** AccountOverride by address: the state overrides of eth_call and eth_estimateGas. */
export const readStateOverrides: Parser = mapOf(readAddress, objectOf(overrideFields));

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

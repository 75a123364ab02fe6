import {
  type CanonicalJson,
  listOf,
  mapOf,
  objectOf,
  type Parser,
  readAddress,
  readData,
  readHash,
  readQuantity,
  readSlot,
  sortFields,
} from "./paramSpec.ts";

const accessListItem = objectOf({ address: readAddress, storageKeys: listOf(readHash) });

const authorization = objectOf({
  chainId: readQuantity,
  address: readAddress,
  nonce: readQuantity,
  yParity: readQuantity,
  v: readQuantity,
  r: readQuantity,
  s: readQuantity,
});

const fields = objectOf({
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
  accessList: listOf(accessListItem),
  blobVersionedHashes: listOf(readHash),
  authorizationList: listOf(authorization),
});

/** GenericTransaction of the execution API. `data` is the older name of `input`. If both are set, `input` is used, as in geth. */
export const readTransaction: Parser<{ readonly [key: string]: CanonicalJson }> = (value, name) => {
  const transaction = fields(value, name);
  if (transaction.data === undefined) {
    return transaction;
  }
  const { data, ...rest } = transaction;
  return sortFields({ input: data, ...rest });
};

const slots = mapOf(readSlot, readSlot);

/** AccountOverride by address: the state overrides of eth_call and eth_estimateGas. */
export const readStateOverrides: Parser = mapOf(
  readAddress,
  objectOf({ balance: readQuantity, nonce: readQuantity, code: readData, state: slots, stateDiff: slots }),
);

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

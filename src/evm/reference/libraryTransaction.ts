import { type Block, createBlock } from "@ethereumjs/block";
import type { Common } from "@ethereumjs/common";
import { createTx, paramsTx, TransactionType, type TypedTransaction } from "@ethereumjs/tx";
import { Address as AddressBytes } from "@ethereumjs/util";
import { formatAuthorization } from "../../ethereum/formatTransaction.ts";
import { parseData } from "../../ethereum/hex.ts";
import type { BlockEnvironment } from "../engine.ts";
import type { TransactionMessage } from "../transactionMessage.ts";

/** The limit of EIP-7825 is one of `checkTransaction`, which not every caller wants. */
const PARAMS = { ...paramsTx, "7825": { maxTransactionGasLimit: `${2n ** 64n - 1n}` } };

/** Converts a message to a transaction of the library. The type follows from the fields, because a call may combine them. */
export const libraryTransaction = (message: TransactionMessage, common: Common): TypedTransaction => {
  const { from, to, nonce, gas, value, input, accessList, maxFeePerGas, maxPriorityFeePerGas } = message;
  const type = libraryType(message, common);
  const isPriced = type === TransactionType.Legacy || type === TransactionType.AccessListEIP2930;
  const data = {
    type,
    chainId: common.chainId(),
    nonce,
    gasLimit: gas,
    value,
    data: input,
    ...(to === null ? {} : { to }),
    ...(isPriced ? { gasPrice: maxFeePerGas } : { maxFeePerGas, maxPriorityFeePerGas }),
    ...(type === TransactionType.Legacy ? {} : { accessList: [...accessList] }),
    ...(type === TransactionType.BlobEIP4844 ? blobFields(message) : {}),
    ...(type === TransactionType.EOACodeEIP7702 ? { authorizationList: authorizations(message) } : {}),
  };
  const transaction = createTx(data, { common, params: PARAMS, freeze: false });
  // The message has a sender and no signature.
  return Object.assign(transaction, { getSenderAddress: () => new AddressBytes(parseData(from)) });
};

const libraryType = (message: TransactionMessage, common: Common): TransactionType => {
  if (message.authorizationList.length > 0) {
    return TransactionType.EOACodeEIP7702;
  }
  if (message.blobVersionedHashes.length > 0) {
    return TransactionType.BlobEIP4844;
  }
  if (common.isActivatedEIP(1559)) {
    return TransactionType.FeeMarketEIP1559;
  }
  return common.isActivatedEIP(2930) ? TransactionType.AccessListEIP2930 : TransactionType.Legacy;
};

const blobFields = ({ maxFeePerBlobGas, blobVersionedHashes }: TransactionMessage) => ({
  maxFeePerBlobGas,
  blobVersionedHashes: [...blobVersionedHashes],
});

const authorizations = ({ authorizationList }: TransactionMessage) => authorizationList.map(formatAuthorization);

/** Converts a block environment to a block of the library. */
export const libraryBlock = (block: BlockEnvironment, common: Common): Block => {
  const { number, timestamp, coinbase, gasLimit, baseFee, prevRandao, difficulty, blobBaseFee } = block;
  const isProofOfStake = common.gteHardfork("paris");
  const header = {
    number,
    timestamp,
    coinbase,
    gasLimit,
    ...(common.isActivatedEIP(1559) ? { baseFeePerGas: baseFee } : {}),
    ...(isProofOfStake ? { mixHash: prevRandao } : { difficulty: difficulty ?? 0n }),
  };
  const created = createBlock({ header }, { common, freeze: false, skipConsensusFormatValidation: true });
  Object.assign(created.header, { getBlobGasPrice: () => blobBaseFee });
  return created;
};

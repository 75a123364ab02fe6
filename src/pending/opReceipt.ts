import { formatQuantity } from "../ethereum/hex.ts";
import { dataFootprint, type L1Attributes, l1DataCost } from "../ethereum/opFees.ts";
import { isOpForkActive, type Rules } from "../ethereum/rules.ts";
import type { ReceiptExtra } from "./execution.ts";

/** Returns the receipt fields that op-geth and op-reth add (docs/reference/op-stack.md, Fees and receipts). */
export const opReceiptExtra = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ReceiptExtra => {
  const { fee, gasUsed } = l1DataCost(rules, l1, raw);
  const hasOperatorFee = l1.operatorFeeScalar > 0n || l1.operatorFeeConstant > 0n;
  return {
    l1GasPrice: formatQuantity(l1.baseFee),
    l1GasUsed: formatQuantity(gasUsed),
    l1Fee: formatQuantity(fee),
    l1BaseFeeScalar: formatQuantity(l1.baseFeeScalar),
    l1BlobBaseFee: formatQuantity(l1.blobBaseFee),
    l1BlobBaseFeeScalar: formatQuantity(l1.blobBaseFeeScalar),
    ...(isOpForkActive(rules, "isthmus") && hasOperatorFee
      ? {
          operatorFeeScalar: formatQuantity(l1.operatorFeeScalar),
          operatorFeeConstant: formatQuantity(l1.operatorFeeConstant),
        }
      : {}),
    ...(isOpForkActive(rules, "jovian")
      ? {
          daFootprintGasScalar: formatQuantity(l1.daFootprintGasScalar),
          blobGasUsed: formatQuantity(dataFootprint(l1, raw)),
        }
      : {}),
  };
};

import type { BlockId } from "../../core/heads.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { DEPOSIT_TYPE } from "../../ethereum/transaction.ts";
import { recoverAuthority } from "../../evm/senders/recoverAddress.ts";
import { asText, type Fields } from "../../json/jsonBytes.ts";
import { checkBody } from "../../verification/checkBody.ts";
import { parseRpcPostExec } from "../../verification/encodeRpcTransaction.ts";
import { bytesOf, fieldsOf, isAbsent, listOf, numberOf } from "../../verification/jsonFields.ts";

/** The fields of a transaction that its trace must have, and those that a trace does not have. */
export interface TracedTransaction {
  readonly hash: Hash;
  readonly sender: Address;
  /** The sender's nonce after the transaction is at least this. Undefined for a deposit, whose trace may lack it. */
  readonly nextNonce: bigint | undefined;
  /** The transaction creates a contract itself. */
  readonly isCreation: boolean;
  /** The accounts that signed an authorization, with its nonce (EIP-7702). */
  readonly authorizations: readonly TracedAuthorization[];
  /** In wei. Present in a deposit. */
  readonly mint?: bigint;
}

export interface TracedAuthorization {
  readonly authority: Address;
  readonly nonce: bigint;
}

/** The transaction that gives back gas (Lagoon). A tracer lists it or leaves it out: its execution changes nothing. */
export interface TracedPostExec {
  readonly hash: Hash;
  /** Of the transactions that get gas back. */
  readonly senders: readonly Address[];
}

/** The fields of a block that the composition of its trace needs. */
export interface TracedBlock {
  /** Without a post-exec transaction. */
  readonly transactions: readonly TracedTransaction[];
  readonly postExec?: TracedPostExec | undefined;
  readonly feeRecipient: Address;
  /** Zero before EIP-1559. */
  readonly baseFee: bigint;
  readonly gasUsed: bigint;
  readonly blobGasUsed: bigint;
  readonly excessBlobGas: bigint;
  /** The accounts that received a withdrawal. */
  readonly withdrawn: readonly Address[];
  /** The block pays its miner outside its transactions, because it is from before the merge. */
  readonly paysMiner: boolean;
  /** The block pays the miners of other blocks, whose addresses it does not have. */
  readonly paysOmmers: boolean;
}

const addressOf = (value: unknown): Address => {
  const address = bytesOf(value, 20);
  return `0x${address.slice(2).toLowerCase()}`;
};

const countOf = (value: unknown): bigint => (isAbsent(value) ? 0n : numberOf(value));

const authorizationsOf = (fields: Fields): TracedAuthorization[] => {
  if (isAbsent(fields.authorizationList)) {
    return [];
  }
  const chainId = numberOf(fields.chainId);
  return listOf(fields.authorizationList).flatMap((item) => {
    const { chainId: own, address, nonce, yParity, v, r, s } = fieldsOf(item);
    const authorization = {
      chainId: numberOf(own),
      address: addressOf(address),
      nonce: numberOf(nonce),
      yParity: numberOf(yParity ?? v),
      r: numberOf(r),
      s: numberOf(s),
    };
    const authority = recoverAuthority(authorization, chainId);
    return authority === undefined ? [] : [{ authority, nonce: authorization.nonce }];
  });
};

const parseTracedTransaction = (value: unknown): TracedTransaction => {
  const fields = fieldsOf(value);
  const isDeposit = !isAbsent(fields.type) && numberOf(fields.type) === BigInt(DEPOSIT_TYPE);
  return {
    hash: bytesOf(fields.hash, 32),
    sender: addressOf(fields.from),
    nextNonce: isDeposit ? undefined : numberOf(fields.nonce) + 1n,
    isCreation: isAbsent(fields.to),
    authorizations: authorizationsOf(fields),
    ...(isDeposit ? { mint: countOf(fields.mint) } : {}),
  };
};

const postExecOf = (list: readonly unknown[]): TracedPostExec | undefined => {
  const postExec = list.length === 0 ? undefined : parseRpcPostExec(fieldsOf(list.at(-1)));
  return (
    postExec && {
      hash: postExec.hash,
      senders: postExec.refunds.flatMap(({ index }) =>
        list[index] === undefined ? [] : [addressOf(fieldsOf(list[index]).from)],
      ),
    }
  );
};

/**
 * Parses the JSON text of a block with whole transactions.
 * Returns undefined if it is another block, or if its hash or its transactions do not match its header.
 * Throws MalformedField or SyntaxError.
 */
export const parseTracedBlock = (body: Uint8Array, { number, hash }: BlockId): TracedBlock | undefined => {
  const findings = checkBody(body, { kind: "block", location: { number, hash }, checksHashes: true });
  if (findings.length === 0 || findings.some(({ outcome }) => outcome === "failed")) {
    return undefined;
  }
  const block = fieldsOf(JSON.parse(asText(body)));
  const all = listOf(block.transactions);
  const postExec = postExecOf(all);
  const withdrawals = isAbsent(block.withdrawalsRoot) ? [] : listOf(block.withdrawals);
  const paysMiner = numberOf(block.difficulty) > 0n;
  return {
    transactions: (postExec === undefined ? all : all.slice(0, -1)).map(parseTracedTransaction),
    postExec,
    feeRecipient: addressOf(block.miner),
    baseFee: countOf(block.baseFeePerGas),
    gasUsed: numberOf(block.gasUsed),
    blobGasUsed: countOf(block.blobGasUsed),
    excessBlobGas: countOf(block.excessBlobGas),
    withdrawn: withdrawals.map((withdrawal) => addressOf(fieldsOf(withdrawal).address)),
    paysMiner,
    paysOmmers: paysMiner && listOf(block.uncles).length > 0,
  };
};

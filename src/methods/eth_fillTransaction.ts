import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import {
  type Data,
  formatData,
  formatQuantity,
  type Hex,
  isQuantity,
  parseData,
  ZERO_ADDRESS,
} from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { formatJson, isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { eth_estimateGas } from "./eth_estimateGas.ts";
import { eth_getTransactionCount } from "./eth_getTransactionCount.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { type CanonicalJson, parseParams, required } from "./paramSpec.ts";
import { nonceIn } from "./pendingReads.ts";
import { eth_maxPriorityFeePerGas } from "./plainRead.ts";
import { hasKnownFields, readTransaction } from "./readTransaction.ts";

const name = "eth_fillTransaction";

type Fields = { readonly [key: string]: CanonicalJson };

const refused = (message: string): RpcError => new RpcError(CODES.SERVER, message);

const numberOf = (fields: Fields, key: string): bigint | undefined =>
  isQuantity(fields[key]) ? BigInt(fields[key]) : undefined;

const dataOf = (fields: Fields, key: string): Data => {
  const value = fields[key];
  return typeof value === "string" ? `0x${value.slice(2)}` : "0x";
};

/** Blobs, authorizations and unknown fields are for a node. geth drops the access list of a transaction with a gas price. */
const isForNode = (fields: Fields): boolean =>
  !hasKnownFields(fields, null) ||
  ["blobVersionedHashes", "maxFeePerBlobGas", "authorizationList", "type"].some((key) => fields[key] !== undefined) ||
  (fields.gasPrice !== undefined && fields.accessList !== undefined);

/** Returns what contradicts in a transaction. Texts and order: geth, internal/ethapi/transaction_args.go, setDefaults. */
const findContradiction = (given: unknown, fields: Fields, chainId: bigint): string | undefined => {
  const has = (key: string): boolean => fields[key] !== undefined;
  const [own, tip, fee] = ["chainId", "maxPriorityFeePerGas", "maxFeePerGas"].map((key) => numberOf(fields, key));
  const { data, input } = isFields(given) ? given : {};
  if (has("gasPrice") && (has("maxFeePerGas") || has("maxPriorityFeePerGas"))) {
    return "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified";
  }
  if (numberOf(fields, "gasPrice") === 0n) {
    return "gasPrice must be non-zero after london fork";
  }
  if (fee === 0n && tip !== undefined) {
    return "maxFeePerGas must be non-zero";
  }
  if (fee !== undefined && tip !== undefined && fee < tip) {
    return tooLowFee(fee, tip);
  }
  if (typeof data === "string" && typeof input === "string" && data.toLowerCase() !== input.toLowerCase()) {
    return 'both "data" and "input" are set and not equal. Please use "input" to pass transaction call data';
  }
  if (!has("to") && dataOf(fields, "input") === "0x") {
    return "contract creation without any data provided";
  }
  return own !== undefined && own !== chainId
    ? `chainId does not match node's (have=${own}, want=${chainId})`
    : undefined;
};

const tooLowFee = (fee: bigint, tip: bigint): string => `maxFeePerGas (${fee}) < maxPriorityFeePerGas (${tip})`;

type Fees = { readonly gasPrice: bigint } | { readonly tip: bigint; readonly fee: bigint };

/** The default maximum is twice the base fee of the head and the tip, as in geth. */
const readFees = async (input: MethodInput, fields: Fields, baseFee: bigint): Promise<Fees> => {
  const gasPrice = numberOf(fields, "gasPrice");
  if (gasPrice !== undefined) {
    return { gasPrice };
  }
  const call = createCall("eth_maxPriorityFeePerGas", []);
  const tip =
    numberOf(fields, "maxPriorityFeePerGas") ??
    BigInt(String(parsedResult(await eth_maxPriorityFeePerGas.handle({ ...input, call }))));
  const fee = numberOf(fields, "maxFeePerGas") ?? tip + 2n * baseFee;
  if (fee < tip) {
    throw refused(tooLowFee(fee, tip));
  }
  return { tip, fee };
};

const formatFees = (fees: Fees) =>
  "gasPrice" in fees
    ? { gasPrice: formatQuantity(fees.gasPrice), maxPriorityFeePerGas: null, maxFeePerGas: null }
    : {
        gasPrice: null,
        maxPriorityFeePerGas: formatQuantity(fees.tip),
        maxFeePerGas: formatQuantity(fees.fee),
      };

interface Filled {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly fees: Fees;
  readonly gas: bigint;
  readonly to: Data | undefined;
  readonly value: bigint;
  readonly input: Data;
  readonly accessList: readonly { readonly address: Hex; readonly storageKeys: readonly Hex[] }[];
}

const encodeAccessList = (list: Filled["accessList"]): Uint8Array =>
  encodeList(
    list.map(({ address, storageKeys }) =>
      encodeList([encodeBytes(parseData(address)), encodeList(storageKeys.map((key) => encodeBytes(parseData(key))))]),
    ),
  );

/** Encodes a transaction whose signature is zero, as geth does (EIP-1559, or the form before EIP-155). */
const encodeFilled = ({ chainId, nonce, fees, gas, to, value, input, accessList }: Filled): Uint8Array => {
  const content = [encodeBytes(parseData(to ?? "0x")), encodeNumber(value), encodeBytes(parseData(input))];
  const unsigned = [encodeNumber(0), encodeNumber(0), encodeNumber(0)];
  if ("gasPrice" in fees) {
    return encodeList([...[nonce, fees.gasPrice, gas].map(encodeNumber), ...content, ...unsigned]);
  }
  const numbers = [chainId, nonce, fees.tip, fees.fee, gas].map(encodeNumber);
  return concatBytes([
    Uint8Array.of(2),
    encodeList([...numbers, ...content, encodeAccessList(accessList), ...unsigned]),
  ]);
};

const formatFilled = (filled: Filled) => {
  const raw = encodeFilled(filled);
  const { chainId, nonce, fees, gas, to, value, input, accessList } = filled;
  const isLegacy = "gasPrice" in fees;
  const tx = {
    type: isLegacy ? "0x0" : "0x2",
    ...(isLegacy ? {} : { chainId: formatQuantity(chainId) }),
    ...{ nonce: formatQuantity(nonce), to: to ?? null, gas: formatQuantity(gas), ...formatFees(fees) },
    ...{ value: formatQuantity(value), input, ...(isLegacy ? {} : { accessList }) },
    ...{ v: "0x0", r: "0x0", s: "0x0", ...(isLegacy ? {} : { yParity: "0x0" }) },
    hash: keccak256Hex(raw),
  };
  return { raw: formatData(raw), tx };
};

/** Fills what the client left out: nonce and gas at `pending`, fees by the head. */
const fill = async (input: MethodInput, fields: Fields, baseFee: bigint): Promise<RpcResponse> => {
  const from = fields.from ?? ZERO_ADDRESS;
  const fees = await readFees(input, fields, baseFee);
  const counted = createCall("eth_getTransactionCount", [from, "pending"]);
  const known = numberOf(fields, "nonce");
  const answered = known === undefined ? await eth_getTransactionCount.handle({ ...input, call: counted }) : undefined;
  const { nonce: _, chainId: __, ...asked } = fields;
  const { gasPrice, maxPriorityFeePerGas, maxFeePerGas } = formatFees(fees);
  const priced = gasPrice === null ? { maxPriorityFeePerGas, maxFeePerGas } : { gasPrice };
  const estimate = createCall("eth_estimateGas", [{ ...asked, from, ...priced }, "pending"]);
  const gas =
    numberOf(fields, "gas") ?? BigInt(String(parsedResult(await eth_estimateGas.handle({ ...input, call: estimate }))));
  const filled: Filled = {
    ...{ chainId: input.chain.chainId, nonce: known ?? (answered ? nonceIn(answered) : 0n), fees, gas },
    ...{ to: fields.to === undefined ? undefined : dataOf(fields, "to"), value: numberOf(fields, "value") ?? 0n },
    ...{ input: dataOf(fields, "input"), accessList: (fields.accessList ?? []) as unknown as Filled["accessList"] },
  };
  const pending = answered?.pending ?? input.context.view.pending?.mode;
  return { body: formatJson(formatFilled(filled)), status: { hit: "local" }, ...(pending && { pending }) };
};

/**
 * Fills the fields of a transaction that the client left out, as geth's `eth_fillTransaction` does, and returns it unsigned.
 * Blob and set-code transactions are forwarded, and those of a chain without a base fee.
 */
export const eth_fillTransaction: Method = {
  name,
  retention: "computed",
  atPending: "view",
  isSlow: true,
  handle: (input) => {
    const { chain, call, context } = input;
    const [fields] = parseParams(call.params, [required("transaction", readTransaction)]);
    const { latest } = context.view.heads;
    const baseFee = context.view.heads.header(latest.number)?.baseFeePerGas;
    if (!isFields(fields) || isForNode(fields as Fields) || !isQuantity(baseFee)) {
      return forwarded(input);
    }
    const contradiction = findContradiction(call.params[0], fields as Fields, chain.chainId);
    if (contradiction !== undefined) {
      throw refused(contradiction);
    }
    return fill(input, fields as Fields, BigInt(baseFee));
  },
};

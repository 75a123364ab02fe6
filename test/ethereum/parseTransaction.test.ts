import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import secp256k1 from "secp256k1";
import { keccak256, parseTransaction as parseByViem, type TransactionSerializable } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { formatTransaction } from "../../src/ethereum/formatTransaction.ts";
import { type Address, formatData, type Hex, parseData } from "../../src/ethereum/hex.ts";
import { keccak256 as hash } from "../../src/ethereum/keccak.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, encodeDeposit, InvalidTransaction, signatureParts } from "../../src/ethereum/transaction.ts";

const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const sender = account.address.toLowerCase() as Address;
const to: Address = `0x${"42".repeat(20)}`;
const call = { nonce: 7, gas: 21_000n, to, value: 5n, data: "0x1234" } as const;
const accessList = [{ address: to, storageKeys: [`0x${"01".repeat(32)}`] }] as const;
const fees = { maxFeePerGas: 30n, maxPriorityFeePerGas: 2n };
const authorization = await account.signAuthorization({ address: to, chainId: 901, nonce: 8 });
const place = { sender, blockHash: null, blockNumber: 9n, transactionIndex: 3, baseFee: 10n };

const CASES: Record<string, TransactionSerializable> = {
  "legacy without a chain id": { type: "legacy", ...call, gasPrice: 9n },
  "legacy with a chain id": { type: "legacy", ...call, chainId: 901, gasPrice: 9n },
  "with an access list": { type: "eip2930", ...call, chainId: 901, gasPrice: 9n, accessList },
  "with dynamic fees": { type: "eip1559", ...call, chainId: 901, ...fees },
  "a creation of zero value and nonce": { type: "eip1559", chainId: 901, gas: 1n, nonce: 0, data: "0x00", ...fees },
  "with long input": { type: "eip1559", ...call, chainId: 901, ...fees, data: `0x${"ab".repeat(70_000)}`, accessList },
  "with blobs": {
    type: "eip4844",
    ...call,
    chainId: 901,
    ...fees,
    maxFeePerBlobGas: 3n,
    blobVersionedHashes: [`0x01${"0f".repeat(31)}`],
    sidecars: false,
  },
  "with authorizations": { type: "eip7702", ...call, chainId: 901, ...fees, authorizationList: [authorization] },
};

for (const [name, transaction] of Object.entries(CASES)) {
  test(`${name}: hash, sender and fields are what viem signed`, async () => {
    const raw: Hex = await account.signTransaction(transaction);
    const parsed = parseTransaction(parseData(raw));
    assert.ok(parsed.type !== DEPOSIT_TYPE);
    assert.equal(parsed.hash, keccak256(raw));
    const { digest, signature, recoveryId } = signatureParts(parsed);
    const key = secp256k1.ecdsaRecover(signature, recoveryId, digest, false);
    assert.equal(formatData(hash(key.subarray(1)).subarray(12)), sender);
    const theirs = parseByViem(raw);
    assert.deepEqual(
      [parsed.nonce, parsed.gas, parsed.value, parsed.to, formatData(parsed.input), parsed.chainId],
      [
        BigInt(theirs.nonce ?? 0),
        theirs.gas,
        theirs.value ?? 0n,
        theirs.to ?? null,
        theirs.data ?? "0x",
        theirs.chainId === undefined ? undefined : BigInt(theirs.chainId),
      ],
    );
  });
}

const fieldsOf = async (name: string) => {
  const transaction = CASES[name];
  assert.ok(transaction);
  return formatTransaction(parseTransaction(parseData(await account.signTransaction(transaction))), place);
};

test("each type has the execution API's fields", async () => {
  const common = "blockHash blockNumber from gas gasPrice hash input nonce r s to transactionIndex type v value".split(
    " ",
  );
  const typed = [...common, "accessList", "chainId", "yParity"];
  const dynamic = [...typed, "maxFeePerGas", "maxPriorityFeePerGas"];
  const expected: Record<string, readonly string[]> = {
    "legacy without a chain id": common,
    "legacy with a chain id": [...common, "chainId"],
    "with an access list": typed,
    "with dynamic fees": dynamic,
    "with blobs": [...dynamic, "blobVersionedHashes", "maxFeePerBlobGas"],
    "with authorizations": [...dynamic, "authorizationList"],
  };
  for (const [name, fields] of Object.entries(expected)) {
    assert.deepEqual(Object.keys(await fieldsOf(name)).toSorted(), fields.toSorted(), name);
  }
  assert.equal((await fieldsOf("with dynamic fees")).gasPrice, "0xc");
});

const deposit = {
  sourceHash: `0x${"12".repeat(32)}`,
  from: to,
  to: null,
  mint: 4n,
  value: 0n,
  gas: 1_000n,
  isSystemTx: false,
  input: Uint8Array.of(1),
} as const;

test("a parsed deposit equals the encoded one", () => {
  const raw = encodeDeposit(deposit);
  const { hash: found, raw: bytes, type, ...fields } = parseTransaction(raw);
  assert.deepEqual(fields, deposit);
  assert.deepEqual([type, bytes, found], [0x7e, raw, keccak256(raw)]);
  assert.deepEqual(
    formatTransaction(parseTransaction(raw), { ...place, depositNonce: 6n, depositReceiptVersion: 1n }),
    {
      blockHash: null,
      blockNumber: "0x9",
      depositReceiptVersion: "0x1",
      from: to,
      gas: "0x3e8",
      gasPrice: "0x0",
      hash: found,
      input: "0x01",
      mint: "0x4",
      nonce: "0x6",
      r: "0x0",
      s: "0x0",
      sourceHash: deposit.sourceHash,
      to: null,
      transactionIndex: "0x3",
      type: "0x7e",
      v: "0x0",
      value: "0x0",
    },
  );
});

test("bytes that are not a transaction are rejected with a reason", async () => {
  const good = parseData(await account.signTransaction(CASES["with dynamic fees"] ?? { type: "eip1559", chainId: 1 }));
  const bad: readonly Uint8Array[] = [
    new Uint8Array(0),
    parseData("0x7e010203"),
    parseData("0x7dc0"),
    parseData("0x05c0"),
    parseData("0x02c0"),
    parseData("0xc0"),
    good.subarray(0, -1),
    new Uint8Array([...good, 0]),
  ];
  for (const bytes of bad) {
    assert.throws(() => parseTransaction(bytes), InvalidTransaction, formatData(bytes));
  }
});

test("any bytes are a transaction or refused by name, and never anything else", () => {
  const bytes = fc.tuple(fc.constantFrom(1, 2, 3, 4, 0x7e, 0xc8, 0xf8), fc.uint8Array({ maxLength: 60 }));
  fc.assert(
    fc.property(bytes, ([first, rest]) => {
      try {
        parseTransaction(Uint8Array.of(first, ...rest));
      } catch (error) {
        assert.ok(error instanceof InvalidTransaction, String(error));
      }
    }),
  );
});

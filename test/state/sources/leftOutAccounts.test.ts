import assert from "node:assert/strict";
import { test } from "node:test";
import { blobBaseFee } from "../../../src/ethereum/blockFees.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { createdAddress } from "../../../src/ethereum/receipt.ts";
import type { BlobSchedule } from "../../../src/ethereum/rules.ts";
import { mayLeaveOutAccounts } from "../../../src/state/sources/leftOutAccounts.ts";
import type { TracedBlock, TracedTransaction } from "../../../src/state/sources/tracedBlock.ts";
import type { DiffAccount } from "../../../src/state/sources/traceTexts.ts";

const HASH: Hash = `0x${"aa".repeat(32)}`;
const [SENDER, FACTORY, AUTHORITY, OTHER] = [1, 2, 3, 4].map(
  (index): Address => `0x${`${index}${index}`.repeat(20)}`,
) as [Address, Address, Address, Address];
const BLOBS = { target: 6n, max: 9n, updateFraction: 5_007_716n };

type Side = Readonly<Record<Address, Partial<DiffAccount>>>;
const sideOf = (side: Side) =>
  new Map(Object.entries(side).map(([address, account]) => [address as Address, { slots: new Map(), ...account }]));

interface Case {
  readonly pre?: Side;
  readonly post?: Side;
  readonly transaction?: Partial<TracedTransaction>;
  readonly block?: Partial<TracedBlock>;
}

/** A transaction of the sender's first nonce that writes nothing but what the case has. */
const mayLeaveOut = (
  { pre = {}, post = {}, transaction = {}, block = {} }: Case,
  blobs: BlobSchedule | undefined = BLOBS,
) =>
  mayLeaveOutAccounts(
    [{ transactionHash: HASH, pre: sideOf(pre), post: sideOf({ [SENDER]: { nonce: 1n }, ...post }) }],
    {
      transactions: [
        { hash: HASH, sender: SENDER, nextNonce: 1n, isCreation: false, authorizations: [], ...transaction },
      ],
      feeRecipient: OTHER,
      ...{ baseFee: 0n, gasUsed: 0n, blobGasUsed: 0n, excessBlobGas: 0n },
      withdrawn: [],
      paysMiner: false,
      paysOmmers: false,
      ...block,
    },
    blobs,
  );

const authorization = (nonce: bigint) => ({ authorizations: [{ authority: AUTHORITY, nonce }] });

test("a diff is complete if each creation is that of a new account", () => {
  const created = createdAddress(FACTORY, 5n);
  const complete: Readonly<Record<string, Case>> = {
    nothing: {},
    transfer: { pre: { [OTHER]: { balance: 1n } }, post: { [OTHER]: { balance: 1n } } },
    creation: {
      pre: { [FACTORY]: { nonce: 5n } },
      post: { [FACTORY]: { nonce: 6n }, [created]: { nonce: 1n } },
    },
    creationByNew: {
      pre: { [FACTORY]: { nonce: 5n } },
      post: { [FACTORY]: { nonce: 6n }, [created]: { nonce: 2n }, [createdAddress(created, 1n)]: { nonce: 1n } },
    },
    creationByTransaction: {
      post: { [createdAddress(SENDER, 0n)]: { nonce: 1n } },
      transaction: { isCreation: true },
    },
    authorization: {
      pre: { [AUTHORITY]: { nonce: 7n } },
      post: { [AUTHORITY]: { nonce: 8n } },
      transaction: authorization(7n),
    },
    authorizationOfSender: {
      post: { [SENDER]: { nonce: 2n } },
      transaction: { authorizations: [{ authority: SENDER, nonce: 1n }] },
    },
    skippedAuthorization: { transaction: authorization(7n) },
    deposit: {
      pre: { [SENDER]: { nonce: 4n } },
      post: { [SENDER]: { nonce: 5n, balance: 9n } },
      transaction: { nextNonce: undefined, mint: 9n },
      block: { baseFee: 7n, gasUsed: 21_000n },
    },
  };
  for (const [name, each] of Object.entries(complete)) {
    assert.equal(mayLeaveOut(each), false, name);
  }
});

test("a diff may leave out accounts if a creation is not explained", () => {
  const created = createdAddress(FACTORY, 5n);
  const rise = { pre: { [FACTORY]: { nonce: 5n } }, post: { [FACTORY]: { nonce: 6n } } };
  const suspicious: Readonly<Record<string, Case>> = {
    missing: rise,
    onlyFunded: { ...rise, post: { ...rise.post, [created]: { balance: 0n } } },
    existedBefore: {
      pre: { ...rise.pre, [created]: { nonce: 1n } },
      post: { ...rise.post, [created]: { nonce: 1n } },
    },
    /** It may be CREATE2, or the creation of an account that created this one. */
    otherAddress: { ...rise, post: { ...rise.post, [OTHER]: { nonce: 1n } } },
    byNew: {
      pre: rise.pre,
      post: { ...rise.post, [created]: { nonce: 2n } },
    },
    bySender: { post: { [SENDER]: { nonce: 2n } } },
    byTransaction: { transaction: { isCreation: true } },
    byAuthority: {
      pre: { [AUTHORITY]: { nonce: 7n } },
      post: { [AUTHORITY]: { nonce: 9n } },
      transaction: authorization(7n),
    },
    bySkippedAuthority: {
      pre: { [AUTHORITY]: { nonce: 7n } },
      post: { [AUTHORITY]: { nonce: 8n } },
      transaction: authorization(6n),
    },
    leftOutAuthority: { transaction: authorization(0n) },
    destroyed: { pre: { [OTHER]: { nonce: 1n } } },
    manyCreations: { post: { [FACTORY]: { nonce: 1n << 63n } } },
  };
  for (const [name, each] of Object.entries(suspicious)) {
    assert.equal(mayLeaveOut(each), true, name);
  }
});

test("a diff may leave out accounts if the sum of its balances does not fit", () => {
  const paid = (fee: bigint): Case => ({
    pre: { [SENDER]: { balance: 10n ** 9n } },
    post: { [SENDER]: { nonce: 1n, balance: 10n ** 9n - fee } },
  });
  const block = { baseFee: 7n, gasUsed: 21_000n };
  assert.equal(mayLeaveOut({ ...paid(147_000n), block }), false);
  assert.equal(mayLeaveOut({ ...paid(147_001n), block }), true, "a wei went to an account that is not there");
  const excessBlobGas = 20_000_000n;
  const price = blobBaseFee(excessBlobGas, BLOBS);
  assert.ok(price > 1n);
  const withBlobs = { ...block, blobGasUsed: 131_072n, excessBlobGas };
  assert.equal(mayLeaveOut({ ...paid(147_000n + price * 131_072n), block: withBlobs }), false);
  assert.equal(mayLeaveOut({ ...paid(147_000n), block: withBlobs }), true);
  const unknown = { ...BLOBS, updateFraction: BLOBS.updateFraction * 2n };
  assert.equal(mayLeaveOut({ ...paid(147_000n + price * 131_072n), block: withBlobs }, unknown), true);
});

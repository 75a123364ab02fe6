import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StateKeys, StateValues } from "../../src/core/stateReader.ts";
import type { View } from "../../src/core/view.ts";
import { opForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Data, formatData, type Hash, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodePostExec, postExecReceipt } from "../../src/ethereum/postExec.ts";
import { encodeReceipt, type Receipt } from "../../src/ethereum/receipt.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { parseFlashblock } from "../../src/feed/parseFlashblock.ts";
import { Pending } from "../../src/pending/pending.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createRunnerExecutor } from "./runnerExecutor.ts";
import { readJson } from "./vectorFolder.ts";

/** A feed of Subblocks whose block gives gas back. */

type Header = Readonly<Record<string, string>> & { readonly hash: Hash };

interface SubblocksReport {
  readonly chainId: number;
  readonly parent: Header;
  readonly sealed: Header;
  readonly messages: readonly unknown[];
  readonly requests: readonly { readonly params: readonly [Address, string]; readonly right: string }[];
  readonly receipt: Readonly<Record<string, string>>;
}

const report = readJson("reports/25-subblocks-post-exec.json") as SubblocksReport;
const { parent, sealed, requests } = report;
const SENDER = requests[0]?.params[0];
const TEN_ETHER = 10n * 10n ** 18n;
const NOTHING = new Uint8Array(0);

const messages = report.messages.map((message): FeedMessage => {
  const parsed = parseFlashblock(JSON.stringify(message));
  assert.ok("message" in parsed);
  return parsed.message;
});
const [first, second] = messages;
assert.ok(first && second);

/** All accounts are empty but the sender. */
const fetchState = async (_: unknown, keys: StateKeys): Promise<StateValues> => ({
  accounts: keys.accounts.map((address) => [
    address,
    address === SENDER ? { nonce: 0n, balance: TEN_ETHER, codeHash: EMPTY_CODE_HASH } : undefined,
  ]),
  codes: [],
  slots: keys.slots.map(([address, slot]) => [address, slot, NOTHING]),
  blockHashes: keys.blockHashes.map((number) => [number, parent.hash]),
});

const headOf = ({ number = "0x0", timestamp = "0x0", logsBloom = "0x", hash, ...header }: Header) => ({
  ...{ number: BigInt(number), hash, timestamp: BigInt(timestamp), logsBloom: parseData(logsBloom as Data) },
  header: { number, timestamp, logsBloom, hash, ...header },
});

const start = (t: TestContext) => {
  const forks = opForks(BigInt(report.chainId));
  assert.ok(forks);
  const heads = createFakeHeads(12n);
  heads.move(headOf(parent));
  const { executor, idle } = createRunnerExecutor({ forks, fetch: fetchState, delayMs: 0 });
  const telemetry = createTelemetry({ level: "silent" });
  let deliver: (message: FeedMessage) => void = () => {};
  const pending = new Pending({
    ...{ chain: "subblocks", mode: "feed", maxDepth: 5, skipsReceiptsRoot: false, heads, telemetry },
    forks: () => forks,
    openFeed: (onMessage) => {
      deliver = onMessage;
      return { close: () => {} };
    },
    read: async () => null,
  });
  pending.begin(executor);
  t.after(() => pending.close());
  return {
    heads,
    pending,
    idle,
    mismatches: async () => (await telemetry.metrics.pendingMismatches.get()).values,
    send: async (...list: readonly FeedMessage[]): Promise<View["pending"]> => {
      for (const message of list) {
        deliver(message);
      }
      await idle();
      return pending.view().pending;
    },
  };
};

const balancesOf = (view: View["pending"]): readonly (bigint | undefined)[] =>
  requests.map(({ params: [address] }) => view?.account(address)?.account?.balance);
const receiptsOf = (view: View["pending"]): readonly Readonly<Record<string, unknown>>[] =>
  JSON.parse(new TextDecoder().decode(view?.newest?.receipts()));

/**
 * The report's sealed block does not have the beacon root, the random value and the deposit's nonce that its feed has. They are taken
 * from the feed.
 */
test("a message with a post-exec transaction is executed with its refunds, and so is the sealed block", async (t) => {
  const rig = start(t);
  const view = await rig.send(...messages);
  assert.deepEqual([view?.mode, view?.stateFrom, view?.newest?.index], ["live", "view", 1]);
  assert.deepEqual(
    balancesOf(view),
    requests.map(({ right }) => BigInt(right)),
  );
  const { hash, ...receipt } = report.receipt;
  const shown = receiptsOf(view).find(({ transactionHash }) => transactionHash === hash);
  for (const [name, value] of Object.entries(receipt)) {
    assert.equal(shown?.[name], value, name);
  }
  const { number = "0x0", hash: sealedHash } = sealed;
  const all = [...receiptsWith(5_000n), postExecReceipt(second.commitments.gasUsed)];
  const receiptsRoot = orderedTrieRoot(all.map(encodeReceipt));
  rig.heads.move(headOf({ ...sealed, receiptsRoot, parentBeaconBlockRoot: ZERO_HASH, mixHash: ZERO_HASH }));
  await rig.idle();
  assert.deepEqual(await rig.mismatches(), []);
  const executed = await rig.pending.findExecuted(
    { number: BigInt(number), hash: sealedHash },
    new AbortController().signal,
  );
  assert.ok(typeof executed === "object", `the sealed block has the state of its messages: ${executed}`);
});

const DEPOSIT_GAS = first.commitments.gasUsed;
const BLOOM = new Uint8Array(256);
/** The receipts of the deposit and the transfer, which gets back this gas. */
const receiptsWith = (refund: bigint): readonly Receipt[] => {
  const common = { status: true, logs: [], logsBloom: BLOOM };
  const deposit = {
    ...common,
    type: 0x7e,
    cumulativeGasUsed: DEPOSIT_GAS,
    depositNonce: 0n,
    depositReceiptVersion: 1n,
  };
  return [deposit, { ...common, type: 2, cumulativeGasUsed: DEPOSIT_GAS + 21_000n - refund }];
};

/** An empty message whose post-exec transaction gives the transfer this gas back, or which has none. */
const restated = (index: number, refund: bigint, hasLastReceipt = false): FeedMessage => {
  const receipts = receiptsWith(refund);
  const gasUsed = receipts.at(-1)?.cumulativeGasUsed ?? 0n;
  const all = hasLastReceipt ? [...receipts, postExecReceipt(gasUsed)] : receipts;
  const closing = formatData(encodePostExec(14n, [{ index: 1, gasRefund: refund }]));
  return {
    ...second,
    index,
    transactions: [],
    closingTransaction: refund === 0n ? undefined : closing,
    receipts: undefined,
    commitments: { ...second.commitments, gasUsed, receiptsRoot: orderedTrieRoot(all.map(encodeReceipt)) },
  };
};

test("the deposit's receipt of the report is the one that the test expects", () => {
  assert.equal(orderedTrieRoot(receiptsWith(5_000n).map(encodeReceipt)), second.commitments.receiptsRoot);
});

test("each message restates the refunds of its block's earlier transactions", async (t) => {
  const rig = start(t);
  const price = 1_000_000_000n + 1_000_000n;
  const [balance = 0n, , recipient, vault] = balancesOf(await rig.send(...messages));
  let index = 2;
  for (const refund of [6_000n, 100n, 0n, 5_000n]) {
    const view = await rig.send(restated(index++, refund, refund === 100n));
    assert.deepEqual([view?.mode, view?.newest?.index], ["live", index - 1]);
    const more = refund - 5_000n;
    assert.deepEqual(balancesOf(view), [
      balance + more * price,
      10n ** 18n,
      (recipient ?? 0n) - more * 1_000_000n,
      (vault ?? 0n) - more * 1_000_000_000n,
    ]);
    const [, transfer] = receiptsOf(view);
    assert.equal(BigInt(String(transfer?.gasUsed)), 21_000n - refund);
    assert.equal(transfer?.opGasRefund, refund === 0n ? undefined : `0x${refund.toString(16)}`);
  }
});

test("refunds that do not give the message's gas, or that nobody has paid, are wrong", async (t) => {
  const wrong: readonly (readonly { index: number; gasRefund: bigint }[])[] = [
    [{ index: 1, gasRefund: 4_999n }],
    [{ index: 0, gasRefund: 5_000n }],
    [{ index: 2, gasRefund: 5_000n }],
    [{ index: 1, gasRefund: 21_001n }],
  ];
  for (const refunds of wrong) {
    const rig = start(t);
    const view = await rig.send(first, { ...second, closingTransaction: formatData(encodePostExec(14n, refunds)) });
    assert.deepEqual([view?.mode, view?.newest?.index], ["degraded", 0]);
  }
  const rig = start(t);
  const unknown = await rig.send(first, { ...second, closingTransaction: "0x7d01" });
  assert.deepEqual([unknown?.mode, unknown?.newest?.index], ["unverified", 1], "what cannot be read is not wrong");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { type Address, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { ExecutorClient } from "../../src/pending/executorClient.ts";
import type { DecodedTransaction, FlashblockJob } from "../../src/pending/flashblockJob.ts";
import { devAccounts } from "../devnet/traffic.ts";

/** Not the signer: an execution that shows this sender did not recover it again. */
const KNOWN: Address = `0x${"ab".repeat(20)}`;

test("the executing thread takes the senders that were recovered before, and reports the others", async (t) => {
  const reported: DecodedTransaction[] = [];
  const executor = new ExecutorClient({
    entry: workerEntry("pending"),
    // No rules are known, so that the thread decodes only.
    forks: () => ({ chainId: 901n, activations: [], blobs: {}, unknownFrom: 0n }),
    nativeContracts: [],
    senders: {
      of: async () => [KNOWN, undefined],
      add: (transactions) => {
        reported.push(...transactions);
      },
    },
    stateAt: () => ({ id: "none", read: () => Promise.reject(new Error("no state is read")) }),
    onFailure: (error) => {
      throw error;
    },
  });
  t.after(() => executor.close());
  const [account] = devAccounts;
  assert.ok(account);
  const fees = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 0n };
  const sign = (nonce: number) =>
    account.signTransaction({ type: "eip1559", chainId: 901, nonce, to: KNOWN, gas: 21_000n, ...fees });
  const job: FlashblockJob = {
    id: 1,
    before: undefined,
    environment: {
      number: 1n,
      timestamp: 1_700_000_000n,
      gasLimit: 30_000_000n,
      baseFeePerGas: 1n,
      feeRecipient: KNOWN,
      prevRandao: ZERO_HASH,
      parentHash: ZERO_HASH,
      parentBeaconBlockRoot: ZERO_HASH,
      extraData: "0x",
    },
    index: 0,
    transactions: [await sign(0), await sign(1)],
    accessList: [],
    expected: { gasUsed: 0n, logsBloom: "0x", receiptsRoot: ZERO_HASH },
  };
  const { transactions } = await executor.execute(job);
  assert.deepEqual(
    transactions.map(({ sender }) => sender),
    [KNOWN, account.address.toLowerCase()],
  );
  assert.deepEqual(reported, transactions);
});

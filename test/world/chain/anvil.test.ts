import assert from "node:assert/strict";
import { test } from "node:test";
import { type Anvil, startAnvil } from "../../devnet/anvil.ts";
import { EMITTER, EMITTER_CODE } from "./emitter.ts";
import { answerCall } from "./nodeAnswers.ts";
import { SENDERS } from "./openBlock.ts";
import { FEE_RECIPIENT, type TruthBlock } from "./truthBlock.ts";
import { TruthChain } from "./truthChain.ts";

const CHAIN_ID = 901;
const BLOCKS = 6;
const TRANSACTIONS = 5;
const SLOT = `0x${"00".repeat(32)}`;

type Fields = Readonly<Record<string, unknown>>;
const quantity = (value: bigint): string => `0x${value.toString(16)}`;

/** Gives anvil the state of a block: the accounts, and the slot of the contract. */
const copyState = async (anvil: Anvil, { state }: TruthBlock): Promise<void> => {
  await anvil.call("anvil_setCoinbase", FEE_RECIPIENT);
  await anvil.call("anvil_setCode", EMITTER, EMITTER_CODE);
  await anvil.call("anvil_setStorageAt", EMITTER, SLOT, state.word);
  for (const address of [...SENDERS, FEE_RECIPIENT]) {
    await anvil.call("anvil_setBalance", address, quantity(state.balance(address)));
    await anvil.call("anvil_setNonce", address, quantity(state.nonce(address)));
  }
};

const mineEqual = async (anvil: Anvil, block: TruthBlock): Promise<void> => {
  await anvil.call("anvil_setNextBlockBaseFeePerGas", block.json.baseFeePerGas);
  await anvil.call("evm_setNextBlockTimestamp", Number(block.header.timestamp));
  for (const raw of block.raws) {
    await anvil.call("eth_sendRawTransaction", raw);
  }
  await anvil.call("evm_mine");
};

/** The fields that do not depend on the block's hash. `of` has the names of the compared fields. */
const withoutHash = (value: unknown, of: unknown): Fields =>
  Object.fromEntries(
    Object.keys(Object(of))
      .filter((name) => name !== "blockHash" && name !== "blockNumber" && name !== "blockTimestamp")
      .map((name) => {
        const field: unknown = Reflect.get(Object(value), name);
        const list: unknown = Reflect.get(Object(of), name);
        return [
          name,
          name === "logs" && Array.isArray(field) && Array.isArray(list)
            ? field.map((log, index) => withoutHash(log, list[index]))
            : field,
        ];
      }),
  );

test("anvil executes the transactions of the chain with the receipts, roots and state of the record", async (t) => {
  const chain = await TruthChain.create(CHAIN_ID, 1);
  t.after(() => chain.lagBound.close());
  const before = chain.head;
  const anvil = await startAnvil([
    ...["--chain-id", `${CHAIN_ID}`, "--no-mining", "--order", "fifo", "--hardfork", "prague"],
    ...["--gas-limit", "30000000", "--timestamp", `${before.header.timestamp}`],
  ]);
  t.after(() => anvil.close());
  await copyState(anvil, before);
  for (let count = 0; count < BLOCKS; count++) {
    await chain.mine(count % 2 === 0 ? TRANSACTIONS : 1);
    const block = chain.head;
    await mineEqual(anvil, block);
    const mined = Object((await anvil.call("eth_getBlockByNumber", "latest", true)) as Fields);
    for (const name of [
      "transactionsRoot",
      "receiptsRoot",
      "logsBloom",
      "gasUsed",
      "gasLimit",
      "baseFeePerGas",
      "miner",
    ]) {
      assert.equal(mined[name], block.json[name], name);
    }
    const receipts = (await anvil.call("eth_getBlockReceipts", "latest")) as readonly unknown[];
    assert.deepEqual(
      receipts.map((receipt, index) => withoutHash(receipt, block.receipts[index])),
      block.receipts.map((receipt) => withoutHash(receipt, receipt)),
    );
    assert.deepEqual(
      mined.transactions.map((each: unknown, index: number) => withoutHash(each, block.transactions[index])),
      block.transactions.map((each) => withoutHash(each, each)),
    );
    const view = { chain, head: block };
    const calls: readonly (readonly [string, readonly unknown[]])[] = [
      ["eth_call", [{ to: EMITTER }, "latest"]],
      ["eth_getStorageAt", [EMITTER, SLOT, "latest"]],
      ["eth_getCode", [EMITTER, "latest"]],
      ...[...SENDERS, FEE_RECIPIENT].flatMap((address): [string, readonly unknown[]][] => [
        ["eth_getBalance", [address, "latest"]],
        ["eth_getTransactionCount", [address, "latest"]],
      ]),
    ];
    for (const [method, params] of calls) {
      assert.equal(await anvil.call(method, ...params), answerCall(view, method, params), `${method} ${params[0]}`);
    }
  }
});

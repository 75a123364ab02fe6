import { setTimeout as sleep } from "node:timers/promises";
import type { Anvil } from "../../../devnet/anvil.ts";
import type { RecordedGeth } from "./recordGeth.ts";
import type { Withdrawal } from "./recordings.ts";

/** A node that a recording plays on. */
export interface Player {
  readonly client: string;
  readonly call: RecordedGeth["call"];
  readonly callAll: RecordedGeth["callAll"];
  /** Puts the transactions in one block and returns its number. */
  seal(raws: readonly string[], withdrawals: readonly Withdrawal[]): Promise<string>;
}

const hashesOf = async (call: Player["call"], number: string): Promise<readonly string[]> =>
  ((await call("eth_getBlockByNumber", number, false)) as { transactions: readonly string[] }).transactions;

/** geth seals a block each second. The transactions are sent right after one, and must all be in the next. */
export const gethPlayer = (geth: RecordedGeth): Player => ({
  client: geth.version,
  call: geth.call,
  callAll: geth.callAll,
  seal: async (raws, withdrawals) => {
    const head = async () => Number(await geth.call("eth_blockNumber"));
    const start = await head();
    while ((await head()) === start) {
      await sleep(5);
    }
    for (const [index, { address, gwei }] of withdrawals.entries()) {
      const amount = `0x${gwei.toString(16)}`;
      await geth.call("dev_addWithdrawal", { index: `0x${index}`, validatorIndex: "0x1", address, amount });
    }
    const sent =
      raws.length === 0
        ? []
        : await geth.callAll(
            "eth_sendRawTransaction",
            raws.map((raw) => [raw]),
          );
    for (let number = start + 1; ; number++) {
      while ((await head()) < number) {
        await sleep(50);
      }
      const hex = `0x${number.toString(16)}`;
      const block = (await geth.call("eth_getBlockByNumber", hex, false)) as {
        transactions: readonly string[];
        withdrawals?: readonly unknown[];
      };
      if (block.transactions.length === 0 && (block.withdrawals?.length ?? 0) === 0) {
        if (raws.length + withdrawals.length === 0) {
          return hex;
        }
        continue;
      }
      if (
        block.transactions.length !== sent.length ||
        (block.withdrawals !== undefined && block.withdrawals.length !== withdrawals.length)
      ) {
        throw new Error(`block ${number} has ${block.transactions.length} of ${sent.length} transactions: try again`);
      }
      return hex;
    }
  },
});

/** anvil seals a block when it is asked to. */
export const anvilPlayer = async (anvil: Anvil): Promise<Player> => ({
  client: String(await anvil.call("web3_clientVersion")),
  call: anvil.call,
  callAll: anvil.callAll,
  seal: async (raws) => {
    await anvil.callAll(
      "eth_sendRawTransaction",
      raws.map((raw) => [raw]),
    );
    await anvil.call("evm_mine");
    const number = String(await anvil.call("eth_blockNumber"));
    if ((await hashesOf(anvil.call, number)).length !== raws.length) {
      throw new Error(`block ${number} does not have all transactions`);
    }
    return number;
  },
});

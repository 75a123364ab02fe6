import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { HeaderFields } from "../../src/core/heads.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, parseData } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { DEPOSIT_TYPE } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { Engine, TransactionResult } from "../../src/evm/engine.ts";
import type { ExecutionState } from "../../src/evm/executionState.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { recoverSender } from "../../src/evm/senders/recoverAddress.ts";
import { startCalls } from "../../src/evm/systemCalls.ts";
import { messageOf } from "../../src/evm/transactionMessage.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { compile } from "../support/builders/compile.ts";
import { completeOne } from "../support/builders/completedRun.ts";
import { createNodeState } from "../support/builders/nodeState.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { deploy } from "../support/servers/deployed.ts";

const CHAIN_ID = 31_337;
/** anvil's first two accounts, and an account that does not exist. */
const sender = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const authority = privateKeyToAccount("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const stranger = privateKeyToAccount("0x00000000000000000000000000000000000000000000000000000000000000aa");
type Account = ReturnType<typeof privateKeyToAccount>;

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
after(() => anvil.close());
const contracts = compile(join(import.meta.dirname, "Contracts.sol"), "prague");
const placed = await deploy(anvil, contracts, [
  ["Token", "Token", () => []],
  ["Slots", "Slots", () => []],
  ["Caller", "Caller", () => []],
  ["Factory", "Factory", () => []],
]);
await placed.send(placed.address("Token"), placed.encode("Token", "mint", [placed.sender, 10n ** 6n]));
await placed.send(placed.address("Slots"), placed.encode("Slots", "fill", [6n, 9n]));

const rules = rulesAt(fixedForks(BigInt(CHAIN_ID), "prague"), 1n, 1n);
const engine = (await createEngines())(rules);
const reference = (await createEngines("reference"))(rules);
const block = async (number: string) =>
  parseBaseBlock((await anvil.call("eth_getBlockByNumber", number, false)) as HeaderFields);

const WATCHED = [sender, authority, stranger].map(({ address }) => address.toLowerCase() as Address);

interface Mined {
  readonly gasUsed: Hex;
  readonly status: Hex;
  readonly logs: readonly unknown[];
  readonly blockNumber: Hex;
}

interface Replayed {
  readonly result: TransactionResult;
  readonly state: ExecutionState;
}

/** Executes the transaction in its block, on the state before the block. */
const replay = async (by: Engine, raw: Hex, before: string, mined: Mined): Promise<Replayed> => {
  const [parent, own] = [await block(before), await block(mined.blockNumber)];
  const source = createNodeState({ fetch: countedFetch(anvil).fetch, maxBytes: 16 * 1024 * 1024 }).at(parent);
  const known = new CachedState({ codes: new Map(), isNative: () => false });
  const transaction = parseTransaction(parseData(raw));
  if (transaction.type === DEPOSIT_TYPE) {
    throw new Error("a deposit");
  }
  const from = recoverSender(transaction);
  if (from === undefined) {
    throw new Error("no sender");
  }
  const completed = await completeOne(
    by,
    async (reader) => {
      const state = by.createState(reader);
      const environment = {
        number: own.number,
        timestamp: own.timestamp,
        coinbase: own.miner,
        gasLimit: own.gasLimit,
        baseFee: own.baseFeePerGas ?? 0n,
        prevRandao: own.mixHash,
        blobBaseFee: 1n,
        blockHash: () => parent.hash,
      };
      const start = { parentHash: parent.hash, parentBeaconBlockRoot: own.parentBeaconBlockRoot };
      for (const [to, data] of startCalls(by, start)) {
        await by.systemCall({ state, block: environment }, to, data);
      }
      const result = await by.transact({ state, block: environment }, messageOf(transaction, from));
      // The comparison reads these accounts, so that they must be fetched.
      for (const address of WATCHED) {
        state.codeOf(address);
      }
      return { state, result };
    },
    { known, fetch: (keys) => source.read(keys, new AbortController().signal) },
  );
  return completed.result;
};

/** Sends a transaction to the node, mines it, and compares the outcome. */
const compare = async (raw: Hex): Promise<TransactionResult> => {
  const before = (await anvil.call("eth_blockNumber")) as string;
  const hash = await anvil.call("eth_sendRawTransaction", raw);
  await anvil.call("evm_mine");
  const mined = (await anvil.call("eth_getTransactionReceipt", hash)) as Mined;
  await compareWith(await replay(reference, raw, before, mined), mined);
  const replayed = await replay(engine, raw, before, mined);
  await compareWith(replayed, mined);
  return replayed.result;
};

const compareWith = async ({ result, state }: Replayed, mined: Mined): Promise<void> => {
  assert.equal(result.gasUsed, BigInt(mined.gasUsed));
  assert.equal(result.status === "success", mined.status === "0x1", String(result.halt));
  assert.equal(result.logs.length, mined.logs.length);
  for (const address of WATCHED) {
    assert.equal(state.balanceOf(address), BigInt(String(await anvil.call("eth_getBalance", address, "latest"))));
    assert.equal(
      state.nonceOf(address),
      BigInt(String(await anvil.call("eth_getTransactionCount", address, "latest"))),
    );
    assert.equal(`0x${state.codeOf(address).toHex()}`, await anvil.call("eth_getCode", address, "latest"));
  }
};

const nonceOf = async (account: Account): Promise<number> =>
  Number(await anvil.call("eth_getTransactionCount", account.address, "latest"));
const FEES = { maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
const base = async () => ({ chainId: CHAIN_ID, nonce: await nonceOf(sender), gas: 1_000_000n });

test("transactions of types 0, 1 and 2 have anvil's outcome", async () => {
  const to = placed.address("Token");
  const data = placed.encode("Token", "transfer", [stranger.address, 3n]);
  await compare(
    await sender.signTransaction({ ...(await base()), type: "legacy", gasPrice: 2_000_000_000n, to, data }),
  );
  const accessList = [{ address: to, storageKeys: [`0x${"0".repeat(64)}`, `0x${"0".repeat(63)}1`] }] as const;
  await compare(
    await sender.signTransaction({
      ...(await base()),
      type: "eip2930",
      gasPrice: 2_000_000_000n,
      to,
      data,
      accessList,
    }),
  );
  await compare(await sender.signTransaction({ ...(await base()), ...FEES, to, data }));
});

test("a transfer to a new account, a creation and failing calls have anvil's outcome", async () => {
  await compare(await sender.signTransaction({ ...(await base()), ...FEES, to: stranger.address, value: 5n }));
  const code = contracts.get("Hasher")?.bytecode ?? "0x";
  await compare(await sender.signTransaction({ ...(await base()), ...FEES, data: code }));
  for (const how of [0n, 1n, 2n, 3n]) {
    const data = placed.encode("Caller", "fail", [how]);
    const result = await compare(
      await sender.signTransaction({ ...(await base()), ...FEES, to: placed.address("Caller"), data }),
    );
    assert.notEqual(result.status, "success");
  }
});

test("refunds and a contract that self-destructs in its first transaction have anvil's outcome", async () => {
  const wipe = placed.encode("Slots", "clear", [6n]);
  const result = await compare(
    await sender.signTransaction({ ...(await base()), ...FEES, to: placed.address("Slots"), data: wipe }),
  );
  assert.ok(result.maxUsedGas > result.gasUsed);
  const ends = placed.encode("Factory", "makeAndEnd", [4n, stranger.address]);
  await compare(
    await sender.signTransaction({ ...(await base()), ...FEES, to: placed.address("Factory"), data: ends, value: 9n }),
  );
});

test("long calldata costs at least the floor price (EIP-7623)", async () => {
  const data: Hex = `0x${"ff".repeat(3_000)}`;
  const result = await compare(
    await sender.signTransaction({ ...(await base()), ...FEES, to: stranger.address, data }),
  );
  assert.equal(result.gasUsed, 21_000n + 3_000n * 4n * 10n);
});

test("valid, invalid and revoked authorizations have anvil's outcome (EIP-7702)", async () => {
  const sign = async (account: Account, address: Address, nonce: number, chainId = CHAIN_ID) =>
    account.signAuthorization({ address, chainId, nonce });
  const send = async (authorizationList: Awaited<ReturnType<typeof sign>>[], to: Address, data: Hex) =>
    compare(await sender.signTransaction({ ...(await base()), ...FEES, type: "eip7702", to, data, authorizationList }));
  const caller = placed.address("Caller");
  const set = placed.encode("Caller", "set", [7n]);
  const nonce = await nonceOf(authority);
  await send([await sign(authority, caller, nonce)], authority.address, set);
  // Later transactions call the delegated account again.
  await compare(await sender.signTransaction({ ...(await base()), ...FEES, to: authority.address, data: set }));
  await send([await sign(authority, caller, nonce)], authority.address, set);
  await send([await sign(stranger, caller, 0, 999), await sign(stranger, caller, 0)], stranger.address, set);
  await send([await sign(authority, `0x${"0".repeat(40)}`, nonce + 1)], authority.address, set);
  await send([await sign(sender, caller, (await nonceOf(sender)) + 1)], sender.address, set);
});

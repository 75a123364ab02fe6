import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { type Address, type Hex, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { EthereumFork } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment, Engine, TransactionResult } from "../../src/evm/engine.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { type PlainState, readerOf } from "../support/builders/stateRoot.ts";

/** Differences between the engines that random programs have found, each with the value that geth gives. */
const FROM: Address = `0x${"aa".repeat(20)}`;
const TO: Address = `0x${"bb".repeat(20)}`;
const OTHER: Address = `0x${"dd".repeat(20)}`;
const NOTHING = new Uint8Array(0);
const CHECKS = { nonce: false, sender: false, freeGas: false };
const BLOCK: BlockEnvironment = {
  number: 5n,
  timestamp: 1n,
  coinbase: FROM,
  gasLimit: 30_000_000n,
  baseFee: 0n,
  prevRandao: ZERO_HASH,
  difficulty: 1n,
  blobBaseFee: 1n,
  blockHash: () => ZERO_HASH,
};

const stateOf = (codes: Readonly<Record<Address, string>>): PlainState => {
  const account = (code: Uint8Array, balance: bigint) => ({
    nonce: 0n,
    balance,
    code,
    codeHash: code.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(code),
    storage: new Map(),
  });
  const contracts = Object.entries(codes).map(
    ([address, code]) => [address as Address, account(Uint8Array.fromHex(code), 0n)] as const,
  );
  return new Map([[FROM, account(NOTHING, 10n ** 18n)], ...contracts]);
};

const messageTo = (to: Address, input: Uint8Array = NOTHING): TransactionMessage => ({
  type: 0,
  from: FROM,
  to,
  nonce: 0n,
  gas: 200_000n,
  value: 0n,
  input,
  maxFeePerGas: 1n,
  maxPriorityFeePerGas: 1n,
  accessList: [],
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: [],
});

const lowerAddress = (address: Hex): Address => `0x${address.slice(2).toLowerCase()}`;

const run = async (
  engine: Engine,
  codes: Readonly<Record<Address, string>>,
  calls: readonly { readonly to: Address; readonly input?: string }[],
) => {
  const state = engine.createState(readerOf(stateOf(codes), BLOCK.blockHash));
  const results: TransactionResult[] = [];
  for (const { to, input = "" } of calls) {
    const message = messageTo(to, Uint8Array.fromHex(input));
    results.push(await engine.transact({ state, block: BLOCK }, message, { checks: CHECKS }));
  }
  return { results, changes: state.changes() };
};

for (const kind of ["fast", "reference"] as const) {
  const engines = await createEngines(kind);
  const engineOf = (fork: EthereumFork) => engines({ chainId: 1n, fork });

  test(`${kind}: before EIP-161, an account that a transaction destroyed does not exist for the next one`, async () => {
    const destroys = "6000ff";
    /** Calls the destroyed account, then fails. */
    const callsAndFails = `6000600060006000600073${TO.slice(2)}5af1fe`;
    for (const fork of ["chainstart", "homestead", "tangerineWhistle"] as const) {
      const { results, changes } = await run(engineOf(fork), { [TO]: destroys, [OTHER]: callsAndFails }, [
        { to: TO },
        { to: OTHER },
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["success", "halt"],
        fork,
      );
      assert.ok(changes.has(TO), fork);
      assert.equal(changes.get(TO)?.account, undefined, fork);
    }
  });

  test(`${kind}: before EIP-161, SELFDESTRUCT pays for a beneficiary that an earlier transaction destroyed`, async () => {
    const destroysTo = (address: Hex) => `73${address.slice(2)}ff`;
    const { results } = await run(engineOf("tangerineWhistle"), { [TO]: destroysTo(FROM), [OTHER]: destroysTo(TO) }, [
      { to: TO },
      { to: OTHER },
    ]);
    // 21,000, PUSH20, SELFDESTRUCT, and 25,000 for the new account (EIP-150).
    assert.equal(results[1]?.maxUsedGas, 21_000n + 3n + 5_000n + 25_000n);
  });

  test(`${kind}: DUP of a word that the stack lacks has geth's text of an underflow`, async () => {
    const { results } = await run(engineOf("osaka"), { [TO]: "600183" }, [{ to: TO }]);
    assert.equal(results[0]?.halt, "stack underflow (1 <=> 4)");
  });

  test(`${kind}: RETURNDATACOPY to memory beyond 64 bits has geth's text of an overflow`, async () => {
    const { results } = await run(engineOf("osaka"), { [TO]: `60015f7f${"ff".repeat(32)}3e` }, [{ to: TO }]);
    assert.equal(results[0]?.halt, "gas uint64 overflow");
  });

  test(`${kind}: a point that bn254 rejects halts a transaction`, async () => {
    const to: Address = `0x${"06".padStart(40, "0")}`;
    const { results } = await run(engineOf("byzantium"), {}, [
      { to, input: "ff" },
      { to, input: "01" },
    ]);
    assert.deepEqual(
      results.map(({ status, gasUsed, halt }) => [status, gasUsed, halt]),
      [
        ["halt", 200_000n, "invalid fp.Element encoding"],
        ["halt", 200_000n, "point is not on curve"],
      ],
    );
  });
}

const DELEGATE: Address = `0x${"ee".repeat(20)}`;
const AUTHORITY = privateKeyToAccount(`0x${"42".repeat(32)}`);

/** Runs a call of the authority, then a transaction with its authorization. Returns the gas of the second one. */
const gasOfAuthorization = async (engine: Engine, touches: boolean): Promise<bigint | undefined> => {
  const state = engine.createState(readerOf(stateOf({}), BLOCK.blockHash));
  const signed = await AUTHORITY.signAuthorization({ chainId: 1, contractAddress: DELEGATE, nonce: 0 });
  const authorization = {
    ...{ chainId: 1n, address: DELEGATE, nonce: 0n, yParity: BigInt(signed.yParity ?? 0) },
    ...{ r: BigInt(signed.r), s: BigInt(signed.s) },
  };
  const plain = messageTo(lowerAddress(AUTHORITY.address));
  if (touches) {
    await engine.transact({ state, block: BLOCK }, plain, { checks: CHECKS });
  }
  const message = { ...plain, type: 4, to: DELEGATE, authorizationList: [authorization] };
  return (await engine.transact({ state, block: BLOCK }, message, { checks: CHECKS })).gasUsed;
};

for (const kind of ["fast", "reference"] as const) {
  test(`${kind}: an empty authority that an earlier transaction touched does not exist (EIP-7702)`, async () => {
    const engines = await createEngines(kind);
    const engine = engines({ chainId: 1n, fork: "osaka" });
    // 21,000, and 25,000 for an account that does not exist.
    assert.equal(await gasOfAuthorization(engine, false), 46_000n);
    assert.equal(await gasOfAuthorization(engine, true), 46_000n);
  });
}

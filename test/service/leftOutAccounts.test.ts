import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Address, formatQuantity } from "../../src/ethereum/hex.ts";
import { createdAddress } from "../../src/ethereum/receipt.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startTraced } from "../world/nodes/startTraced.ts";
import type { BlockDraft } from "../world/state/blockDraft.ts";
import { StandInChain, type StandInTransaction } from "../world/state/standInChain.ts";
import { createAuthority, createDelegation, createTransaction } from "../world/state/standInTransactions.ts";
import { wordOf } from "../world/state/stateKeys.ts";

const TRACES = { source: "trace" } as const;
const STATE_HIT = "forebay; hit; detail=state";
const [SENDER, FACTORY, HIDDEN, BETWEEN, FEE_RECIPIENT] = [1, 2, 3, 4, 5].map(addressOf) as [
  ...[Address, Address, Address, Address, Address],
];
const OTHERS = Array.from({ length: 20 }, (_, index) => addressOf(10 + index));
const CODE = "0x60015f55";
const SLOT = wordOf(1n);
const FEE = 21_000n * 8n;
const TIP = 21_000n;
const RICH = 10n ** 18n;
const AUTHORITY = createAuthority(3);
const AUTHORITY_ADDRESS = AUTHORITY.address.toLowerCase() as Address;

type Write = (draft: BlockDraft, nonce: bigint) => StandInTransaction | Promise<StandInTransaction>;

/** A chain of blocks with up to one transaction. Its values are those of a real execution: fees are paid, nothing is lost. */
class CreatingChain {
  readonly chain = new StandInChain("prague");

  constructor() {
    const draft = this.chain.draft();
    for (const account of [SENDER, FACTORY, ...OTHERS]) {
      draft.setBalance(account, RICH);
    }
    draft.setNonce(FACTORY, 1n);
    draft.setCode(FACTORY, CODE);
    draft.endPhase();
    draft.endPhase();
    this.chain.seal(draft);
  }

  async mine(write?: Write): Promise<void> {
    if (write === undefined) {
      this.chain.mine();
      return;
    }
    const draft = this.chain.draft();
    draft.endPhase();
    const nonce = draft.state.nonce(SENDER);
    draft.setNonce(SENDER, nonce + 1n);
    draft.addBalance(SENDER, -FEE);
    draft.addBalance(FEE_RECIPIENT, TIP);
    const transaction = await write(draft, nonce);
    draft.endPhase();
    draft.endPhase();
    this.chain.seal(draft, { transactions: [transaction], feeRecipient: FEE_RECIPIENT });
  }
}

const plain = (nonce: bigint, to: Address | null = FACTORY, value = 0n) =>
  createTransaction({ sender: SENDER, nonce, to, value });

/** Writes everything that a constructor can write. The SELFDESTRUCT is reverted. */
const writeHidden = (draft: BlockDraft, creator: Address): void => {
  draft.create(creator, HIDDEN);
  draft.setCode(HIDDEN, CODE);
  draft.setSlot(HIDDEN, SLOT, 7n);
  draft.runSelfDestruct(HIDDEN);
};

const CASES: Readonly<Record<string, Write>> = {
  "a contract creates it, and its SELFDESTRUCT is reverted": (draft, nonce) => {
    writeHidden(draft, FACTORY);
    return plain(nonce);
  },
  "it is created with value and keeps that when it destroys itself to itself (EIP-8246)": (draft, nonce) => {
    draft.create(FACTORY, HIDDEN);
    draft.setNonce(HIDDEN, 0n);
    draft.addBalance(SENDER, -5n);
    draft.addBalance(HIDDEN, 5n);
    draft.runSelfDestruct(HIDDEN);
    return plain(nonce, FACTORY, 5n);
  },
  "it creates another contract, so that creations and new accounts are equal in number": (draft, nonce) => {
    writeHidden(draft, FACTORY);
    draft.create(HIDDEN, BETWEEN);
    return plain(nonce);
  },
  "another contract that is left out creates it": (draft, nonce) => {
    draft.create(FACTORY, BETWEEN);
    draft.runSelfDestruct(BETWEEN);
    writeHidden(draft, BETWEEN);
    return plain(nonce);
  },
  "its creation is reverted, and then it receives value": (draft, nonce) => {
    draft.destroyReverted(FACTORY, HIDDEN);
    draft.addBalance(SENDER, -1n);
    draft.addBalance(HIDDEN, 1n);
    return plain(nonce, FACTORY, 1n);
  },
  "the transaction itself creates a contract that creates it": (draft, nonce) => {
    const created = createdAddress(SENDER, nonce);
    draft.setNonce(SENDER, nonce);
    draft.create(SENDER, created, "CREATE");
    draft.runSelfDestruct(created);
    writeHidden(draft, created);
    return plain(nonce, null);
  },
  "the delegated sender creates it (EIP-7702)": (draft, nonce) => {
    writeHidden(draft, SENDER);
    return plain(nonce, SENDER);
  },
  "an authority of the transaction creates it (EIP-7702)": (draft, nonce) => {
    const authorized = draft.state.nonce(AUTHORITY_ADDRESS);
    draft.setNonce(AUTHORITY_ADDRESS, authorized + 1n);
    draft.setCode(AUTHORITY_ADDRESS, `0xef0100${FACTORY.slice(2)}`);
    writeHidden(draft, AUTHORITY_ADDRESS);
    const transaction = { sender: SENDER, nonce, to: AUTHORITY_ADDRESS, value: 0n };
    return createDelegation(transaction, AUTHORITY, { target: FACTORY, nonce: authorized });
  },
};

const READS = [
  ["eth_getBalance", HIDDEN],
  ["eth_getTransactionCount", HIDDEN],
  ["eth_getCode", HIDDEN],
  ["eth_getStorageAt", HIDDEN, SLOT],
] as const;

const start = async (t: TestContext, options?: { readonly hasCallTraces: boolean }) => {
  const creating = new CreatingChain();
  const { node, service } = await startTraced(t, creating.chain, TRACES, options);
  const read = ([method, ...params]: readonly [string, ...string[]]) => rpc(service.url, method, [...params, "latest"]);
  const readAll = () => Promise.all(READS.map(read));
  const others = JSON.stringify(
    OTHERS.map((address, id) => ({ jsonrpc: "2.0", id, method: "eth_getBalance", params: [address, "latest"] })),
  );
  /** In one batch: their results do not matter here. */
  const readOthers = async () => {
    const headers = { "content-type": "application/json" };
    await (await fetch(service.url, { method: "POST", headers, body: others })).arrayBuffer();
  };
  const turn = async (write?: Write): Promise<void> => {
    await creating.mine(write);
    await followHead(service, creating.chain);
    await readOthers();
  };
  for (let count = 0; count < 6; count++) {
    await turn();
    await readAll();
  }
  for (const { headers } of await readAll()) {
    assert.equal(headers.get("cache-status"), STATE_HIT, "the empty account is known");
  }
  const expected = () => {
    const state = creating.chain.stateAt(creating.chain.head.hash);
    return [
      formatQuantity(state.balance(HIDDEN)),
      formatQuantity(state.nonce(HIDDEN)),
      state.code(HIDDEN),
      state.slot(HIDDEN, SLOT),
    ];
  };
  const results = async () => (await readAll()).map(({ body }) => body.result);
  const traces = () => node.calls.get("debug_traceBlockByHash") ?? 0;
  return { service, turn, read, results, expected, traces };
};

for (const [name, write] of Object.entries(CASES)) {
  test(`no value of an account that geth leaves out of its diff is served from known state: ${name}`, async (t) => {
    const { service, turn, read, results, expected } = await start(t);
    await turn(write);
    assert.deepEqual(await results(), expected());
    for (const address of OTHERS) {
      const { headers } = await read(["eth_getBalance", address]);
      assert.equal(headers.get("cache-status"), STATE_HIT, "other values stay known");
    }
    await turn();
    assert.deepEqual(await results(), expected());
    assert.equal(await metric(service.opsUrl, "forebay_state_write_sets_total", 'outcome="unlisted"'), 0);
  });

  test(`without call traces, such a block has no write set: ${name}`, async (t) => {
    const { service, turn, results, expected } = await start(t, { hasCallTraces: false });
    await turn(write);
    assert.deepEqual(await results(), expected());
    assert.equal(await metric(service.opsUrl, "forebay_state_write_sets_total", 'outcome="unlisted"'), 1);
    assert.equal(await metric(service.opsUrl, "forebay_state_drops_total", 'reason="noWriteSet"'), 1);
  });
}

test("creations whose accounts the diff has need no call trace", async (t) => {
  const { turn, traces } = await start(t);
  const before = traces();
  await turn((draft, nonce) => {
    draft.setNonce(SENDER, nonce);
    draft.create(SENDER, createdAddress(SENDER, nonce), "CREATE");
    draft.create(FACTORY, createdAddress(FACTORY, draft.state.nonce(FACTORY)), "CREATE");
    return plain(nonce, null);
  });
  assert.equal(traces(), before + 1);
});

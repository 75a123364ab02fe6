import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { startAnvil } from "../../devnet/anvil.ts";
import { ActorSigner, type ActorTransaction } from "./actor.ts";
import { type RecordedGeth, startGeth } from "./recordGeth.ts";
import { readTruth, type StateTruth } from "./stateTruth.ts";

/** A block of a real node with its diff trace, and the values of keys before and after it. */
export interface RecordedTrace {
  readonly name: string;
  readonly client: string;
  readonly what: string;
  readonly block: Readonly<Record<string, unknown>> & { readonly number: string; readonly hash: Hash };
  readonly trace: unknown;
  /** The trace with `disableCode`. */
  readonly traceWithoutCode?: unknown;
  /** The RLP of the block access list, if the header has its hash. */
  readonly accessList?: string;
  readonly before: StateTruth;
  readonly after: StateTruth;
}

/** A node that a recording plays on. */
interface Player {
  readonly client: string;
  readonly call: RecordedGeth["call"];
  readonly callAll: RecordedGeth["callAll"];
  /** Puts the transactions in one block and returns its number. */
  seal(raws: readonly string[], withdrawals: readonly Withdrawal[]): Promise<string>;
}

interface Withdrawal {
  readonly address: Address;
  readonly gwei: number;
}

interface Recording {
  readonly name: string;
  readonly what: string;
  /** Blocks before the recorded one. */
  readonly setup?: readonly (readonly ActorTransaction[])[];
  readonly transactions: readonly ActorTransaction[];
  readonly withdrawals?: readonly Withdrawal[];
  readonly accounts: readonly Address[];
  /** Whether the trace with `disableCode` is recorded too. */
  readonly hasWithoutCode?: boolean;
  /** Slots of system contracts, which depend on the block. */
  readonly slots?: (number: bigint, timestamp: bigint) => readonly (readonly [Address, readonly Hash[]])[];
}

const KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
] as const;
const FOLDER = new URL("../../state/sources/recorded/", import.meta.url);

const slot = (number: number | bigint): Hash => `0x${number.toString(16).padStart(64, "0")}`;
const STORE_SLOTS = [0, 1, 2].map(slot);
const RING_SLOTS = 8_191n;
const BEACON_ROOTS: Address = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
const BLOCK_HASHES: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";
const WITHDRAWAL_REQUESTS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
const CONSOLIDATION_REQUESTS: Address = "0x0000bbddc7ce488642fb579f8b00f3a590007251";

/** The recipient of transactions that delegate. It does not exist. */
const NOBODY: Address = "0x0000000000000000000000000000000000000000";

const TRACER = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };
const WITHOUT_CODE = { tracer: "prestateTracer", tracerConfig: { diffMode: true, disableCode: true } };

const hashesOf = async (call: Player["call"], number: string): Promise<readonly string[]> =>
  ((await call("eth_getBlockByNumber", number, false)) as { transactions: readonly string[] }).transactions;

/** geth seals a block each second. The transactions are sent right after one, and must all be in the next. */
const gethPlayer = (geth: RecordedGeth): Player => ({
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

const record = async (player: Player, signer: ActorSigner, recording: Recording): Promise<RecordedTrace> => {
  const { name, what, setup = [], transactions, withdrawals = [], accounts, slots } = recording;
  const sign = async (list: readonly ActorTransaction[]) => {
    const raws: string[] = [];
    for (const transaction of list) {
      raws.push(await signer.sign(transaction));
    }
    return raws;
  };
  for (const list of setup) {
    await player.seal(await sign(list), []);
  }
  const number = await player.seal(await sign(transactions), withdrawals);
  const block = (await player.call("eth_getBlockByNumber", number, true)) as RecordedTrace["block"] & {
    readonly miner: Address;
    readonly timestamp: string;
  };
  const own = [...accounts, ...signer.accounts.map(({ address }) => address), signer.actor, block.miner];
  const keys = new Map<Address, readonly Hash[]>(own.map((address) => [address.toLowerCase() as Address, STORE_SLOTS]));
  for (const [address, list] of slots?.(BigInt(number), BigInt(block.timestamp)) ?? []) {
    keys.set(address, list);
  }
  return {
    name,
    client: player.client,
    what,
    block,
    trace: await player.call("debug_traceBlockByHash", block.hash, TRACER),
    ...(recording.hasWithoutCode
      ? { traceWithoutCode: await player.call("debug_traceBlockByHash", block.hash, WITHOUT_CODE) }
      : {}),
    before: await readTruth(player.callAll, keys, `0x${(BigInt(number) - 1n).toString(16)}`),
    after: await readTruth(player.callAll, keys, number),
  };
};

/** Writes one line for each block. */
const write = (client: string, recorded: readonly RecordedTrace[]): void => {
  mkdirSync(FOLDER, { recursive: true });
  const lines = recorded.map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(new URL(`${client}.jsonl`, FOLDER), lines.join(""));
};

const call = (from: number, to: Address, value: bigint, data?: Hash): ActorTransaction => ({
  kind: "call",
  from,
  to,
  value,
  ...(data === undefined ? {} : { data }),
});

const deployAndFund = async (player: Player, signer: ActorSigner): Promise<void> => {
  await player.seal([await signer.deploy()], []);
  await player.seal([await signer.sign(call(0, signer.actor, 10n ** 18n))], []);
};

/** Recordings of rules that hold on every fork. */
const commonRecordings = (signer: ActorSigner): readonly Recording[] => {
  const at = (salt: number) => signer.storeOf(salt);
  const steps = (list: (ActorTransaction & { kind: "steps" })["steps"]): ActorTransaction => ({
    kind: "steps",
    from: 1,
    steps: list,
  });
  const set = (salt: number, index: number, value: number) =>
    ({ kind: "set", target: at(salt), slot: index, value }) as const;
  return [
    {
      name: "clearedSlots",
      what: "A transaction sets a slot of 7 to zero. Another sets a slot, and a third one sets it to zero.",
      setup: [[steps([{ kind: "create", salt: 1 }, set(1, 0, 7), set(1, 1, 7)])]],
      transactions: [steps([set(1, 0, 0)]), steps([set(1, 2, 5)]), steps([set(1, 2, 0)])],
      accounts: [at(1)],
    },
    {
      name: "destroyed",
      what: "A contract with two slots is destroyed, in a transaction that does not read them.",
      setup: [
        [steps([{ kind: "create", salt: 2 }, set(2, 0, 7), set(2, 1, 8), { kind: "fund", target: at(2), value: 9 }])],
      ],
      transactions: [steps([{ kind: "end", target: at(2), beneficiary: signer.actor }])],
      accounts: [at(2)],
    },
    {
      name: "destructionUndone",
      what: "A contract destroys itself, and the call that did so is reverted.",
      setup: [[steps([{ kind: "create", salt: 3 }, set(3, 0, 7)])]],
      transactions: [
        steps([
          { kind: "endUndone", target: at(3) },
          { kind: "fund", target: at(3), value: 4 },
        ]),
      ],
      accounts: [at(3)],
    },
    {
      name: "destructionOfNewUndone",
      what: "A transaction creates a contract, which destroys itself in a call that is reverted.",
      transactions: [steps([{ kind: "create", salt: 4 }, set(4, 0, 7), { kind: "endUndone", target: at(4) }])],
      accounts: [at(4)],
    },
    {
      name: "createdAgain",
      what: "A CREATE2 at a contract's address fails, and the contract then runs SELFDESTRUCT in the same transaction.",
      setup: [[steps([{ kind: "create", salt: 5 }, set(5, 0, 7)])]],
      transactions: [
        steps([
          { kind: "create", salt: 5 },
          { kind: "end", target: at(5), beneficiary: signer.actor },
        ]),
      ],
      accounts: [at(5)],
    },
    {
      name: "newCode",
      what: "Two transactions create a contract each.",
      transactions: [steps([{ kind: "create", salt: 6 }]), steps([{ kind: "create", salt: 7 }])],
      hasWithoutCode: true,
      accounts: [at(6), at(7)],
    },
    {
      name: "destroyedFunded",
      what: "A transaction creates and destroys a contract at an address that had a balance.",
      setup: [[call(1, at(8), 5n)]],
      transactions: [
        steps([{ kind: "create", salt: 8 }, set(8, 0, 3), { kind: "end", target: at(8), beneficiary: signer.actor }]),
      ],
      accounts: [at(8)],
    },
  ];
};

/** Recordings of rules that hold since Prague. */
const pragueRecordings = (signer: ActorSigner): readonly Recording[] => {
  const delegate = (to: Address | undefined): ActorTransaction => ({ kind: "delegate", from: 1, authority: 2, to });
  return [
    {
      name: "delegated",
      what: "An account delegates to a contract.",
      transactions: [delegate(signer.storeOf(1))],
      accounts: [NOBODY],
      hasWithoutCode: true,
    },
    {
      name: "delegationCleared",
      what: "An account clears its delegation.",
      setup: [[delegate(signer.storeOf(1))]],
      transactions: [delegate(undefined)],
      accounts: [NOBODY],
    },
  ];
};

/** Recordings of what a block writes outside its transactions. */
const systemRecordings = (signer: ActorSigner): readonly Recording[] => {
  const [, trader, , stranger] = signer.accounts.map(({ address }) => address);
  const blockSlots: Recording["slots"] = (number, timestamp) => [
    [BEACON_ROOTS, [slot(timestamp % RING_SLOTS), slot((timestamp % RING_SLOTS) + RING_SLOTS)]],
    [BLOCK_HASHES, [slot((number - 1n) % RING_SLOTS)]],
    [WITHDRAWAL_REQUESTS, [0, 1, 2, 3, 4, 5, 6].map(slot)],
    [CONSOLIDATION_REQUESTS, [0, 1, 2, 3, 4, 5, 6].map(slot)],
  ];
  return [
    {
      name: "emptyBlock",
      what: "A block without transactions writes the parent's hash and beacon root.",
      transactions: [],
      accounts: [],
      slots: blockSlots,
    },
    {
      name: "withdrawals",
      what: "An account that sends a transaction also receives a withdrawal, as does another one.",
      transactions: [call(1, signer.actor, 3n)],
      withdrawals: [
        { address: trader as Address, gwei: 5 },
        { address: stranger as Address, gwei: 6 },
      ],
      accounts: [],
      slots: blockSlots,
    },
    {
      name: "requests",
      what: "Transactions request a withdrawal and a consolidation. The end of the block empties both queues.",
      transactions: [
        call(1, WITHDRAWAL_REQUESTS, 1n, `0x${"11".repeat(56)}`),
        call(1, WITHDRAWAL_REQUESTS, 1n, `0x${"22".repeat(56)}`),
        call(1, WITHDRAWAL_REQUESTS, 1n, `0x${"33".repeat(56)}`),
        call(1, CONSOLIDATION_REQUESTS, 1n, `0x${"44".repeat(96)}`),
        call(1, CONSOLIDATION_REQUESTS, 1n, `0x${"55".repeat(96)}`),
      ],
      accounts: [],
      slots: blockSlots,
    },
  ];
};

const FORKS_AFTER_SHANGHAI = ["cancunTime", "pragueTime", "osakaTime", "bogotaTime", "blobSchedule"];

/** The forks of geth that are recorded, with the names of their recordings. */
const GETH_PLANS = [
  {
    suffix: "Geth",
    change: (_config: Record<string, unknown>) => undefined,
    names: [
      ...["clearedSlots", "destructionOfNewUndone", "createdAgain", "newCode", "destroyedFunded"],
      ...["delegated", "delegationCleared", "emptyBlock", "withdrawals", "requests"],
    ],
  },
  {
    suffix: "GethShanghai",
    change: (config: Record<string, unknown>) => {
      for (const fork of FORKS_AFTER_SHANGHAI) {
        delete config[fork];
      }
    },
    names: ["destroyed", "destructionUndone"],
  },
  {
    suffix: "GethAmsterdam",
    change: (config: Record<string, unknown>) => {
      delete config.bogotaTime;
      config.amsterdamTime = 0;
    },
    names: [
      ...["clearedSlots", "destructionOfNewUndone", "createdAgain", "destroyedFunded"],
      ...["delegationCleared", "withdrawals", "requests"],
    ],
  },
];

const recordAll = async (
  player: Player,
  signer: ActorSigner,
  { names, suffix }: { readonly names: readonly string[]; readonly suffix: string },
): Promise<RecordedTrace[]> => {
  const recordings = [...commonRecordings(signer), ...pragueRecordings(signer), ...systemRecordings(signer)];
  const recorded: RecordedTrace[] = [];
  for (const recording of recordings.filter(({ name }) => names.includes(name))) {
    recorded.push({ ...(await record(player, signer, recording)), name: `${recording.name}${suffix}` });
  }
  return recorded;
};

const recordGeth = async (
  binary: string,
  { suffix, change, names }: (typeof GETH_PLANS)[number],
): Promise<RecordedTrace[]> => {
  const signer = new ActorSigner(1_337, KEYS);
  const geth = await startGeth(
    binary,
    signer.accounts.map(({ address }) => address),
    ({ config }) => change(config),
  );
  try {
    const player = gethPlayer(geth);
    await deployAndFund(player, signer);
    const recorded = await recordAll(player, signer, { names, suffix });
    const blocks = recorded.map(({ block }) => block).filter(({ blockAccessListHash }) => blockAccessListHash);
    const lists = blocks.length === 0 ? [] : await geth.readAccessLists(blocks);
    return recorded.map((each) => {
      const accessList = lists[blocks.indexOf(each.block)];
      return accessList === undefined ? each : { ...each, accessList };
    });
  } finally {
    await geth.close();
  }
};

const ANVIL_PLANS = [
  { suffix: "Anvil", fork: "osaka", names: ["delegationCleared", "newCode", "destructionOfNewUndone"] },
  { suffix: "AnvilShanghai", fork: "shanghai", names: ["destroyed"] },
];

const recordAnvil = async ({ suffix, fork, names }: (typeof ANVIL_PLANS)[number]): Promise<RecordedTrace[]> => {
  const anvil = await startAnvil(["--no-mining", "--order", "fifo", "--hardfork", fork]);
  try {
    const signer = new ActorSigner(31_337, KEYS);
    const player: Player = {
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
    };
    await deployAndFund(player, signer);
    return await recordAll(player, signer, { names, suffix });
  } finally {
    await anvil.close();
  }
};

/** Records the blocks of test/state/sources/recorded. Usage: `npx node test/support/state/recordTraces.ts <path of geth>`. */
if (import.meta.main) {
  const [binary] = process.argv.slice(2);
  if (binary === undefined) {
    throw new Error("the path of geth is missing");
  }
  const ofGeth: RecordedTrace[] = [];
  for (const plan of GETH_PLANS) {
    ofGeth.push(...(await recordGeth(binary, plan)));
  }
  write("geth", ofGeth);
  const ofAnvil: RecordedTrace[] = [];
  for (const plan of ANVIL_PLANS) {
    ofAnvil.push(...(await recordAnvil(plan)));
  }
  write("anvil", ofAnvil);
}

import type { Address, Hash } from "../../../../src/ethereum/hex.ts";
import type { ActorSigner, ActorTransaction } from "../../../support/state/actor.ts";

export interface Withdrawal {
  readonly address: Address;
  readonly gwei: number;
}

/** A block to record. */
export interface Recording {
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

/** Returns the key of a slot. */
export const slot = (number: number | bigint): Hash => `0x${number.toString(16).padStart(64, "0")}`;
const RING_SLOTS = 8_191n;
const BEACON_ROOTS: Address = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
const BLOCK_HASHES: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";
const WITHDRAWAL_REQUESTS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
const CONSOLIDATION_REQUESTS: Address = "0x0000bbddc7ce488642fb579f8b00f3a590007251";

/** The recipient of transactions that delegate. It does not exist. */
const NOBODY: Address = "0x0000000000000000000000000000000000000000";

/** Returns a transaction that calls `to`. */
export const call = (from: number, to: Address, value: bigint, data?: Hash): ActorTransaction => ({
  kind: "call",
  from,
  to,
  value,
  ...(data === undefined ? {} : { data }),
});

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

/** Returns the recordings of all rules. */
export const allRecordings = (signer: ActorSigner): readonly Recording[] => [
  ...commonRecordings(signer),
  ...pragueRecordings(signer),
  ...systemRecordings(signer),
];

import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import type { StandInChain } from "../../world/state/standInChain.ts";
import { wordOf } from "../../world/state/stateKeys.ts";

/** A part of a result. The lies change a copy. */
type Part = Record<string, unknown>;

/** A result with what the lies need of its call. */
interface Told {
  readonly result: unknown;
  readonly params: readonly unknown[];
  readonly chain: StandInChain;
}

/** Returns the false result. Undefined: the lie does not fit this result. */
type ToldLie = (told: Told) => unknown;

/** The lies about a kind of result, by their names. */
interface LieGroup {
  readonly methods: readonly string[];
  readonly lies: Readonly<Record<string, ToldLie>>;
}

const FALSE_WORD = wordOf(0xbadn);
const FALSE_NUMBER = "0xbad";
const NOBODY: Address = `0x${"bad0".repeat(10)}`;

const partsIn = (value: unknown): Part[] => (Array.isArray(value) ? (value as Part[]) : []);
const copyOf = <Value>(value: Value): Value => structuredClone(value);

/** A lie about one object. */
const changed =
  (change: (copy: Part, told: Told) => boolean | undefined): ToldLie =>
  (told) => {
    const copy = copyOf(told.result) as Part | null;
    return copy === null || change(copy, told) === false ? undefined : copy;
  };

const withField = (name: string, value: unknown): ToldLie =>
  changed((copy) => {
    copy[name] = value;
    return true;
  });

const HEADER_LIES: LieGroup = {
  methods: ["eth_getBlockByNumber", "eth_getBlockByHash"],
  lies: {
    "header: state root": withField("stateRoot", FALSE_WORD),
    "header: list hash": withField("blockAccessListHash", FALSE_WORD),
    "header: parent hash": withField("parentHash", FALSE_WORD),
    "header: unknown field": changed((copy) => {
      Object.assign(copy, { newField: "0x1", stateRoot: FALSE_WORD, blockAccessListHash: FALSE_WORD });
      return true;
    }),
    "header: field missing": changed((copy) => delete copy.blockAccessListHash),
    "header: an older one": ({ result, params: [, isFull], chain }) => {
      const older = chain.at(Number((result as Part | null)?.number ?? 0) - 1);
      return older === undefined ? undefined : isFull === true ? older.fullJson : older.json;
    },
  },
};

/** A lie about the first account of a list that has items under a name. */
const inAccount = (name: string, change: (items: Part[], account: Part, list: Part[]) => void): ToldLie =>
  changed((copy) => {
    const list = partsIn(copy);
    const account = list.findLast((each) => partsIn(each[name]).length > 0);
    if (account === undefined) {
      return false;
    }
    change(partsIn(account[name]), account, list);
    return true;
  });

/** A lie about a list with two accounts or more. */
const inList = (change: (list: Part[]) => void): ToldLie =>
  changed((copy) => {
    const list = partsIn(copy);
    if (list.length < 2) {
      return false;
    }
    change(list);
    return true;
  });

const changesOf = (slot: Part | undefined): Part[] => partsIn(slot?.changes);

const LIST_LIES: LieGroup = {
  methods: ["eth_getBlockAccessList"],
  lies: {
    "list: slot value": inAccount("storageChanges", ([slot]) =>
      Object.assign(changesOf(slot).at(-1) ?? {}, { value: FALSE_WORD }),
    ),
    "list: balance": inAccount("balanceChanges", (items) => Object.assign(items.at(-1) ?? {}, { value: FALSE_NUMBER })),
    "list: nonce": inAccount("nonceChanges", (items) => Object.assign(items.at(-1) ?? {}, { value: FALSE_NUMBER })),
    "list: code": inAccount("codeChanges", (items) => Object.assign(items.at(-1) ?? {}, { code: "0x6001" })),
    "list: account dropped": inList((list) => list.pop()),
    "list: slot dropped": inAccount("storageChanges", (slots) => slots.pop()),
    "list: slot moved to reads": inAccount("storageChanges", (slots, account) => {
      account.storageReads = [...partsIn(account.storageReads), slots.pop()?.key];
    }),
    "list: index": inAccount("balanceChanges", (items) => Object.assign(items.at(-1) ?? {}, { index: "0x7f" })),
    "list: account added": inList((list) => {
      const added = { storageChanges: [], storageReads: [], nonceChanges: [], codeChanges: [] };
      list.push({ ...added, address: NOBODY, balanceChanges: [{ index: "0x1", value: FALSE_NUMBER }] });
    }),
    "list: emptied": inList((list) => list.splice(0)),
    "list: two accounts swapped": inList((list) => list.push(...list.splice(0, 1))),
    "list: an account twice": inList((list) => list.push(copyOf(list.at(-1) ?? {}))),
  },
};

/** A lie about a proof with slots. */
const inSlots = (change: (slots: Part[]) => boolean | undefined): ToldLie =>
  changed((copy) => {
    const slots = partsIn(copy.storageProof);
    return slots.length > 0 && change(slots);
  });

const inNodes = (change: (nodes: string[]) => void): ToldLie =>
  changed((copy) => {
    const nodes = copy.accountProof as string[];
    change(nodes);
    return nodes.length > 0;
  });

const flipDigit = (text: string): string => `${text.slice(0, -1)}${text.endsWith("0") ? "1" : "0"}`;

/** A proof of another block or of another account, with the address that was asked for. */
const otherProof =
  (choose: (told: Told) => { readonly hash: Hash | undefined; readonly address: Address }): ToldLie =>
  (told) => {
    const [address, slots] = told.params as [Address, readonly Hash[]];
    const { hash, address: other } = choose(told);
    const proof = told.chain.block(hash)?.proofOf?.(other, slots);
    const isOther = JSON.stringify(proof?.accountProof) !== JSON.stringify((told.result as Part).accountProof);
    return proof !== undefined && isOther ? { ...proof, address } : undefined;
  };

const blockOf = ({ params: [, , at], chain }: Told) =>
  chain.block((at as { readonly blockHash?: Hash } | undefined)?.blockHash ?? at) ?? chain.at(Number(at));

const PROOF_LIES: LieGroup = {
  methods: ["eth_getProof"],
  lies: {
    "proof: byte of a node": inNodes((nodes) => nodes.push(flipDigit(nodes.pop() ?? ""))),
    "proof: node dropped": inNodes((nodes) => nodes.shift()),
    "proof: truncated": changed((copy) => {
      copy.accountProof = (copy.accountProof as string[]).slice(0, -1);
      return true;
    }),
    "proof: slot's value field": inSlots(([slot]) => {
      Object.assign(slot ?? {}, { value: FALSE_NUMBER });
      return true;
    }),
    "proof: balance field": withField("balance", FALSE_NUMBER),
    "proof: nonce field": withField("nonce", FALSE_NUMBER),
    "proof: code hash field": withField("codeHash", FALSE_WORD),
    "proof: storage root field": withField("storageHash", FALSE_WORD),
    "proof: claimed empty": inSlots((slots) => {
      Object.assign(slots[0] ?? {}, { value: "0x0", proof: [] });
      return true;
    }),
    "proof: account claimed absent": changed((copy) => {
      Object.assign(copy, {
        accountProof: [],
        balance: "0x0",
        nonce: "0x0",
        codeHash: wordOf(0n),
        storageHash: wordOf(0n),
      });
      return true;
    }),
    "proof: slots swapped": inSlots((slots) => {
      const [one, other] = slots;
      if (one === undefined || other === undefined || one.value === other.value) {
        return false;
      }
      [one.key, other.key] = [other.key, one.key];
      return true;
    }),
    "proof: slot dropped": inSlots((slots) => slots.pop() !== undefined),
    "proof: stale": otherProof((told) => ({
      hash: blockOf(told)?.parent?.hash,
      address: told.params[0] as Address,
    })),
    "proof: another account's": otherProof((told) => ({ hash: blockOf(told)?.hash, address: NOBODY })),
  },
};

/** Those that fit the fewest proofs, for endpoints that no other lie suspends before. */
const SLOT_LIES: LieGroup = {
  methods: PROOF_LIES.methods,
  lies: Object.fromEntries(Object.entries(PROOF_LIES.lies).filter(([name]) => /slots swapped|slot dropped/.test(name))),
};

/** Beside the classes: slots in another order, as Besu returns them. It is no lie. */
const ORDER: LieGroup = {
  methods: PROOF_LIES.methods,
  lies: { "proof: slots in another order": inSlots((slots) => slots.reverse().length > 1) },
};

/** Beside the classes: a trace without the slots of a transaction. No hash binds a trace. */
const TRACE_LIES: LieGroup = {
  methods: ["debug_traceBlockByHash"],
  lies: {
    "trace: slots dropped": changed((copy) => {
      const diffs = partsIn(copy).flatMap(({ result }) =>
        Object.values((result ?? {}) as Readonly<Record<string, Readonly<Record<string, Part>>>>).flatMap((accounts) =>
          Object.values(accounts),
        ),
      );
      for (const account of diffs) {
        delete account.storage;
      }
      return diffs.length > 0;
    }),
  },
};

/** Returns the accounts of a trace after its transactions. */
const tracedAccounts = (trace: unknown): Part[] =>
  partsIn(trace).flatMap(({ result }) => Object.values(((result as Part | undefined)?.post ?? {}) as Part) as Part[]);

/** A lie about the slots of a traced account, before and after its transaction. */
const inTracedSlots = (change: (slots: Part, name: string) => void): ToldLie =>
  changed((copy) => {
    const account = tracedAccounts(copy).findLast(({ storage }) => storage !== undefined);
    const slots = account?.storage as Part | undefined;
    const name = Object.keys(slots ?? {})[0];
    if (slots === undefined || name === undefined) {
      return false;
    }
    change(slots, name);
    return true;
  });

/** Wrong claims of what a block wrote. */
const CLAIM_LIES: LieGroup = {
  methods: ["debug_traceBlockByHash"],
  lies: {
    "witness: write dropped": inTracedSlots((slots, name) => delete slots[name]),
    "witness: write changed": inTracedSlots((slots, name) => {
      slots[name] = FALSE_WORD;
    }),
    "witness: write added": inTracedSlots((slots) => {
      slots[FALSE_WORD] = FALSE_WORD;
    }),
  },
};

/** A lie about the nodes of a witness. */
const inWitness = (change: (nodes: string[]) => void): ToldLie =>
  changed((copy) => {
    change(copy.state as string[]);
    return true;
  });

/** Wrong witnesses. The first node is the root of the accounts. */
const WITNESS_LIES: LieGroup = {
  methods: ["debug_executionWitness"],
  lies: {
    "witness: node dropped": inWitness((nodes) => nodes.shift()),
    "witness: byte of a node": inWitness((nodes) => nodes.unshift(flipDigit(nodes.shift() ?? ""))),
  },
};

/** Beside the classes: what a proof's hash alone binds, and what no hash binds. */
const STATED_LIES: LieGroup = {
  methods: ["eth_getCode", "eth_getBalance", "eth_getStorageAt", "eth_getTransactionCount", "eth_call"],
  lies: {
    "stated: value": ({ result }) => (typeof result === "string" && result.length >= 66 ? FALSE_WORD : "0x6001"),
  },
};

/** What an endpoint lies about. Wrong lists and traces do not suspend it. */
const GROUPS = {
  headers: [HEADER_LIES],
  lists: [LIST_LIES, TRACE_LIES],
  proofs: [PROOF_LIES, STATED_LIES, LIST_LIES, TRACE_LIES],
  slots: [SLOT_LIES, STATED_LIES],
  order: [ORDER, STATED_LIES],
  witnesses: [CLAIM_LIES, WITNESS_LIES],
} as const;
export type LyingKind = keyof typeof GROUPS;

const namesOf = (groups: readonly LieGroup[]): readonly string[] => groups.flatMap(({ lies }) => Object.keys(lies));
/** The classes of lies of the reference, in its order. */
export const LIE_CLASSES = namesOf([HEADER_LIES, LIST_LIES, PROOF_LIES]);
/** The classes of lies about blocks without lists. */
export const WITNESS_LIE_CLASSES = namesOf([CLAIM_LIES, WITNESS_LIES]);

/** An origin that lies in a share of its responses, each time in the class that it told the least. */
export class ProvenLiar {
  /** How often each class was told. */
  readonly told = new Map<string, number>();
  readonly #chain: StandInChain;
  readonly #random: () => number;
  readonly #share: number;

  constructor(chain: StandInChain, random: () => number, share: number) {
    this.#chain = chain;
    this.#random = random;
    this.#share = share;
  }

  /** Returns the lies of one endpoint. A wrong header or proof suspends it, so that it would tell no others. */
  liesAbout(kind: LyingKind): readonly Lie[] {
    return GROUPS[kind].map(({ methods, lies }) => ({
      ...{ name: kind, methods },
      result: (result, { params }) => this.#answer(lies, { result, params, chain: this.#chain }),
    }));
  }

  #answer(lies: LieGroup["lies"], told: Told): unknown {
    if (this.#random() >= this.#share || told.result === null) {
      return told.result;
    }
    const names = Object.keys(lies).sort((one, other) => this.#countOf(one) - this.#countOf(other));
    for (const name of names) {
      const result = lies[name]?.(told);
      if (result !== undefined) {
        this.told.set(name, this.#countOf(name) + 1);
        return result;
      }
    }
    return told.result;
  }

  #countOf(name: string): number {
    return this.told.get(name) ?? 0;
  }
}

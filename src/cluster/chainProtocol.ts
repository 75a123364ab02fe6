import type { Limit, LimitedBy } from "../access/rateLimits.ts";
import type { BlockId } from "../core/heads.ts";
import type { Proof, RpcResponse } from "../core/rpcSource.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { Place } from "../limits/places.ts";
import type { BaseBlock } from "../simulation/simulatedHeader.ts";
import type { RunKind } from "../simulation/simulator.ts";
import type { CacheableCall } from "../state/calls/callCache.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import type { ProvenValues } from "../state/fetch/proofReader.ts";
import type { StateRead } from "../state/stateReads.ts";
import type { EntryChange } from "../storage/entryDatabase.ts";
import type { FilterStore } from "../subscriptions/filterStore.ts";
import type { UsageChange } from "../telemetry/usageLedger.ts";
import type { RemoteCall } from "../threads/channel.ts";
import type { HeadsUpdate } from "./headsUpdate.ts";
import type { PendingUpdate } from "./pendingUpdate.ts";

/** The key of a chain: equal in all processes, and another one after a reload that changes the chain. */
export interface OfChain {
  readonly chain: string;
}

export interface ChainInfo {
  readonly chainId: bigint;
  readonly genesis: Hash;
  readonly blockTimeMs: number;
  /** The chain has its genesis, a first head and its rules. */
  readonly isKnown: boolean;
  /** The main process can execute calls of this chain. */
  readonly executes: boolean;
  /** The main process knows values of the state. */
  readonly followsState: boolean;
  /** The main process answers calls from earlier answers. */
  readonly answersCalls: boolean;
}

/** The facts of a node that only the main process follows. */
export interface NodeFacts {
  readonly name: string;
  readonly identified: boolean;
  readonly isCordoned: boolean;
  readonly head: BlockId | undefined;
}

/** One change of a chain's views. */
export type PlainChange = { readonly heads: HeadsUpdate } | { readonly pending: PendingUpdate };

/** The content of a round, in the format of v8.serialize. */
export interface ViewUpdate {
  readonly changes: readonly PlainChange[];
  readonly info: ChainInfo;
  readonly nodes: readonly NodeFacts[];
}

/** The state on which a run is based: that of a block, or of a pending view above it. */
export interface RemoteRunBase {
  readonly base: BlockId;
  readonly hint: PrefetchHint | undefined;
  readonly viewId: string | undefined;
  /** Identifies the client's request among those of all serving processes. The items of a batch have one. */
  readonly requestId: string;
  /** See RequestProgress. */
  readonly stateReads: number;
  /** No known value may be used. */
  readonly bypassCache: boolean;
}

export interface RemoteRun extends OfChain {
  readonly clientId: string;
  readonly kind: RunKind;
  readonly paramsText: Uint8Array;
  readonly block: BaseBlock;
  readonly firstTimestamp: bigint | undefined;
  readonly state: RemoteRunBase;
}

/** The part of a request's context that decides about known state. */
export interface RemoteRead {
  readonly block: BlockId;
  readonly bypassCache: boolean;
  readonly requiresProof: boolean;
  readonly clientId: string;
}

/** What a run reports before its result. */
export interface RunReads {
  /** Values that were read from nodes. */
  readonly calls: number;
  /** The price of calls to nodes. */
  readonly units: number;
}

/** One read of a state value: see StateRead. */
export type RemoteStateRead = RemoteRead &
  Pick<StateRead, "method" | "key"> & {
    /** Only a value that is known and proven is returned. No response of a node is expected. */
    readonly onlyProven: boolean;
  };

/** One call: see CacheableCall. */
export type RemoteAnswerCall = RemoteRead & Pick<CacheableCall, "method" | "key">;

/** Values that follow from the state root of a block. */
export interface EnteredProof extends Pick<ProvenValues, "values"> {
  readonly block: BlockId;
}

export interface StateOutcome {
  readonly body?: Uint8Array;
  /** How far the body is verified. */
  readonly proof?: Proof | undefined;
  readonly asked?: number;
  /** The client requires a proof that was refused shortly before. */
  readonly isUnproven?: boolean;
  /** Once the response of a node is entered, a proven answer may follow. No cache may give the response. */
  readonly isFresh?: boolean;
}

export interface ExpectedTransactions {
  readonly hashes: readonly string[];
  readonly block: BlockId | undefined;
}

export type FilterCall = {
  readonly [N in keyof FilterStore]: { readonly name: N; readonly args: Parameters<FilterStore[N]> };
}[keyof FilterStore];

/** Calls that are counted against a limit. */
export interface CountedCalls {
  readonly by: LimitedBy;
  readonly id: string;
  readonly limit: Limit;
  readonly calls: number;
}

export interface ServingStart {
  /** The whole configuration. */
  readonly config: unknown;
  /** Number of serving processes. */
  readonly processes: number;
}

/** The functions that the main process offers to serving processes. */
export type MainFunctions = {
  /** The serving process has loaded its modules. Messages of before would be lost. */
  readonly begin: (body: null) => ServingStart;
  /** Returns the data of the status page, of all processes. */
  readonly status: (body: null) => Promise<string>;
  /** The serving process accepts connections. */
  readonly listening: (body: { readonly port: number }) => void;
  /** The serving process accepts no connections any more. Resolves when no other does. */
  readonly stopListening: (body: null) => Promise<void>;
  /** The serving process cannot start. It ends after this message. */
  readonly failed: (body: { readonly message: string }) => void;
  /** Returns the time until the window ends, in milliseconds, if the limit is exceeded. */
  readonly countCalls: (body: CountedCalls) => Promise<number | undefined>;
  /** Takes each of these places, or none. Returns the name of the first that is full. */
  readonly takePlaces: (places: readonly Place[]) => string | undefined;
  readonly releasePlaces: (names: readonly string[]) => void;
  /** Reads entries of the data folder: see EntryStorage. Undefined while the main process cannot use it. */
  readonly readEntries: (keys: readonly string[]) => Promise<readonly (Uint8Array | undefined)[]> | undefined;
  /** Resolves when the changes are written, or lost. */
  readonly writeEntries: (changes: readonly EntryChange[]) => Promise<void> | undefined;
  /** Adds to the usage by key. */
  readonly addUsage: (changes: readonly UsageChange[]) => void;
  /** Returns the units that all have spent of these budgets on this day. */
  readonly spentUnits: (budgets: readonly string[]) => ReadonlyMap<string, number>;
  /** Sends the views of a chain from now on. Resolves when the first one is committed. Resolves at once if the chain has no view yet. */
  readonly attach: (body: OfChain) => Promise<void>;
  readonly detach: (body: OfChain) => void;
  readonly acknowledge: (body: OfChain & { readonly round: number }) => void;
  /** A client uses the chain. Resolves when the heads of a chain that was idle are committed. */
  readonly markActive: (body: OfChain) => Awaitable<void>;
  /** A block below the ring was read. */
  readonly want: (body: OfChain & { readonly number: bigint }) => void;
  /** Polls the nodes. Resolves when the result is committed. */
  readonly refresh: (body: OfChain) => Promise<void>;
  /** Executes. Reports RunReads. */
  readonly run: (body: RemoteRun, call: RemoteCall) => Promise<RpcResponse>;
  /** Returns a known value, or the number under which the response of a node is expected, or nothing. */
  readonly readState: (body: OfChain & RemoteStateRead) => Awaitable<StateOutcome>;
  /** The same for the answer to a call. */
  readonly answerCall: (body: OfChain & RemoteAnswerCall) => Awaitable<StateOutcome>;
  /** Sends the response of a node to a read or call whose answer was not known. Returns the answer that is learned from it. */
  readonly enterState: (
    body: OfChain & { readonly asked: number; readonly response: RpcResponse | undefined },
  ) => Awaitable<StateOutcome>;
  /** Sends the values of a proof that a client required. */
  readonly enterProof: (body: OfChain & EnteredProof) => void;
  /** A request can have changed a node's state without a block. */
  readonly forgetState: (body: OfChain) => void;
  readonly submit: (body: OfChain & { readonly raw: string }) => void;
  /** Transactions exist: a node accepted them, or `block` lists them. */
  readonly expect: (body: OfChain & ExpectedTransactions) => void;
  readonly advanceNonce: (body: OfChain & { readonly sender: Address; readonly nonce: bigint }) => Promise<bigint>;
  readonly filter: (body: OfChain & FilterCall) => Promise<unknown>;
};

/** The metrics of a process, as prom-client returns them for JSON. */
export type PlainMetrics = readonly object[];

/** The functions that a serving process offers to the main process. */
export type ServingFunctions = {
  readonly reload: (body: { readonly config: unknown }) => Promise<void>;
  /** Serves until the end of the drain, and then ends the process. */
  readonly drain: (body: null) => void;
  readonly metrics: (body: null) => Promise<PlainMetrics>;
  /** Calls `addUsage` before it returns. */
  readonly reportUsage: (body: null) => Promise<void>;
  /** Shows that the event loop runs. */
  readonly ping: (body: null) => void;
  readonly prepare: (body: OfChain & { readonly round: number; readonly update: Uint8Array }) => void;
  readonly commit: (body: OfChain & { readonly round: number }) => void;
  readonly setNodes: (body: OfChain & { readonly nodes: readonly NodeFacts[] }) => void;
  /** Values or answers of the known state were dropped. */
  readonly dropState: (body: OfChain) => void;
  /** Another serving process has learned that transactions exist. */
  readonly expect: (body: OfChain & ExpectedTransactions) => void;
};

import type { UnitsOf } from "../access/providerUnits.ts";
import type { StateReadAt } from "../cache/tieredStore.ts";
import type { CallScope } from "../core/context.ts";
import type { BlockId, HeaderFields, Heads } from "../core/heads.ts";
import type { RpcSource } from "../core/rpcSource.ts";
import type { RunScript, SharedValues } from "../core/sharedValues.ts";
import type { StateKeys } from "../core/stateReader.ts";
import type { Address } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import type { ForwardedReasons } from "../telemetry/forwardedReasons.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";
import type { BlockState } from "./blockState.ts";
import type { CallOutcome, CallRun } from "./calls/callRun.ts";
import type { StateFetcher } from "./fetch/stateFetcher.ts";
import type { StateRowsOptions } from "./rows/stateRows.ts";
import type { FindExecuted } from "./sources/feedSource.ts";
import type { WriteSetThread } from "./sources/writeSetThread.ts";
import type { WriteSetSourceKind } from "./writeSet.ts";

/** The part of a chain's configuration that its known state reads. */
interface StateConfig {
  readonly name: string;
  readonly nodes: readonly { readonly name?: string | undefined; readonly url: string }[];
  readonly state: {
    readonly follow: false | "auto" | "plain";
    readonly source: "auto" | WriteSetSourceKind;
    readonly prove: boolean | "auto";
    readonly cacheBytes: number;
    readonly unitsPerMinute: number;
    readonly waitMs: number;
  };
  readonly simulate: { readonly maxStateReads: number };
  readonly reads: { readonly agree: 1 | 2 };
  readonly upstream: { readonly timeoutMs: number };
  readonly verify: string;
  readonly pending: { readonly feeds: readonly string[] };
}

/** What the known state of one chain is built on. */
export interface StateParts {
  readonly config: StateConfig;
  readonly upstreams: Upstreams;
  readonly pipeline: {
    readonly ownReads: RpcSource;
    /** Creates a reader of values. A read may take this time. */
    createFetcher(timeoutMs: number): StateFetcher;
    readBlock(block: BlockId, scope: CallScope): Promise<Uint8Array>;
    /** Removes a node's response that may be wrong. */
    forget(read: StateReadAt, current: Heads): void;
    /** Undefined without Redis, as `runScript`. */
    readonly sharedValues: SharedValues | undefined;
    readonly runScript: RunScript | undefined;
    readonly maxScriptMs: number;
  };
  readonly shared: {
    readonly writeSetThread: WriteSetThread;
    /** Undefined without a data folder. */
    readonly storage: StateRowsOptions["storage"] | undefined;
    readonly telemetry: Telemetry;
  };
  readonly unitsOf: UnitsOf;
  /** Of the headers in the block ring. */
  readonly ownHashes: OwnHashes;
  /** Aborts when the chain ends. */
  readonly signal: AbortSignal;
}

/** The chain of a known state. Its rules and its execution exist only once it is known. */
export interface StateChain {
  /** Resolves when the chain is known. */
  readonly ready: Promise<void>;
  readonly forks: ChainForks | undefined;
  /** The system contracts that a node reported. */
  readonly systemContracts: readonly Address[];
  /** Undefined if nothing is executed here. */
  readonly execution:
    | {
        /** Executes a call on the block of a header, and returns what it read. */
        runCall(call: Omit<CallRun, "block">, header: HeaderFields, signal: AbortSignal): Promise<CallOutcome>;
        /** Returns the state after a block from known values alone. */
        knownStateAt(block: BlockId, expected: StateKeys | undefined): BlockState;
      }
    | undefined;
  readonly pending: {
    readonly findExecuted: FindExecuted;
    /** Executes the feed's messages again, on no value that is known now. */
    forget(): void;
  };
  readonly forwarded: ForwardedReasons;
}

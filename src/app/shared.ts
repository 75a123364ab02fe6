import type { LiarMarks } from "../cache/liarMarks.ts";
import type { MemoryStore } from "../cache/memoryStore.ts";
import type { RedisStore } from "../cache/redisStore.ts";
import type { Config } from "../config/schema.ts";
import type { EvmThreads } from "../evm/runs/evmThreads.ts";
import type { FairScheduler } from "../limits/fairScheduler.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { WriteSetThread } from "../state/sources/writeSetThread.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import type { VerifyThreads } from "../verification/verifyThreads.ts";
import type { WebSockets } from "../websocket/webSocketServer.ts";

/** The parts that all chains of the process share. */
export interface Shared {
  readonly memory: MemoryStore;
  /** The bytes that requests may hold beside the caches. */
  readonly budget: MemoryBudget;
  readonly redis: RedisStore | undefined;
  /** The nodes whose cached values have ended. */
  readonly liarMarks: LiarMarks;
  /** See `cache.unconfirmedMs`. */
  readonly unconfirmedMs: number;
  readonly logSlots: FairScheduler;
  readonly webSockets: WebSockets;
  /** Threads that execute EVM code. */
  readonly evmThreads: EvmThreads;
  /** Threads that verify responses. */
  readonly verifyPool: VerifyThreads;
  /** Turns responses of nodes into write sets. */
  readonly writeSetThread: WriteSetThread;
  /** Counts the calls of clients without a key, and the calls to nodes. */
  readonly usages: UsageLedger;
  readonly telemetry: Telemetry;
  readonly server: Config["server"];
  readonly usage: Config["usage"];
  readonly bypassHeader: string | undefined;
  /** Called if a node is suspended because it serves another chain. */
  onWrongChain(error: Error): void;
}

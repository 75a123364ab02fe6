import { totalmem } from "node:os";
import type { RpcSource } from "../core/rpcSource.ts";
import { overBudget, type RpcError } from "../jsonrpc/rpcError.ts";
import { FairShares, networkOf } from "./fairShares.ts";

/** The users of the budget; a metric label. */
export const MEMORY_KINDS = [
  "requests",
  "responses",
  "executions",
  "upstream",
  "logs",
  "filters",
  "subscriptions",
  "feed",
] as const;
type MemoryKind = (typeof MEMORY_KINDS)[number];

/** New work needs this much room, so that work in progress finds some. */
const MIN_ROOM_BYTES = 64 * 1024;

/** Up to this size, the bytes of one request are not counted: they cost less than counting. */
export const UNCOUNTED_BYTES = 64 * 1024;

/** The bytes that one piece of work holds. */
export class MemoryUse {
  readonly #budget: MemoryBudget;
  readonly #kind: MemoryKind;
  readonly #clientId: string | undefined;
  #bytes = 0;

  constructor(budget: MemoryBudget, kind: MemoryKind, clientId: string | undefined) {
    this.#budget = budget;
    this.#kind = kind;
    this.#clientId = clientId;
  }

  /** Adds bytes. Returns false, and counts a refusal, if they exceed the budget or the client's share. */
  tryAdd(bytes: number): boolean {
    const isTaken = this.#budget.tryTake(this.#kind, this.#clientId, bytes);
    if (isTaken) {
      this.#bytes += bytes;
    }
    return isTaken;
  }

  /** Changes the number of bytes. Returns false, and counts a refusal, if there is no room for more. */
  trySet(bytes: number): boolean {
    return this.tryAdd(bytes - this.#bytes);
  }

  /** Releases all bytes. More can be added afterwards. */
  end(): void {
    if (this.#bytes > 0) {
      this.tryAdd(-this.#bytes);
    }
  }
}

/**
 * The bytes that requests may make the process hold, beside the caches. One client may hold as much as is free.
 * So room is left for every other client, and a client that waits for nothing is never refused for the work of another.
 */
export class MemoryBudget {
  readonly maxBytes: number;
  readonly #shares: FairShares;
  /** Bytes that bodies are still to receive, by network. */
  readonly #announced = new Map<string, number>();
  readonly #usedByKind = new Map<MemoryKind, number>();
  readonly #refusals = new Map<MemoryKind, number>();

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.#shares = new FairShares(maxBytes);
  }

  get usedBytes(): number {
    return this.#shares.used;
  }

  usedBy(kind: MemoryKind): number {
    return this.#usedByKind.get(kind) ?? 0;
  }

  /** Returns the number of refusals since the last call. */
  takeRefusals(kind: MemoryKind): number {
    const refusals = this.#refusals.get(kind) ?? 0;
    this.#refusals.delete(kind);
    return refusals;
  }

  /** Begins a piece of work. `clientId` is undefined for work of no single client. */
  open(kind: MemoryKind, clientId: string | undefined): MemoryUse {
    return new MemoryUse(this, kind, clientId);
  }

  /** Returns the error of new work that finds no room for its bytes, and counts the refusal. Undefined if there is room. */
  refuse(kind: MemoryKind, clientId: string | undefined, bytes: number = MIN_ROOM_BYTES): RpcError | undefined {
    if (this.#shares.fits(clientId, bytes)) {
      return undefined;
    }
    this.#countRefusal(kind);
    return overBudget();
  }

  /**
   * Announces the bytes of a body, before they arrive. Returns false, and counts a refusal, if they do not fit beside all that the
   * client has announced. Bytes that are announced hold nothing: they limit only this client.
   */
  tryAnnounce(kind: MemoryKind, clientId: string, bytes: number): boolean {
    const network = networkOf(clientId);
    const announced = (this.#announced.get(network) ?? 0) + bytes;
    if (!this.#shares.fits(clientId, announced)) {
      this.#countRefusal(kind);
      return false;
    }
    this.#announced.set(network, announced);
    return true;
  }

  /** Announced bytes have arrived, or will not arrive. */
  endAnnounced(clientId: string, bytes: number): void {
    const network = networkOf(clientId);
    const announced = (this.#announced.get(network) ?? 0) - bytes;
    if (announced > 0) {
      this.#announced.set(network, announced);
    } else {
      this.#announced.delete(network);
    }
  }

  /** See `MemoryUse.tryAdd`. Negative bytes are released. */
  tryTake(kind: MemoryKind, clientId: string | undefined, bytes: number): boolean {
    if (bytes > 0 && !this.#shares.fits(clientId, bytes)) {
      this.#countRefusal(kind);
      return false;
    }
    this.#shares.take(clientId, bytes);
    this.#usedByKind.set(kind, this.usedBy(kind) + bytes);
    return true;
  }

  #countRefusal(kind: MemoryKind): void {
    this.#refusals.set(kind, (this.#refusals.get(kind) ?? 0) + 1);
  }
}

/** Refuses requests of clients that have no room in the memory budget. Requests of forebay itself always pass. */
export const withinBudget = (source: RpcSource, budget: MemoryBudget): RpcSource => ({
  request: (request, context) => {
    const { clientId, connection } = context.caller;
    const error = connection === undefined ? undefined : budget.refuse("requests", clientId);
    return error === undefined ? source.request(request, context) : Promise.reject(error);
  },
});

const GIB = 1024 ** 3;
const MAX_DEFAULT_BYTES = 4 * GIB;
/** A smaller budget refuses ordinary requests. */
const MIN_DEFAULT_BYTES = 32 * 1024 * 1024;
/** Resident memory of an idle process without its caches and threads. */
const IDLE_BYTES = 110 * 1024 * 1024;
/** Resident memory of a warm thread that executes EVM code. */
const THREAD_BYTES = 40 * 1024 * 1024;

export interface MachineMemory {
  /** The limit of the container (cgroup v2 or v1). Undefined without a limit. */
  readonly limitBytes: number | undefined;
  readonly totalBytes: number;
}

/** Reads the limit of the container and the memory of the machine. */
export const readMachineMemory = (): MachineMemory => {
  const totalBytes = totalmem();
  const limitBytes = process.constrainedMemory();
  return { limitBytes: limitBytes > 0 && limitBytes < totalBytes ? limitBytes : undefined, totalBytes };
};

/** The default of `server.memoryBudgetBytes`: half of what the limit leaves beside the caches, else half of the machine's memory. */
export const defaultBudgetBytes = ({ limitBytes, totalBytes }: MachineMemory, cacheBytes: number): number =>
  limitBytes === undefined
    ? Math.min(totalBytes / 2, MAX_DEFAULT_BYTES)
    : Math.max(Math.floor((limitBytes - cacheBytes) / 2), MIN_DEFAULT_BYTES);

interface PlannedMemory {
  readonly cacheBytes: number;
  readonly budgetBytes: number;
  /** Threads that execute EVM code. */
  readonly threads: number;
}

/** Returns the memory that the process may need, in bytes, if that is more than the container's limit. */
export const exceedsLimit = (
  { limitBytes }: MachineMemory,
  { cacheBytes, budgetBytes, threads }: PlannedMemory,
): number | undefined => {
  const neededBytes = IDLE_BYTES + cacheBytes + budgetBytes + threads * THREAD_BYTES;
  return limitBytes !== undefined && neededBytes > limitBytes ? neededBytes : undefined;
};

import { setTimeout as wait } from "node:timers/promises";
import { ConfigError } from "../config/readConfig.ts";
import type { ChainConfig } from "../config/schema.ts";
import { type Endpoint, trackInFlight } from "../http/endpoint.ts";
import type { ServedChain } from "./chainRuntime.ts";
import type { Shared } from "./shared.ts";

/** An unreachable node is detected after five seconds. */
const READY_TIMEOUT_MS = 30_000;

/** A predecessor may serve a head that the chain's own nodes never had. */
const CATCH_UP_MS = 5_000;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export type CreateChain = (config: ChainConfig, shared: Shared) => ServedChain;

export interface ActiveChainOptions {
  readonly createChain: CreateChain;
  /** Called once, when the chain has its genesis and a first head. */
  onKnown(chain: ActiveChain): void;
}

/** A chain with its configuration, from its start to its end. */
export class ActiveChain {
  readonly config: ChainConfig;
  readonly chain: ServedChain;
  readonly endpoint: Endpoint;
  readonly #idle: () => Promise<void>;
  readonly #wrongChain = Promise.withResolvers<never>();
  #isKnown = false;

  constructor(config: ChainConfig, shared: Omit<Shared, "onWrongChain">, { createChain, onKnown }: ActiveChainOptions) {
    // A node of another chain is suspended. The error matters only to `untilReady`.
    this.#wrongChain.promise.catch(() => undefined);
    this.config = config;
    this.chain = createChain(config, { ...shared, onWrongChain: this.#wrongChain.reject });
    const { endpoint, idle } = trackInFlight(this.chain.endpoint);
    this.endpoint = endpoint;
    this.#idle = idle;
    this.chain.ready.then(
      () => {
        this.#isKnown = true;
        onKnown(this);
      },
      // It was closed before.
      () => undefined,
    );
  }

  /** The chain has its genesis and a first head. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The chain id that the nodes returned, or else the configured one. */
  get chainId(): bigint | number | undefined {
    return this.#isKnown ? this.chain.upstreams.genesis.chainId : this.config.chainId;
  }

  /** Rejects with ConfigError if a node serves another chain, or if no node responds, or at an abort. `path` names it in the error. */
  async untilReady(path: string, signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const ending = AbortSignal.any([signal, done.signal]);
    const timeout = wait(READY_TIMEOUT_MS, undefined, { signal: ending }).then(() => {
      throw new Error(`no node of it answered within ${READY_TIMEOUT_MS / 1000} s`);
    });
    // It rejects when `done` aborts it, and nobody waits for it then.
    timeout.catch(() => undefined);
    try {
      await Promise.race([this.chain.ready, this.#wrongChain.promise, timeout]);
    } catch (error) {
      throw new ConfigError([`${path}: ${messageOf(error)}`]);
    } finally {
      done.abort();
    }
  }

  /** Waits until the chain has the head that its predecessor serves, so that no client sees `latest` move back. */
  async catchUp(before: readonly ActiveChain[], ending: AbortSignal): Promise<void> {
    const predecessor = this.#predecessorIn(before);
    const signal = AbortSignal.any([ending, AbortSignal.timeout(CATCH_UP_MS)]);
    const headOf = ({ chain }: ActiveChain): bigint => chain.upstreams.heads.current()?.latest.number ?? 0n;
    while (predecessor !== undefined && headOf(this) < headOf(predecessor) && !signal.aborted) {
      await this.chain.upstreams.heads.next(signal).catch(() => undefined);
    }
  }

  /** Begins to follow state, with the values of the chain that this one replaces. */
  async beginState(before: readonly ActiveChain[]): Promise<void> {
    await this.chain.knownState?.begin(this.#predecessorIn(before)?.chain.knownState);
  }

  /** Returns the chain that this one replaces. Undefined if it does not know its own chain. */
  #predecessorIn(before: readonly ActiveChain[]): ActiveChain | undefined {
    return before.find(({ chain, isKnown }) => isKnown && chain.name === this.chain.name);
  }

  /** Closes the chain after its last request, or after `drainTimeoutMs`. */
  async drain(drainTimeoutMs: number): Promise<void> {
    const idle = new AbortController();
    const timeout = wait(drainTimeoutMs, undefined, { signal: idle.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), timeout]);
    idle.abort();
    await this.chain.close();
  }
}

import type { Dispatcher } from "undici";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import { connectWithin } from "./connectWithin.ts";
import { Client } from "./undici.ts";

export interface LivenessProbeOptions {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const { connectMs, answerMs } = RETRY_LIMITS.hang;
const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

/** Resolves when a response begins, or at the end of the time limit. Any response counts, whatever its status. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  readonly #outcome = Promise.withResolvers<boolean>();
  #timer = this.#limit(connectMs);

  get outcome(): Promise<boolean> {
    return this.#outcome.promise;
  }

  /** The connection is open. */
  onRequestStart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#limit(answerMs);
  }

  onResponseStart(): void {
    this.finish(true);
  }

  onResponseData(): void {
    this.finish(true);
  }

  onResponseEnd(): void {
    this.finish(true);
  }

  onResponseError(): void {
    this.finish(false);
  }

  finish(isAnswered: boolean): void {
    clearTimeout(this.#timer);
    this.#outcome.resolve(isAnswered);
  }

  /** After a pause of the event loop, the response may have arrived: it is read before the immediate. */
  #limit(timeoutMs: number): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.finish(false)), timeoutMs);
  }
}

/** Asks a node for its chain id on a connection of its own, so that slow requests do not delay the response. */
export class LivenessProbe {
  readonly #options: LivenessProbeOptions;
  #client: Client | undefined;

  constructor(options: LivenessProbeOptions) {
    this.#options = options;
  }

  /** Returns whether a response began within RETRY_LIMITS.hang. Never rejects. */
  async send(): Promise<boolean> {
    const { origin, path, headers } = this.#options;
    this.#client ??= new Client(origin, { pipelining: 1, connect: connectWithin(connectMs) });
    const handler = new ProbeHandler();
    this.#client.dispatch({ path, method: "POST", headers, body: BODY }, handler);
    const isAnswered = await handler.outcome;
    if (!isAnswered) {
      await this.close();
    }
    return isAnswered;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.destroy();
  }
}

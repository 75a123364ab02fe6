import type { Context } from "../core/context.ts";
import { isAborted } from "../core/lazySignal.ts";
import { NodeError, type UnverifiedError } from "../core/node.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { VerifiedNode } from "../verification/verifier.ts";

export interface OriginNode extends VerifiedNode {
  readonly origin: string;
  readonly available: boolean;
  recordWrongAnswer(error: UnverifiedError): void;
}

/** One request, with the context that all its parts share. */
export interface Read {
  readonly request: RpcRequest;
  readonly context: Context;
}

/** A first response waits up to this time for a second source. */
export const SECOND_MS = 1_500;

export const withinSecondMs = (context: Context): Context =>
  context.with({ deadlineMs: Math.min(context.deadlineMs, performance.now() + SECOND_MS) });

/** Whether nodes have at least two origins, so that they can be compared. */
export const hasSeveralOrigins = (nodes: readonly { readonly origin: string }[]): boolean =>
  new Set(nodes.map(({ origin }) => origin)).size > 1;

/** Asks nodes of other origins for what a node has stated. */
export class OtherOrigins {
  readonly #source: RpcSource;
  readonly #nodes: readonly OriginNode[];

  constructor(source: RpcSource, nodes: readonly OriginNode[]) {
    this.#source = source;
    this.#nodes = nodes;
  }

  nodeOf(name: string | undefined): OriginNode | undefined {
    return this.#nodes.find((node) => node.name === name);
  }

  /** Asks a node of none of the origins. Returns its response or its error; undefined if none can be asked, or responds in time. */
  async ask(
    { request, context }: Read,
    excludedOrigins: readonly string[],
  ): Promise<RpcResponse | NodeError | undefined> {
    if (!this.#nodes.some(({ origin, available }) => available && !excludedOrigins.includes(origin))) {
      return undefined;
    }
    try {
      return await this.#source.request({ ...request, excludedOrigins }, withinSecondMs(context));
    } catch (error) {
      if (isAborted(context)) {
        throw error;
      }
      return error instanceof NodeError ? error : undefined;
    }
  }
}

import type { CallScope } from "../../core/context.ts";
import type { BlockId, HeaderFields } from "../../core/heads.ts";
import { createCall } from "../../jsonrpc/call.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import type { SharedWrites } from "./sharedWrites.ts";
import { askSourceNode, NodeSupport, type SourceNode, type SourceNodes, scopeWithin } from "./sourceNodes.ts";
import type { WriteSetThread } from "./writeSetThread.ts";

export interface ListSourceOptions extends SourceNodes {
  readonly thread: Pick<WriteSetThread, "start" | "run">;
  /** Returns the header of a canonical block, with its hash. */
  readonly headerOf: (block: BlockId) => HeaderFields | undefined;
  readonly unitsOf: (method: string) => number;
  /** Undefined without Redis. */
  readonly shared?: SharedWrites | undefined;
}

/** The method of the execution API, and the spelling of some providers. Each takes the block's hash. */
const METHODS = ["eth_getBlockAccessList", "eth_getBlockAccessListByBlockHash"] as const;
type Method = (typeof METHODS)[number];

/** Reads block access lists (EIP-7928). A list is used only if the block's hash commits to it. */
export class ListSource implements WriteSetSource {
  readonly kind = "accessList";
  readonly #options: ListSourceOptions;
  /** The method that each node supports. */
  readonly #support = new NodeSupport<Method | "unsupported">();

  constructor(options: ListSourceOptions) {
    this.#options = options;
  }

  get unitsPerBlock(): number {
    return this.#options.unitsOf(METHODS[0]);
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { shared } = this.#options;
    const read = () => this.#read(block, signal);
    return shared === undefined ? read() : shared.read(this.kind, block, signal, read);
  }

  async #read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { headerOf, nodesFor, blockTimeMs, thread } = this.#options;
    const header = headerOf(block);
    let failure: WriteSetFailure = "unsupported";
    if (typeof header?.blockAccessListHash !== "string") {
      return failure;
    }
    thread.start();
    const scope = scopeWithin(blockTimeMs(), signal);
    for (const node of nodesFor(block)) {
      const outcome = await this.#readFrom(node, block, header, scope);
      if (typeof outcome !== "string") {
        return outcome;
      }
      failure = outcome === "unsupported" ? failure : outcome;
      if (outcome === "late") {
        break;
      }
    }
    return failure;
  }

  async #readFrom(
    node: SourceNode,
    block: BlockId,
    header: HeaderFields,
    scope: CallScope,
  ): Promise<WriteSet | WriteSetFailure> {
    const list = await this.#ask(node, block, scope);
    if (typeof list === "string") {
      return list;
    }
    const output = await this.#options.thread.run({ kind: "accessList", block, header, list }, scope);
    if (output.kind === "written") {
      return { block, packed: output.packed, grade: "proven" };
    }
    return output.kind === "failed" ? output.reason : "error";
  }

  /** Asks with each spelling that the node may support. */
  async #ask(node: SourceNode, block: BlockId, scope: CallScope): Promise<Uint8Array | WriteSetFailure> {
    const known = this.#support.of(node.name);
    const methods = known === undefined ? METHODS : METHODS.filter((method) => method === known);
    for (const method of methods) {
      const outcome = await askSourceNode(node, createCall(method, [block.hash]), scope);
      if (outcome === "unsupported") {
        continue;
      }
      if (typeof outcome !== "string") {
        this.#support.learn(node.name, method);
      }
      return outcome;
    }
    this.#support.learn(node.name, "unsupported");
    return "unsupported";
  }
}

import { randomBytes } from "node:crypto";
import { FakeError } from "../../support/fakes/front.ts";
import { answerCall, type NodeView } from "../chain/nodeAnswers.ts";
import { isAncestor, type SealedBlock } from "../chain/sealedBlock.ts";

interface NodeFilter {
  /** The filter of eth_newFilter; undefined for new blocks. */
  readonly logs: object | undefined;
  head: SealedBlock;
}

/** The polled filters of one node, as geth has them. Another node does not know them. */
export class NodeFilters {
  readonly #filters = new Map<string, NodeFilter>();

  /** Answers a method of filters. Returns undefined for another method. */
  answer(view: NodeView, method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case "eth_newBlockFilter":
        return this.#add({ logs: undefined, head: view.head });
      case "eth_newFilter":
        return this.#add({ logs: Object(params[0]), head: view.head });
      case "eth_uninstallFilter":
        return this.#filters.delete(String(params[0]));
      case "eth_getFilterChanges":
        return this.#changes(view, params[0]);
      default:
        return undefined;
    }
  }

  #add(filter: NodeFilter): string {
    const id = `0x${randomBytes(16).toString("hex")}`;
    this.#filters.set(id, filter);
    return id;
  }

  #changes(view: NodeView, id: unknown): unknown {
    const filter = this.#filters.get(String(id));
    if (filter === undefined) {
      throw new FakeError(-32_000, "filter not found");
    }
    const removed: SealedBlock[] = [];
    for (
      let block: SealedBlock | undefined = filter.head;
      block && !isAncestor(block, view.head);
      block = block.parent
    ) {
      removed.push(block);
    }
    const common = (removed.at(-1) ?? filter.head).number - (removed.length === 0 ? 0 : 1);
    const added: SealedBlock[] = [];
    for (let block: SealedBlock | undefined = view.head; block && block.number > common; block = block.parent) {
      added.unshift(block);
    }
    filter.head = view.head;
    if (filter.logs === undefined) {
      return added.map(({ hash }) => hash);
    }
    const logsOf = ({ hash }: SealedBlock): readonly unknown[] =>
      answerCall(view, "eth_getLogs", [{ ...filter.logs, blockHash: hash }]) as readonly unknown[];
    return [...removed.flatMap(logsOf).map((log) => ({ ...Object(log), removed: true })), ...added.flatMap(logsOf)];
  }
}

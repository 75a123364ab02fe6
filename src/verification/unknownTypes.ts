import type { Context } from "../core/context.ts";
import { isAborted } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import { type Data, isData } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { UnknownItem } from "./findings.ts";

const TRANSACTION = "eth_getRawTransactionByHash";
const RECEIPTS = "debug_getRawReceipts";
/** A block with more transactions of unknown types costs too many calls. */
const MAX_TRANSACTIONS = 16;
/** A node that does not give bytes is not asked for them again for this time. */
const REFUSED_MS = 600_000;
/** After this number of nodes whose lists could not be checked, no other node is asked for a list with this type. */
const ENOUGH_NODES = 2;

/** The node whose list has the items. */
interface ListNode {
  readonly name: string;
  send(call: Call, scope: Pick<Context, "signal" | "deadlineMs">): Promise<Uint8Array>;
}

/** Reads transactions and receipts of unknown types as bytes, and remembers the types whose encoding a root has shown. */
export class UnknownTypes {
  /** Types whose receipts have the usual encoding. */
  readonly #standard = new Set<number>();
  /** The nodes whose lists could not be checked, by the kind of the list and the type. */
  readonly #unchecked = new Map<string, Set<string>>();
  readonly #refusedMs = new Map<string, number>();

  get standard(): readonly number[] {
    return [...this.#standard];
  }

  /** A root has shown the encoding of these receipts. */
  add(items: readonly UnknownItem[]): void {
    for (const { type } of items) {
      this.#standard.add(type);
    }
  }

  /** Whether another node may have what this one does not: bytes, or receipts that a root shows. */
  needsOther({ name }: ListNode, list: "transactions" | "receipts", items: readonly UnknownItem[]): boolean {
    let needs = false;
    for (const { type } of items) {
      const key = `${list} ${type}`;
      const nodes = this.#unchecked.get(key) ?? new Set();
      this.#unchecked.set(key, nodes.add(name));
      needs ||= nodes.size < ENOUGH_NODES;
    }
    return needs;
  }

  /** Returns the bytes by index; undefined if the node does not have all of them. */
  async readTransactions(
    node: ListNode,
    items: readonly UnknownItem[],
    context: Context,
  ): Promise<ReadonlyMap<number, Data> | undefined> {
    if (items.length > MAX_TRANSACTIONS) {
      return undefined;
    }
    const read = async ({ index, hash }: UnknownItem): Promise<readonly [number, unknown]> => [
      index,
      await this.#read(node, TRANSACTION, hash, context),
    ];
    const raws = new Map(await Promise.all(items.map(read)));
    return [...raws.values()].every(isData) ? (raws as ReadonlyMap<number, Data>) : undefined;
  }

  /** Returns the bytes of all receipts of a block; undefined if the node does not have them. */
  async readReceipts(node: ListNode, blockHash: string, context: Context): Promise<readonly Data[] | undefined> {
    const raws = await this.#read(node, RECEIPTS, blockHash, context);
    return Array.isArray(raws) && raws.every(isData) ? raws : undefined;
  }

  async #read(node: ListNode, method: string, hash: string, context: Context): Promise<unknown> {
    const key = `${node.name} ${method}`;
    if (performance.now() - (this.#refusedMs.get(key) ?? Number.NEGATIVE_INFINITY) < REFUSED_MS) {
      return undefined;
    }
    try {
      return parseJson(await node.send(createCall(method, [hash]), context));
    } catch (error) {
      if (!(error instanceof NodeError) || isAborted(context)) {
        throw error;
      }
      this.#refusedMs.set(key, performance.now());
      return undefined;
    }
  }
}

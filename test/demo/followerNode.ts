import type { Hash, Hex } from "../../src/ethereum/hex.ts";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { SEQUENCER_FEE_VAULT } from "../devnet/l1Attributes.ts";

/** A second node of the devnet's chain. */
export interface FollowerNode {
  /** Sends the body of a JSON-RPC request, and returns the response. Rejects while the node is dead. */
  post(body: string): Promise<string>;
  /** Kills the process. Its chain is lost. */
  kill(): Promise<void>;
  /** Starts the process again. Resolves when it has all blocks. */
  revive(): Promise<void>;
  close(): Promise<void>;
}

interface FollowedBlock {
  readonly hash: Hash;
  readonly timestamp: number;
  /** EIP-2718 bytes. */
  readonly transactions: readonly Hex[];
}

/** Starts a node that seals each block of the devnet again, from the transactions of the feed. A block that differs is an error. */
export const startFollower = async (devnet: Devnet): Promise<FollowerNode> => {
  const blocks: FollowedBlock[] = [];
  const transactions = new Map<string, Hex[]>();
  devnet.events.on("message", ({ diff, metadata }) => {
    const block = String(metadata.block_number);
    transactions.set(block, [...(transactions.get(block) ?? []), ...diff.transactions]);
  });

  let node: Anvil | undefined;
  let applied = 0;
  const start = async (port?: number): Promise<Anvil> => {
    const started = await startAnvil(devnet.anvilArgs, port);
    await started.call("anvil_setCoinbase", SEQUENCER_FEE_VAULT);
    applied = 0;
    node = started;
    return started;
  };

  const apply = async (target: Anvil, block: FollowedBlock): Promise<void> => {
    await target.call("evm_setNextBlockTimestamp", block.timestamp);
    for (const raw of block.transactions) {
      await target.call("eth_sendRawTransaction", raw);
    }
    await target.mine("evm_mine");
    const { hash } = (await target.call("eth_getBlockByNumber", "latest", false)) as FollowedBlock;
    if (hash !== block.hash) {
      throw new Error("the second node sealed another block");
    }
  };

  /** Applies the blocks that the node lacks. It ends early if the node is killed. */
  const follow = async (): Promise<void> => {
    const target = node;
    while (target !== undefined && target === node && applied < blocks.length) {
      const block = blocks[applied];
      try {
        await (block && apply(target, block));
      } catch (error) {
        if (target === node) {
          throw error;
        }
        return;
      }
      applied++;
    }
  };
  let last: Promise<void> = Promise.resolve();
  const followNext = (): Promise<void> => {
    last = last.catch(() => undefined).then(follow);
    return last;
  };
  devnet.events.on("sealed", ({ number, hash, block }) => {
    blocks.push({ hash, timestamp: Number(block.timestamp), transactions: transactions.get(String(number)) ?? [] });
    transactions.delete(String(number));
    followNext().catch((error: unknown) => devnet.events.emit("error", error));
  });
  const first = await start();

  /** Takes the node away from those that use it. */
  const take = (): Anvil | undefined => {
    const taken = node;
    node = undefined;
    return taken;
  };
  const { port } = first;
  return {
    post: async (body) => {
      if (node === undefined) {
        throw new Error("the node is dead");
      }
      return node.post(body);
    },
    kill: async () => {
      const killed = take();
      if (killed?.pid !== undefined) {
        process.kill(killed.pid, "SIGKILL");
      }
      await killed?.close();
      await last;
    },
    revive: async () => {
      await start(port);
      await followNext();
    },
    close: async () => {
      await take()?.close();
      await last.catch(() => undefined);
    },
  };
};

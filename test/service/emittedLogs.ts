import assert from "node:assert/strict";
import { join } from "node:path";
import { encodeDeployData, encodeFunctionData } from "viem";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { compile } from "../support/builders/compile.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createService, type Service } from "../support/servers/service.ts";

const LOGS_PER_TRANSACTION = 500;
const TOPICS = 7;

export interface EmittedLogs {
  readonly anvil: Anvil;
  readonly service: Service;
  readonly emitters: readonly string[];
  close(): Promise<void>;
}

/** Mines blocks with logs of three contracts, and starts a service in front of their node. */
export const startEmittedLogs = async (blocks: number, logs: number): Promise<EmittedLogs> => {
  const anvil = await startAnvil(["--no-mining", "--gas-limit", "300000000", "--chain-id", "31337"]);
  const from = devAccounts[0]?.address ?? "0x";
  const send = async (transaction: object): Promise<string> =>
    String(await anvil.call("eth_sendTransaction", { from, gas: "0xbebc200", ...transaction }));
  const contract = compile(join(import.meta.dirname, "Emitter.sol"), "cancun").get("Emitter");
  assert.ok(contract);
  const { abi, bytecode } = contract;
  const creations: string[] = [];
  for (let made = 0; made < 3; made++) {
    creations.push(await send({ data: encodeDeployData({ abi, bytecode }) }));
    await anvil.call("anvil_mine", "0x1");
  }
  const emitters = await Promise.all(
    creations.map(
      async (hash) =>
        ((await anvil.call("eth_getTransactionReceipt", hash)) as { contractAddress: string }).contractAddress,
    ),
  );
  const transactions = logs / LOGS_PER_TRANSACTION;
  for (let sent = 0; sent < transactions; sent++) {
    const data = encodeFunctionData({
      abi,
      functionName: "emitMany",
      args: [BigInt(LOGS_PER_TRANSACTION), BigInt(sent)],
    });
    await send({ to: emitters[sent % emitters.length], data });
    await anvil.call("anvil_mine", `0x${Math.floor((blocks - 3) / transactions).toString(16)}`);
  }
  const service = await createService({ nodes: [{ url: anvil.url }], pending: { mode: "node" } });
  const close = async (): Promise<void> => {
    await service.close();
    await anvil.close();
  };
  return { anvil, service, emitters, close };
};

/** Compares the logs of random filters with those of the node. */
export const compareFilters = async ({ anvil, service, emitters }: EmittedLogs, filters: number): Promise<void> => {
  const next = createRandom(Number(process.env.SEED ?? 20_261_120));
  const random = (bound: number) => Math.floor(next() * bound);
  const head = Number(await anvil.call("eth_blockNumber"));
  const hex = (value: number) => `0x${value.toString(16)}`;
  const topic = () => `0x${random(TOPICS).toString(16).padStart(64, "0")}`;
  const position = () => [null, topic(), [topic(), topic()]][random(3)] ?? null;
  for (let count = 0; count < filters; count++) {
    const start = random(head + 1);
    const width = random(3) === 0 ? random(head) : random(400);
    const filter = {
      fromBlock: hex(start),
      toBlock: hex(Math.min(head, start + width)),
      ...(random(2) === 0 && { address: random(2) === 0 ? emitters[random(3)] : emitters.slice(0, 1 + random(3)) }),
      ...(random(3) > 0 && { topics: [null, position(), position()].slice(0, 1 + random(3)) }),
    };
    const [ours, theirs] = await Promise.all([
      rpc(service.url, "eth_getLogs", [filter]),
      anvil.call("eth_getLogs", filter),
    ]);
    const bare = (logs: unknown) =>
      (logs as readonly Record<string, unknown>[]).map(({ blockTimestamp: _, ...log }) => log);
    assert.deepEqual(bare(ours.body.result), bare(theirs), JSON.stringify(filter));
  }
};

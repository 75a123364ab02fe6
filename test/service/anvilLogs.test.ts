import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { encodeDeployData, encodeFunctionData } from "viem";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { compile } from "../support/builders/compile.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createService, type Service } from "../support/servers/service.ts";

const BLOCKS = 5_000;
const LOGS = 50_000;
const LOGS_PER_TRANSACTION = 500;
const FILTERS = 200;
const TOPICS = 7;

let anvil: Anvil;
let service: Service;
let emitters: readonly string[];

/** Mines 5,000 blocks with 50,000 logs of three contracts in 100 transactions. */
before(async () => {
  anvil = await startAnvil(["--no-mining", "--gas-limit", "300000000", "--chain-id", "31337"]);
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
  emitters = await Promise.all(
    creations.map(
      async (hash) =>
        ((await anvil.call("eth_getTransactionReceipt", hash)) as { contractAddress: string }).contractAddress,
    ),
  );
  const transactions = LOGS / LOGS_PER_TRANSACTION;
  for (let sent = 0; sent < transactions; sent++) {
    const data = encodeFunctionData({
      abi,
      functionName: "emitMany",
      args: [BigInt(LOGS_PER_TRANSACTION), BigInt(sent)],
    });
    await send({ to: emitters[sent % emitters.length], data });
    await anvil.call("anvil_mine", `0x${Math.floor((BLOCKS - 3) / transactions).toString(16)}`);
  }
  service = await createService({ nodes: [{ url: anvil.url }], pending: { mode: "node" } });
});
after(async () => {
  await service?.close();
  await anvil?.close();
});

test(`${FILTERS} random filters over ${BLOCKS} blocks return the same logs as anvil`, async () => {
  const next = createRandom(Number(process.env.SEED ?? 20_261_120));
  const random = (bound: number) => Math.floor(next() * bound);
  const head = Number(await anvil.call("eth_blockNumber"));
  const hex = (value: number) => `0x${value.toString(16)}`;
  const topic = () => `0x${random(TOPICS).toString(16).padStart(64, "0")}`;
  const position = () => [null, topic(), [topic(), topic()]][random(3)] ?? null;
  for (let count = 0; count < FILTERS; count++) {
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
});

const TOPICS_OF_SOMETHING = 3;

test("a filter of n positions returns only logs with n topics, by range, block and polled filter", async () => {
  const head = String(await anvil.call("eth_blockNumber"));
  const from = `0x${(Number(head) - 100).toString(16)}`;
  const all = (await anvil.call("eth_getLogs", { fromBlock: from })) as readonly { readonly blockHash: string }[];
  assert.ok(all.length > 0);
  const count = async (method: string, parameter: unknown) => {
    const { body, text } = await rpc(service.url, method, [parameter]);
    assert.ok(Array.isArray(body.result), text);
    return body.result.length;
  };
  const blockHash = all[0]?.blockHash;
  const inBlock = all.filter((log) => log.blockHash === blockHash).length;
  for (const positions of [
    [],
    [null],
    [null, []],
    [null, null, null],
    [null, null, null, null],
    [[null], [], [], []],
  ]) {
    const isMatch = positions.length <= TOPICS_OF_SOMETHING;
    const text = JSON.stringify(positions);
    assert.equal(await count("eth_getLogs", { fromBlock: from, topics: positions }), isMatch ? all.length : 0, text);
    assert.equal(await count("eth_getLogs", { blockHash, topics: positions }), isMatch ? inBlock : 0, text);
    const filter = (await rpc(service.url, "eth_newFilter", [{ fromBlock: from, topics: positions }])).body.result;
    assert.equal(await count("eth_getFilterLogs", filter), isMatch ? all.length : 0, text);
  }
});

import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { Upstreams, type UpstreamsOptions } from "../../src/heads/upstreams.ts";
import { createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";

export const bodyText = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? Buffer.from(body).toString() : "stream";

export const startUpstreams = async (
  t: { after(fn: () => Promise<void>): void },
  fakes: readonly FakeNode[],
  more: Partial<UpstreamsOptions> = {},
) => {
  const telemetry = silent();
  const upstreams = new Upstreams({ chain: "test", nodes: fakes.map(({ url }) => ({ url })), ...more }, telemetry);
  t.after(async () => {
    await upstreams.close();
    await Promise.all(fakes.map((fake) => fake.close()));
  });
  await upstreams.ready;
  return { upstreams, telemetry };
};

export const createTwoNodes = async (options: FakeNodeOptions = {}): Promise<[FakeNode, FakeNode]> => {
  const chain = options.chain ?? createFakeChain();
  return [await createFakeNode({ ...options, chain }), await createFakeNode({ ...options, chain })];
};

export const balanceRequest = (block: string, more = {}) =>
  createRequest({ method: "eth_getBalance", params: [`0x${"11".repeat(20)}`, block], ...more });

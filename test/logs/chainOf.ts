import { createFakeChain, fakeAddress, fakeTopic } from "./fakeChain.ts";

export const chainOf = (blocks: number, every = 3) =>
  createFakeChain(
    Array.from({ length: blocks }, (_, at) =>
      at % every === 0 ? [{ address: fakeAddress(at % 5), topics: [fakeTopic(at % 7)], data: "0x1234" as const }] : [],
    ),
  );

import { join } from "node:path";
import type { HeaderFields } from "../../../src/core/heads.ts";
import type { Hex } from "../../../src/ethereum/hex.ts";
import { type BaseBlock, parseBaseBlock } from "../../../src/simulation/simulatedHeader.ts";
import type { Anvil } from "../../devnet/anvil.ts";
import { compile } from "../builders/compile.ts";
import { deploy } from "./deployed.ts";

export interface ProxiedToken {
  readonly block: BaseBlock;
  readonly call: { readonly from: Hex; readonly to: Hex; readonly data: Hex };
}

/** Deploys a token behind a proxy, and creates a transfer of it. */
export const deployProxiedToken = async (anvil: Anvil): Promise<ProxiedToken> => {
  const contracts = compile(join(import.meta.dirname, "../../evm/Contracts.sol"), "prague");
  const placed = await deploy(anvil, contracts, [
    ["Token", "PausableToken", () => []],
    ["Proxy", "Proxy", (at) => [at("Token")]],
  ]);
  const to = placed.address("Proxy");
  await placed.send(to, placed.encode("Token", "mint", [placed.sender, 1_000_000n]));
  const receiver = `0x${"7e".repeat(20)}`;
  return {
    block: parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields),
    call: { from: placed.sender, to, data: placed.encode("Token", "transfer", [receiver, 5n]) },
  };
};

import { type EthereumFork, isForkActive, type OpFork, type Rules } from "../../ethereum/rules.ts";
import type { ModuleKind } from "../engine.ts";

/** The rules of a block as the module needs them. */
export interface FastRules {
  readonly kind: ModuleKind;
  /** Position in the module's list of forks. */
  readonly spec: number;
  readonly chainId: bigint;
  /** The largest input of the bn254 pairing, in bytes. 0: the module's own limit. */
  readonly maxPairingBytes: number;
}

/** In the order of `SPECS` in wasm/src/ethereum.rs. */
const ETHEREUM_SPECS: readonly string[] = [
  ...["chainstart", "homestead", "tangerineWhistle", "spuriousDragon", "byzantium", "constantinople", "petersburg"],
  ...["istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"],
];
/** Forks that change only the schedule of blobs. */
const BLOB_FORKS: ReadonlySet<string> = new Set<EthereumFork>(["bpo1", "bpo2"]);

/** In the order of `SPECS` in wasm/src/optimism.rs. */
const OP_SPECS: readonly OpFork[] = [
  ...(["bedrock", "regolith", "canyon", "ecotone", "fjord", "granite", "holocene", "isthmus", "jovian"] as const),
  "karst",
];
/** Source: docs/reference/op-stack.md, Differences inside the EVM. Base's Azul keeps the limit of Jovian. */
const KARST_PAIRING_BYTES = 57_600;

export const fastRulesOf = ({ chainId, fork, op }: Rules): FastRules => {
  if (op === undefined) {
    const spec = ETHEREUM_SPECS.indexOf(BLOB_FORKS.has(fork) ? "osaka" : fork);
    return { kind: "ethereum", spec, chainId, maxPairingBytes: 0 };
  }
  // Lagoon changes nothing inside the EVM.
  const spec = OP_SPECS.indexOf(op === "azul" || op === "lagoon" ? "karst" : op);
  const hasKarstLimit = op === "karst" || op === "lagoon";
  return { kind: "optimism", spec, chainId, maxPairingBytes: hasKarstLimit ? KARST_PAIRING_BYTES : 0 };
};

/** The EIPs that code outside the module asks for, by the fork that activated them. */
const EIPS: ReadonlyMap<number, EthereumFork> = new Map([
  [1559, "london"],
  [3651, "shanghai"],
  [3860, "shanghai"],
  [4788, "cancun"],
  [2935, "prague"],
  [7623, "prague"],
  [7702, "prague"],
  [7594, "osaka"],
  [7825, "osaka"],
  [7708, "amsterdam"],
  [8037, "amsterdam"],
  [8282, "amsterdam"],
]);

/** Returns a function that reports whether an EIP is active. */
export const eipsOf = (rules: Rules): ((eip: number) => boolean) => {
  const active = new Map([...EIPS].map(([eip, fork]) => [eip, isForkActive(rules, fork)]));
  return (eip) => {
    const is = active.get(eip);
    if (is === undefined) {
      throw new Error(`the fork of EIP-${eip} is not listed`);
    }
    return is;
  };
};

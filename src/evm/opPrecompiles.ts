import { EVMError, type PrecompileFunc, type PrecompileInput } from "@ethereumjs/evm";
import { isOpForkActive, type OpFork, type Rules } from "../ethereum/rules.ts";
import { verifyP256 } from "./p256.ts";

const NOTHING = new Uint8Array(0);
const address = (last: string): string => last.padStart(40, "0");
const PAIRING = address("08");
const G1_MSM = address("0c");
const G2_MSM = address("0e");
const BLS_PAIRING = address("0f");
const P256_VERIFY = address("0100");
/** The price of P256VERIFY on the OP stack from Fjord until Osaka (RIP-7212). */
const FJORD_P256_GAS = 3450n;

/** Largest inputs in bytes, newest fork first. Source: docs/reference/op-stack.md, Differences inside the EVM. */
const LIMITS: readonly (readonly [OpFork, ReadonlyMap<string, number>])[] = [
  ["karst", new Map([[PAIRING, 57_600]])],
  [
    "jovian",
    new Map([
      [PAIRING, 81_984],
      [G1_MSM, 288_960],
      [G2_MSM, 278_784],
      [BLS_PAIRING, 156_672],
    ]),
  ],
  [
    "isthmus",
    new Map([
      [G1_MSM, 513_760],
      [G2_MSM, 488_448],
      [BLS_PAIRING, 235_008],
    ]),
  ],
  ["granite", new Map([[PAIRING, 112_687]])],
];

/** The error texts for longer inputs. Source: op-geth, core/vm/contracts.go. */
const TOO_LONG = new Map([
  [PAIRING, "bad elliptic curve pairing input size"],
  [G1_MSM, "g1 msm input size exceeds maximum"],
  [G2_MSM, "g2 msm input size exceeds maximum"],
  [BLS_PAIRING, "pairing input size exceeds maximum"],
]);

/** Returns the precompiles of these rules. On the OP stack they have its limits, and include P256VERIFY. */
export const opPrecompiles = (rules: Rules, standard: Map<string, PrecompileFunc>): Map<string, PrecompileFunc> => {
  if (rules.op === undefined) {
    return standard;
  }
  const precompiles = new Map(standard);
  if (isOpForkActive(rules, "fjord") && !precompiles.has(P256_VERIFY)) {
    precompiles.set(P256_VERIFY, fjordP256);
  }
  const limited = new Set<string>();
  for (const [fork, limits] of LIMITS) {
    if (!isOpForkActive(rules, fork)) {
      continue;
    }
    for (const [at, maxBytes] of limits) {
      const precompile = precompiles.get(at);
      if (precompile === undefined || limited.has(at)) {
        continue;
      }
      limited.add(at);
      precompiles.set(at, atMost(maxBytes, precompile, TOO_LONG.get(at) ?? "invalid input length"));
    }
  }
  return precompiles;
};

const atMost =
  (maxBytes: number, precompile: PrecompileFunc, fault: string): PrecompileFunc =>
  (input) =>
    input.data.length > maxBytes ? fail(input, fault as EVMError["error"]) : precompile(input);

const fjordP256: PrecompileFunc = (input) => {
  if (input.gasLimit < FJORD_P256_GAS) {
    return fail(input, EVMError.errorMessages.OUT_OF_GAS);
  }
  return { executionGasUsed: FJORD_P256_GAS, returnValue: verifyP256(input.data) };
};

const fail = (input: PrecompileInput, error: EVMError["error"]) => ({
  executionGasUsed: input.gasLimit,
  returnValue: NOTHING,
  exceptionError: new EVMError(error),
});

import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { type Address, type Data, formatQuantity, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { rulesAt } from "../../../src/ethereum/rules.ts";
import type { Authorization } from "../../../src/ethereum/transaction.ts";
import { createEngines } from "../../../src/evm/createEngines.ts";
import type { Engine } from "../../../src/evm/engine.ts";
import { createMessage } from "../../support/builders/plainCall.ts";
import { createRandom, pick } from "../../support/builders/randomValues.ts";
import type { Overrides } from "../../world/chain/nodeAnswers.ts";
import { callAtOneBlock } from "../../world/judge/comparedReads.ts";
import { CodeHashes } from "../../world/state/codeHashes.ts";
import { stateReaderAt } from "../../world/state/standInCalls.ts";
import { CHAIN_ID, type StandInBlock, type StandInChain } from "../../world/state/standInChain.ts";
import { createAuthority } from "../../world/state/standInTransactions.ts";

/** A call to an authority that has no account at first, or its authorization. */
type Step = "call" | "callByContract" | "pay" | "authorize";

interface AuthorizationTally {
  comparisons: number;
  errors: string[];
  readonly differences: object[];
}

interface Authority {
  readonly address: Address;
  readonly authorization: Authorization;
}

const SENDER: Address = `0x${"5e".repeat(20)}`;
const CALLER: Address = `0x${"ca".repeat(20)}`;
const TARGET: Address = `0x${"7a".repeat(20)}`;
const GAS = 200_000n;
const STEPS: readonly Step[] = ["call", "call", "callByContract", "pay", "authorize"];
const MAX_BLOCKS = 3;
const MAX_STEPS = 3;
/** No stand-in chain gives an account to these authorities. */
const AUTHORITIES = [901, 902, 903];
const CHECKS = { checks: { nonce: false, sender: false, freeGas: true } };

const authorityAt = async (index: number): Promise<Authority> => {
  const account = createAuthority(index);
  const signed = await account.signAuthorization({ address: TARGET, chainId: Number(CHAIN_ID), nonce: 0 });
  const parts = { yParity: BigInt(signed.yParity ?? 0), r: BigInt(signed.r), s: BigInt(signed.s) };
  const address = account.address.toLowerCase() as Address;
  return { address, authorization: { chainId: CHAIN_ID, address: TARGET, nonce: 0n, ...parts } };
};

/** Simulates calls and authorizations over blocks, and compares the gas of each with the reference engine (EIP-7702). */
export class ComparedAuthorizations {
  readonly tally: AuthorizationTally = { comparisons: 0, errors: [], differences: [] };
  readonly #chain: StandInChain;
  readonly #url: string;
  readonly #engine: Engine;
  readonly #authorities: readonly Authority[];
  readonly #random: () => number;
  readonly #codeHashes = new CodeHashes();

  private constructor(
    { chain, url }: { readonly chain: StandInChain; readonly url: string },
    engine: Engine,
    authorities: readonly Authority[],
    seed: number,
  ) {
    this.#chain = chain;
    this.#url = url;
    this.#engine = engine;
    this.#authorities = authorities;
    this.#random = createRandom(seed);
  }

  /** Undefined on a chain whose rules have no authorizations, or that the reference engine does not know. */
  static async create(chain: StandInChain, url: string, seed: number): Promise<ComparedAuthorizations | undefined> {
    if (chain.fork !== "prague") {
      return undefined;
    }
    const engines = await createEngines("reference");
    const engine = engines(rulesAt(fixedForks(CHAIN_ID, chain.fork), 1n, 1n));
    return new ComparedAuthorizations({ chain, url }, engine, await Promise.all(AUTHORITIES.map(authorityAt)), seed);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.compareOnce();
    }
  }

  async compareOnce(): Promise<void> {
    const authority = pick(this.#random, this.#authorities);
    const plan = Array.from({ length: 1 + Math.floor(this.#random() * MAX_BLOCKS) }, () =>
      Array.from({ length: 1 + Math.floor(this.#random() * MAX_STEPS) }, () => pick(this.#random, STEPS)),
    );
    const params = [{ blockStateCalls: plan.map((steps, at) => simulated(steps, authority, at === 0)) }, "latest"];
    const answered = await callAtOneBlock(this.#url, "latest", [{ method: "eth_simulateV1", params }]);
    const block = answered && this.#chain.block(answered.hash);
    const { result, error } = answered?.results[0] ?? {};
    if (block === undefined || error !== undefined) {
      this.tally.errors.push(error?.message ?? "the block is not known");
      return;
    }
    const blocks = result as readonly { readonly calls: readonly { readonly gasUsed: string }[] }[];
    const actual = blocks.map(({ calls }) => calls.map(({ gasUsed }) => Number(gasUsed)));
    const expected = await this.#execute(block, plan, authority);
    this.tally.comparisons++;
    if (JSON.stringify(actual) !== JSON.stringify(expected)) {
      this.tally.differences.push({ plan, authority: authority.address, actual, expected });
    }
  }

  async #execute(
    { hash, header }: StandInBlock,
    plan: readonly (readonly Step[])[],
    authority: Authority,
  ): Promise<number[][]> {
    const overrides = overridesFor(authority);
    const state = this.#engine.createState(stateReaderAt(this.#chain, hash, this.#codeHashes, overrides));
    const used: number[][] = [];
    for (const [at, steps] of plan.entries()) {
      const gas: number[] = [];
      const block = {
        ...{ number: header.number + 1n + BigInt(at), timestamp: header.timestamp + 1n + BigInt(at) },
        ...{ coinbase: header.miner, gasLimit: header.gasLimit, baseFee: 0n, prevRandao: ZERO_HASH },
        ...{ blobBaseFee: 1n, blockHash: () => ZERO_HASH },
      };
      for (const step of steps) {
        const message = createMessage({ from: SENDER, gas: GAS, ...fieldsOf(step, authority) });
        const { gasUsed } = await this.#engine.transact({ state, block }, message, CHECKS);
        gas.push(Number(gasUsed));
      }
      used.push(gas);
    }
    return used;
  }
}

const overridesFor = ({ address }: Authority): Overrides => {
  const code: Data = `0x5f5f5f5f5f73${address.slice(2)}5af15000`;
  return { [SENDER]: { balance: "0xffffffff" }, [CALLER]: { code } };
};

const fieldsOf = (step: Step, { address, authorization }: Authority) => {
  switch (step) {
    case "call":
      return { to: address };
    case "callByContract":
      return { to: CALLER };
    case "pay":
      return { to: address, value: 1n };
    case "authorize":
      return { type: 4, to: SENDER, authorizationList: [authorization] };
  }
};

const simulated = (steps: readonly Step[], authority: Authority, isFirst: boolean) => ({
  ...(isFirst ? { stateOverrides: overridesFor(authority) } : {}),
  calls: steps.map((step) => {
    const { to, value = 0n, authorizationList } = { authorizationList: undefined, ...fieldsOf(step, authority) };
    const list = authorizationList?.map(({ address, ...numbers }) => ({
      address,
      ...Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, formatQuantity(number)])),
    }));
    const fields = { from: SENDER, to, value: formatQuantity(value), gas: formatQuantity(GAS) };
    return list === undefined ? fields : { ...fields, authorizationList: list };
  }),
});

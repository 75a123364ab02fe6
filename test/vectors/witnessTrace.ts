import type { StateReader } from "../../src/core/stateReader.ts";
import {
  type Address,
  type Data,
  formatData,
  formatQuantity,
  type Hash,
  parseData,
  ZERO_ADDRESS,
} from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import type { Rules } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment } from "../../src/evm/engine.ts";
import { createMessage } from "../support/builders/plainCall.ts";

/** The fields of a call object that are used here. */
export interface TracedCall {
  readonly from?: Address;
  readonly to?: Address | null;
  readonly data?: Data;
  readonly input?: Data;
  readonly value?: Data;
  readonly gas?: Data;
}

export interface Tracer {
  readonly rules: Rules;
  readonly block: BlockEnvironment;
  readonly state: StateReader;
}

const ANY_CALL = { nonce: false, sender: false, freeGas: true };
const DEFAULT_GAS = 50_000_000n;
const engines = await createEngines();

const messageOf = ({ from = ZERO_ADDRESS, to = null, gas, value = "0x0", input, data = "0x" }: TracedCall) =>
  createMessage({
    ...{ from, to, gas: BigInt(gas ?? DEFAULT_GAS), value: BigInt(value) },
    input: parseData(input ?? data),
  });

const apply = (tracer: Tracer, state: StateReader, call: TracedCall) => {
  const engine = engines(tracer.rules);
  return engine.transact({ state: engine.createState(state), block: tracer.block }, messageOf(call), {
    checks: ANY_CALL,
    tracesAccess: true,
  });
};

/** Returns the result of geth's prestateTracer for a call: the accounts and slots that it reads, before the call. */
export const tracePrestate = async (tracer: Tracer, call: TracedCall): Promise<Record<Address, unknown>> => {
  const slots = new Map<Address, Map<Hash, Data>>();
  const recording: StateReader = {
    ...tracer.state,
    account: (address) => {
      slots.set(address, slots.get(address) ?? new Map());
      return tracer.state.account(address);
    },
    storage: (address, slot) => {
      const value = tracer.state.storage(address, slot);
      const word = `0x${formatData(value).slice(2).padStart(64, "0")}` as const;
      slots.get(address)?.set(slot, word);
      return value;
    },
  };
  await apply(tracer, recording, call);
  recording.account(tracer.block.coinbase);
  return Object.fromEntries(
    [...slots].map(([address, storage]) => {
      const { nonce, balance, codeHash } = tracer.state.account(address) ?? {
        nonce: 0n,
        balance: 0n,
        codeHash: EMPTY_CODE_HASH,
      };
      const code = codeHash === EMPTY_CODE_HASH ? undefined : formatData(tracer.state.code(codeHash, address));
      return [
        address,
        {
          balance: formatQuantity(balance),
          ...(nonce === 0n ? {} : { nonce: Number(nonce) }),
          ...(code === undefined ? {} : { code }),
          ...(storage.size === 0 ? {} : { storage: Object.fromEntries(storage) }),
        },
      ];
    }),
  );
};

/** Returns the result of eth_createAccessList for a call. Like geth, it omits sender and recipient without slots. */
export const traceAccessList = async (tracer: Tracer, call: TracedCall): Promise<unknown> => {
  const { accessed = [], gasUsed, status } = await apply(tracer, tracer.state, call);
  const shown = accessed.filter(
    ({ address, storageKeys }) => storageKeys.length > 0 || (address !== call.from && address !== call.to),
  );
  return {
    accessList: shown,
    gasUsed: formatQuantity(gasUsed),
    ...(status === "success" ? {} : { error: "execution reverted" }),
  };
};

import { Common, Mainnet } from "@ethereumjs/common";
import { EVM, EVMMockBlockchain, NobleBN254 } from "@ethereumjs/evm";
import { Address as AddressBytes } from "@ethereumjs/util";
import { type Address, formatData, parseData } from "../../../src/ethereum/hex.ts";
import type { EthereumFork } from "../../../src/ethereum/rules.ts";
import { isDelegation } from "../../../src/evm/checks/transactionChecks.ts";
import { libraryBlock } from "../../../src/evm/reference/libraryTransaction.ts";
import { libraryCrypto } from "../../../src/evm/reference/referenceEngine.ts";
import { ReferenceState } from "../../../src/evm/reference/referenceState.ts";
import { ReferenceStateManager } from "../../../src/evm/reference/referenceStateManager.ts";
import { readerOf } from "../../support/builders/stateRoot.ts";
import type { FuzzCase } from "./randomWorld.ts";

const INVALID = 0xfe;
const FIRST_PRECOMPILE = 1n;
const LAST_PRECOMPILE = 0x100n;
const OUT_OF_GAS = "out of gas";

/** Collects the opcodes that the programs of one fork execute, according to the library's EVM. */
export class ExecutedOpcodes {
  readonly #common: Common;
  readonly #executed = new Set<number>();
  readonly #defined: ReadonlyMap<number, string>;
  /** Frames that ran out of gas, by depth. */
  readonly #outOfGas: number[] = [];
  /** Precompiles that returned a result. */
  readonly #precompiles = new Set<bigint>();
  #delegated = 0;

  constructor(fork: EthereumFork) {
    this.#common = new Common({ chain: Mainnet, hardfork: fork, customCrypto: libraryCrypto });
    const opcodes = [...this.#evm(new ReferenceState(EMPTY)).getActiveOpcodes()];
    this.#defined = new Map(opcodes.flatMap(([code, { fullName }]) => (code === INVALID ? [] : [[code, fullName]])));
  }

  get defined(): number {
    return this.#defined.size;
  }

  /** Names of the fork's opcodes that no program has executed. */
  get missing(): string[] {
    return [...this.#defined].flatMap(([code, name]) => (this.#executed.has(code) ? [] : [name]));
  }

  /** Frames that ran out of gas, at how many depths, and the largest depth. */
  get outOfGas(): { readonly frames: number; readonly depths: number; readonly deepest: number } {
    const counts = Object.values(this.#outOfGas);
    return {
      frames: counts.reduce((sum, count) => sum + count, 0),
      depths: counts.length,
      deepest: this.#outOfGas.length - 1,
    };
  }

  get precompiles(): readonly number[] {
    return [...this.#precompiles].map(Number).sort((a, b) => a - b);
  }

  /** Calls of accounts that delegate to code (EIP-7702). */
  get delegated(): number {
    return this.#delegated;
  }

  /** Executes the messages of a case, without the rules of transactions. */
  async run({ state: before, block, transactions }: FuzzCase): Promise<void> {
    const evm = this.#evm(new ReferenceState(readerOf(before, block.blockHash)));
    for (const { from, to, gas, value, input, blobVersionedHashes } of transactions) {
      await evm.runCall({
        block: libraryBlock(block, this.#common),
        caller: address(from),
        ...(to === null ? {} : { to: address(to) }),
        gasLimit: gas,
        value,
        data: input,
        blobVersionedHashes: [...blobVersionedHashes],
      });
      await evm.journal.cleanup();
    }
  }

  #evm(state: ReferenceState): EVM {
    const stateManager = new ReferenceStateManager(state);
    const blockchain = Object.assign(new EVMMockBlockchain(), { getBlock: async () => ({ hash: () => HASH }) });
    const evm = new EVM({ common: this.#common, stateManager, blockchain, bn254: new NobleBN254() });
    evm.events.on("step", ({ opcode }, resolve) => {
      this.#executed.add(opcode.code);
      resolve?.();
    });
    const callees: (bigint | undefined)[] = [];
    evm.events.on("beforeMessage", (message, resolve) => {
      if (message.to !== undefined && isDelegation(state.codeOf(formatData(message.to.bytes)))) {
        this.#delegated++;
      }
      callees.push(message.to && BigInt(formatData(message.codeAddress.bytes)));
      resolve?.();
    });
    evm.events.on("afterMessage", ({ execResult }, resolve) => {
      const callee = callees.pop();
      this.#record(callee, callees.length, execResult.exceptionError?.error, execResult.returnValue.length);
      resolve?.();
    });
    return evm;
  }

  #record(callee: bigint | undefined, depth: number, error: string | undefined, returned: number): void {
    if (error === OUT_OF_GAS) {
      this.#outOfGas[depth] = (this.#outOfGas[depth] ?? 0) + 1;
    }
    if (callee !== undefined && callee >= FIRST_PRECOMPILE && callee <= LAST_PRECOMPILE && returned > 0) {
      this.#precompiles.add(callee);
    }
  }
}

const HASH = new Uint8Array(32).fill(7);
const EMPTY = readerOf(new Map(), () => `0x${"00".repeat(32)}`);
const address = (value: Address): AddressBytes => new AddressBytes(parseData(value));

import type { EVM } from "@ethereumjs/evm";

interface Interpreter {
  readonly _evm: EVM;
  _getValidJumpDestinations(code: Uint8Array): object;
}

/** Of each EVM, since opcodes differ from fork to fork: by code, which is one object wherever it is called. */
const analysesOf = new WeakMap<EVM, WeakMap<Uint8Array, object>>();
const prepared = new WeakSet<object>();

/**
 * The library analyses a code anew in every call, which takes longer than most calls do. Its interpreter is not exported; one that
 * runs leads to its class, which from then on remembers, for those EVMs alone that were given here.
 */
export const keepJumpAnalyses = (evm: EVM, running: Interpreter): void => {
  analysesOf.set(evm, new WeakMap());
  const prototype: Interpreter = Object.getPrototypeOf(running);
  if (prepared.has(prototype)) return;
  prepared.add(prototype);
  const analyse = prototype._getValidJumpDestinations;
  prototype._getValidJumpDestinations = function (code) {
    const kept = analysesOf.get(this._evm);
    const known = kept?.get(code);
    if (known !== undefined) return known;
    const analysis = analyse.call(this, code);
    kept?.set(code, analysis);
    return analysis;
  };
};

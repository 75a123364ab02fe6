import type { EVM } from "@ethereumjs/evm";

/** Jump analyses by code. A code is the same object wherever it is called. */
type Analyses = WeakMap<Uint8Array, object>;

const ANALYSES = Symbol("jumpAnalyses");
const ORIGINAL = Symbol("originalJumpAnalysis");

interface MemoizingEvm extends EVM {
  [ANALYSES]?: Analyses;
}

type Analyse = (this: Interpreter, code: Uint8Array) => object;

interface Interpreter {
  readonly _evm: MemoizingEvm;
  _getValidJumpDestinations: Analyse & { [ORIGINAL]?: Analyse };
}

/**
 * Memoizes the jump analyses of an EVM. The library analyses a code again in every call, which takes longer than most calls.
 * The library does not export its interpreter, so this patches the class of a running one.
 * The patch affects only EVMs that were passed here. Each EVM has its own analyses, because opcodes differ between forks.
 */
export const keepJumpAnalyses = (evm: EVM, running: Interpreter): void => {
  (evm as MemoizingEvm)[ANALYSES] = new WeakMap();
  const prototype: Interpreter = Object.getPrototypeOf(running);
  const original = prototype._getValidJumpDestinations;
  if (original[ORIGINAL] !== undefined) {
    return;
  }
  const memoized: Analyse = function (code) {
    const analyses = this._evm[ANALYSES];
    const cached = analyses?.get(code);
    if (cached !== undefined) {
      return cached;
    }
    const analysis = original.call(this, code);
    analyses?.set(code, analysis);
    return analysis;
  };
  prototype._getValidJumpDestinations = Object.assign(memoized, { [ORIGINAL]: original });
};

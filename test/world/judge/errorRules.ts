interface ErrorRule {
  /** The code and the message, with `N` for each number. */
  readonly pattern: RegExp;
  /** It is also right while no fault is active, if the question names a block that forebay may not know yet. */
  readonly isOfUnknownBlock?: true;
}

/** The errors that a client may see. Any other error is a finding. */
const RULES: readonly ErrorRule[] = [
  {
    // The second one: the range begins above the head.
    pattern: /^-32602 (block range extends beyond current head block|invalid block range params)/,
    isOfUnknownBlock: true,
  },
  {
    pattern: /^-32000 (header not found|unknown block)$/,
    isOfUnknownBlock: true,
  },
  { pattern: /^-32000 header not found: / },
  // Of geth and Erigon: most nodes of a scenario have no history.
  { pattern: /^(4444 pruned history unavailable|-32000 old data not available due to pruning)$/ },
  { pattern: /^-32000 the (logs|receipts) of pending block N are not known/ },
];

/** The largest share of errors in all responses. */
export const MAX_ERROR_SHARE = 0.02;
/** The least share of the answers that the bound without a fault judges. */
export const MIN_QUIET_SHARE = 0.2;

/** The circumstances of an error. */
export interface ErrorCircumstances {
  /** No fault was active. */
  readonly isQuiet: boolean;
  /** The question named a block that forebay may not know. */
  readonly namesUnknownBlock: boolean;
}

/** Returns why an error is a finding; undefined if it is allowed. */
export const errorFault = (text: string, { isQuiet, namesUnknownBlock }: ErrorCircumstances): string | undefined => {
  const rule = RULES.find(({ pattern }) => pattern.test(text));
  if (rule === undefined) {
    return "an error of an unknown kind";
  }
  const isExplained = !isQuiet || (rule.isOfUnknownBlock === true && namesUnknownBlock);
  return isExplained ? undefined : "an error while no fault is active";
};

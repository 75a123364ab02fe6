/** The claims of docs/claims.md on truth, word for word. Each scenario and each planted fault names the one that it holds to. */
export const PROMISES = {
  bytes: "Sealed blocks, receipts, logs and state have the node's own bytes",
  dataFolder:
    "A kill at any time, and a data folder that is full, removed or damaged, make no answer wrong and fail no request",
  reorganisations: "No replica answers from a block that a reorganisation removed",
  logs: "A log query of any width returns all logs or an error",
  pending: "`pending` is one view: block, state, logs and nonce agree",
  feedFaults:
    "Under faults of feed and node, `pending` takes nothing back that is sealed later, and `live` and `degraded` have no wrong value",
  subscriptions: "Subscriptions send each head, receipt, log and pre-confirmed log once, and retract removed logs",
  inventedHeads: "A block that one node invents is not served while heads of a majority of other origins arrive",
  faults:
    "No answer is wrong, and none goes back, while nodes lag, hang or refuse, Redis pauses, a clock jumps or a process is killed",
  wrongResponses: "Wrong responses and impossible heads of a node are not served",
  proofs: "A proof of an account or of slots that contradicts the header of its block is not served",
  state: "State reads and calls within the readable blocks have the node's results, also while blocks are replaced",
  proven:
    "No answer labelled `proven` differs from the chain's record, although one of three origins lies in half of its responses, and blocks are replaced",
  replicas:
    "No replica has a wrong value from another one, also while Redis fails, leases end, or the node of one replica lies",
  checks: "A check finds a write that a node's traces lack, and all known state ends",
} as const;

export type PromiseName = keyof typeof PROMISES;

/** The long runs that draw their own scenarios at random, and what they hold to. */
export const RUN_PROMISES = {
  "data-folder": ["dataFolder"],
  "pending-differential": ["pending"],
  "state-differential": ["state"],
  "call-differential": ["state"],
  "shared-state": ["replicas"],
  "lying-trace": ["checks"],
  proven: ["proven", "proofs"],
} as const satisfies Readonly<Record<string, readonly PromiseName[]>>;

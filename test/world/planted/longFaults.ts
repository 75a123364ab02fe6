import type { PromiseName } from "../promises.ts";

/** A replacement in one file. The text must occur once. */
export interface Edit {
  /** Relative to the repository. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A fault in the code that follows state or executes, and the variant of the long run that must find it. */
export interface LongFault {
  readonly promise: PromiseName;
  /** Default: state-differential. */
  readonly run?: "call-differential" | "shared-state" | "proven";
  readonly variant: string;
  /**
   * The test that must fail too, for a fault that the run finds only after minutes. Without `run`, no long run can find the fault:
   * another check refuses the lie before.
   */
  readonly test?: string;
  /** The tests of that file whose names begin so. Default: all. */
  readonly testName?: string;
  /** The service itself must find the fault, by a check or a sample. */
  readonly isFoundByService?: true;
  readonly edits: readonly Edit[];
}

const TRACE = "src/state/sources/composeTrace.ts";
const SHARED = "src/state/sources/sharedWrites.ts";
const PACKED = "src/state/store/packedWrites.ts";
const VALUES = "src/state/store/valueStore.ts";

const WITNESS_TEST = "test/state/sources/witnessJob.test.ts";
const WITNESSES = "src/verification/witnessedWrites.ts";

const CHAIN = "src/pending/executedChain.ts";
const EXECUTED = { promise: "pending", variant: "", test: "test/pending/executedChain.test.ts" } as const;

const PROVEN_RUN = { promise: "proven", run: "proven", variant: "lists" } as const;
const WITNESSED_RUN = { promise: "proven", run: "proven", variant: "witnesses" } as const;

export const LONG_FAULTS: Readonly<Record<string, LongFault>> = {
  /** For comparison: such a run finds nothing. */
  none: { promise: "state", variant: "geth, Prague", edits: [] },
  lostSlot: {
    promise: "state",
    variant: "access list",
    edits: [
      {
        file: PACKED,
        from: 'addWrite(writer, { address, field: "slot", slot }, value);',
        to: 'if (!slot.endsWith("3")) addWrite(writer, { address, field: "slot", slot }, value);',
      },
    ],
  },
  lostFeeRecipient: {
    promise: "state",
    variant: "geth, Prague",
    edits: [
      {
        file: TRACE,
        from: "markSystemWrites(this.accounts, contracts);",
        to: "markSystemWrites(this.accounts, contracts); this.accounts.delete(feeRecipient);",
      },
    ],
  },
  shortUndo: {
    promise: "state",
    variant: "access list",
    edits: [
      {
        file: VALUES,
        from: "for (let removed = before; removed > this.#blocks.newest; removed--) {",
        to: "for (let removed = before; removed > this.#blocks.newest + 1; removed--) {",
      },
    ],
  },
  keptSlots: {
    promise: "state",
    variant: "Shanghai",
    edits: [
      {
        file: TRACE,
        from: "forgetCode(writes);\n  forgetSlots(writes);",
        to: "forgetCode(writes);",
      },
    ],
  },
  lostSystemWrite: {
    promise: "state",
    variant: "geth, Prague",
    edits: [
      {
        file: "src/state/sources/composeTrace.ts",
        from: "for (const contract of [...SYSTEM_CONTRACTS, ...contracts]) {",
        to: "for (const contract of contracts) {",
      },
    ],
  },
  missedClearing: {
    promise: "state",
    variant: "anvil, Prague",
    edits: [
      {
        file: TRACE,
        from: "for (const address of this.#delegating) {",
        to: "for (const address of new Set<Address>()) {",
      },
    ],
  },
  lateEntry: {
    promise: "state",
    variant: "access list",
    edits: [
      {
        file: "src/state/blockQueue.ts",
        from: "if (!values.add(key, block, value, grade)) {",
        to: "if (!values.add(key, values.head ?? block, value, grade)) {",
      },
    ],
  },
  /** geth's diff leaves out a new contract whose SELFDESTRUCT was reverted. */
  leftOutAccount: {
    promise: "state",
    variant: "geth, Prague",
    edits: [{ file: TRACE, from: "  checkCalls(parts);\n", to: "" }],
  },
  /** revm's refund for an authority that does not exist, but that an earlier transaction called (EIP-7702). */
  touchedAuthority: {
    promise: "state",
    run: "call-differential",
    variant: "geth, Prague",
    edits: [
      {
        file: "src/evm/fast/fastEngine.ts",
        from: '    const result = this.#run(context, request, "transact");\n    const described',
        to: `
    const called = (context.state.called ??= new Set());
    const isEmpty = (address) => context.state.nonceOf(address) === 0n && context.state.balanceOf(address) === 0n;
    const isKnown = request.authorizations.some(([, authority]) => called.has(authority) && isEmpty(authority));
    const right = this.#run(context, request, "transact");
    called.add(message.to);
    const result = isKnown ? { ...right, gasUsed: right.gasUsed - right.gasUsed / 5n } : right;
    const described`,
      },
    ],
  },
  /** A source that loses one write in fifty. Responses to clients are not compared, so that a check or a sample has to find it. */
  lossySource: {
    promise: "checks",
    variant: "geth, Prague",
    isFoundByService: true,
    edits: [
      {
        file: PACKED,
        from: 'addWrite(writer, { address, field: "slot", slot }, value);',
        to: 'if (Math.random() >= 0.02) addWrite(writer, { address, field: "slot", slot }, value);',
      },
      {
        file: "src/state/blockQueue.ts",
        from: "if (!values.add(key, block, value, grade)) {",
        to: "if (!values.add(key, block, value, grade) && false) {",
      },
    ],
  },
  /** A write set of another replica lacks its writes. */
  emptyShared: {
    promise: "replicas",
    run: "shared-state",
    variant: "access list",
    edits: [
      {
        file: SHARED,
        from: 'return { block, packed, node: source?.node, grade: "stated", isShared: true };',
        to: 'return { block, packed: new Uint8Array(4), node: source?.node, grade: "stated", isShared: true };',
      },
    ],
  },
  /** A write set of another replica is entered at its block, and again at the next one. */
  repeatedShared: {
    promise: "replicas",
    run: "shared-state",
    variant: "access list",
    edits: [
      {
        file: SHARED,
        from: 'return { block, packed, node: source?.node, grade: "stated", isShared: true };',
        to: `
    const rows = Buffer.concat([packed, ...(this.before ? [this.before] : [])].map((each) => each.subarray(4)));
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE((await import("node:zlib")).crc32(rows));
    this.before = packed;
    return { block, packed: Buffer.concat([sum, rows]), node: source?.node, grade: "stated", isShared: true };`,
      },
    ],
  },
  /** The key of a shared write set does not tell branches apart. */
  orphanShared: {
    promise: "replicas",
    run: "shared-state",
    variant: "access list",
    edits: [
      {
        file: SHARED,
        from: "const key = `writes${FORMAT}:${kind}:${block.hash}`;",
        to: "const key = `writes${FORMAT}:${kind}:${block.number}`;",
      },
      { file: SHARED, from: "if (value.block?.hash !== block.hash || ", to: "if (" },
    ],
  },
  /** A replica whose lease has ended stores its write set, although another one has the lease. */
  lateStore: {
    promise: "replicas",
    run: "shared-state",
    variant: "trace",
    edits: [
      {
        file: "src/cache/leasedValues.ts",
        from: "const STORE = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then",
        to: "const STORE = `if false then",
      },
    ],
  },
  uncheckedList: {
    ...PROVEN_RUN,
    test: "test/state/sources/listSource.test.ts",
    edits: [
      {
        file: "src/state/sources/writeSetTask.ts",
        from: "if (expected === undefined || !isSame(expected, hashBlockAccessList(list))) {",
        to: "if (expected === undefined) {",
      },
    ],
  },
  uncheckedFields: {
    ...PROVEN_RUN,
    promise: "proofs",
    test: "test/verification/accountProof.test.ts",
    edits: [
      {
        file: "src/verification/checkProof.ts",
        from: "if (!isOfAddress || !hasFields(fields, account) || !slots.every(isSlot)) {",
        to: "if (!isOfAddress) {",
      },
    ],
  },
  uncheckedRoot: {
    ...PROVEN_RUN,
    promise: "proofs",
    test: "test/ethereum/randomProofs.test.ts",
    edits: [
      {
        file: "src/ethereum/trieProof.ts",
        from: "if (node === undefined || !isEqual(node.hash, hash)) {",
        to: "if (node === undefined) {",
      },
    ],
  },
  uncheckedCode: {
    ...PROVEN_RUN,
    test: "test/state/stateReads.test.ts",
    edits: [
      {
        file: "src/state/stateReads.ts",
        from: 'return code === undefined ? stated : { ...stated, body: code, block, grade: "proven" };',
        to: 'return { ...stated, block, grade: "proven" };',
      },
    ],
  },
  /** Slots are taken in the order in which they were requested. */
  orderedSlots: {
    ...PROVEN_RUN,
    test: "test/verification/provenAccount.test.ts",
    edits: [
      {
        file: "src/verification/provenAccount.ts",
        from: "const value = slots.size === 0 ? 0n : slots.get(slot);",
        to: "const value = [...slots.values()][[...slots.keys()].sort().indexOf(slot)] ?? 0n;",
      },
    ],
  },
  /** A block whose write set is not proven ends no proof. */
  keptProofs: {
    ...PROVEN_RUN,
    test: "test/state/store/provenValues.test.ts",
    edits: [
      {
        file: "src/state/store/followedBlocks.ts",
        from: 'grade === "proven" ? (before?.unproven ?? this.#head) : number',
        to: "before?.unproven ?? this.#head",
      },
    ],
  },
  /** A proof stays although its block was replaced. */
  orphanedProofs: {
    ...PROVEN_RUN,
    test: "test/state/store/provenValues.test.ts",
    edits: [
      {
        file: VALUES,
        from: "if (this.#table.isOfBlock(entry, removed)) {",
        to: "if (this.#table.isOfBlock(entry, removed) && !this.#table.has(entry, PROVEN | FETCHED)) {",
      },
    ],
  },
  /** A call stays proven over a block whose write set is not. */
  keptCalls: {
    ...PROVEN_RUN,
    test: "test/state/calls/callTable.test.ts",
    edits: [
      {
        file: "src/state/calls/callResult.ts",
        from: "weakestGrade([grade, values.gradeSince(block, at)])",
        to: "grade",
      },
    ],
  },
  /** A call is called proven whatever it read. */
  statedCalls: {
    ...PROVEN_RUN,
    test: "test/state/calls/callRunner.test.ts",
    edits: [
      {
        file: "src/state/calls/callRunner.ts",
        from: 'weakestGrade([state.grades.weakestOf(read), mayProve ? "proven" : "checked"])',
        to: 'mayProve ? "proven" : "checked"',
      },
    ],
  },
  /** What an unproven trace wrote counts as proven. */
  provenTraces: {
    ...WITNESSED_RUN,
    test: "test/state/store/provenValues.test.ts",
    edits: [
      {
        file: VALUES,
        from: "this.#table.setValueAt(entry, place, FLAGS[grade]);",
        to: "this.#table.setValueAt(entry, place, PROVEN);",
      },
      {
        file: VALUES,
        from: "const number = this.#blocks.add(writeSet.block.hash, grade);",
        to: 'const number = this.#blocks.add(writeSet.block.hash, "proven");',
      },
    ],
  },
  /** The writes need not give the state root of the block. */
  uncheckedWrites: {
    ...WITNESSED_RUN,
    test: WITNESS_TEST,
    edits: [
      {
        file: WITNESSES,
        from: 'return rootAfter(trie, writes) === stateRoot ? { kind: "proven", writes } : { kind: "refused" };',
        to: 'return { kind: "proven", writes };',
      },
    ],
  },
  /**
   * The claimed slots of an open account need not give its storage root.
   * Traces leave only system contracts open, whose slots the run seldom reads twice.
   */
  openSlots: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [{ file: WITNESSES, from: 'storage: isClaimed ? "claimed" : "unknown" };', to: 'storage: "claimed" };' }],
  },
  /**
   * An open account that has other slots counts as one whose slots did not change.
   * Traces leave only system contracts open, whose slots the run seldom reads twice.
   */
  keptOpenSlots: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [{ file: WITNESSES, from: "if (storageHash === before.storageHash) {", to: "if (after.exists) {" }],
  },
  /** A header with an unknown field counts as computed. Its false roots have no nodes below them, so that nothing is proven by them. */
  uncomputedHeader: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [
      {
        file: "src/verification/checkHeader.ts",
        from: "return hasUnknownFields(block) ? { ...uncomputable",
        to: "return hasUnknownFields(block) ? { ...passed",
      },
    ],
  },
  /** Nodes beside the path of a key prove nothing, and so nothing false. */
  surplusNodes: {
    promise: "proofs",
    variant: "",
    test: "test/ethereum/randomProofs.test.ts",
    edits: [{ file: "src/ethereum/trieProof.ts", from: "    list.end();\n", to: "" }],
  },
  /** An account with nothing stays in the trie: the state root refuses the block. */
  keptEmptyAccount: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [{ file: WITNESSES, from: "if (isEmpty(after)) {", to: "if (!after.exists) {" }],
  },
  /** The slots of an account that ended stay. From Cancun on, only an account of the same transaction ends. */
  keptEndedSlots: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [
      {
        file: WITNESSES,
        from: 'storage: isStored(before) || slots.size > 0 ? "cleared" : "nothing" };',
        to: 'storage: "nothing" };',
      },
    ],
  },
  /** An open account gets the claimed code, although its leaf has another hash. Traces of the run have no wrong codes. */
  uncheckedOpenCode: {
    promise: "proven",
    variant: "",
    test: WITNESS_TEST,
    edits: [
      {
        file: "src/state/sources/witnessJob.ts",
        from: "return code instanceof Uint8Array && keccak256Hex(code) === codeHash ? code",
        to: "return code instanceof Uint8Array ? code",
      },
    ],
  },
  /** A value of the base before answers after the next block wrote it. The commitments of the next message may still agree. */
  lateBaseValue: {
    ...EXECUTED,
    edits: [{ file: CHAIN, from: "accounts: written.map(([address, { account }]) => [address, account]),", to: "" }],
  },
  /** What messages above the sealed block wrote is read at that block. */
  leakedVersion: {
    ...EXECUTED,
    edits: [
      {
        file: CHAIN,
        from: "layersOf(this.ancestors(through)) :",
        to: "layersOf([...this.#versions.values()].reverse()) :",
      },
    ],
  },
  /** The chain above another block has the oldest version of the one before. */
  shortDiscard: {
    ...EXECUTED,
    edits: [
      {
        file: CHAIN,
        from: "      this.#versions.clear();",
        to: "      for (const id of [...this.#versions.keys()].slice(1)) this.#versions.delete(id);",
      },
    ],
  },
  /** A sealed block with further transactions counts as its pending block. */
  surplusTransactions: {
    promise: "pending",
    variant: "",
    test: "test/pending/executedBlocks.test.ts",
    edits: [
      {
        file: "src/pending/reconcile.ts",
        from: "isOnParent && differences.length === 0",
        to: 'isOnParent && differences.every((each) => each === "transactions")',
      },
    ],
  },
  missingItem: {
    promise: "state",
    variant: "geth, Prague",
    edits: [
      { file: TRACE, from: "diffs.length !== block.transactions.length || block.paysOmmers", to: "block.paysOmmers" },
      { file: TRACE, from: "    checkItem(diff, transaction);\n", to: "" },
      { file: TRACE, from: "  checkCalls(parts);\n", to: "" },
      {
        file: TRACE,
        from: "if (diff?.transactionHash !== hash || !hasNonce) {",
        to: "if (diff?.transactionHash === hash && !hasNonce) {",
      },
      {
        file: "test/world/state/standInChain.ts",
        from: "formatDiffTrace(phases.slice(1, -1), hashes, form)",
        to: "formatDiffTrace(phases.slice(1, -1), hashes, form).slice(0, -1)",
      },
    ],
  },
  /** A lost message is not noticed. */
  unnoticedGap: {
    promise: "feedFaults",
    variant: "",
    test: "test/pending/faults.test.ts",
    edits: [
      {
        file: "src/feed/decideMessage.ts",
        from: '    return "gap";\n  }\n  return block.',
        to: '    return "next";\n  }\n  return block.',
      },
    ],
  },
  /** A block can have any hash. */
  uncheckedHash: {
    promise: "wrongResponses",
    variant: "",
    test: "test/verification/checkBody.test.ts",
    edits: [
      {
        file: "src/verification/checkHeader.ts",
        from: "if (isSame(hash, hashHeader(header))) {",
        to: "if (hash.length > 0) {",
      },
    ],
  },
  /** No root covers the receipts of a block. */
  uncheckedReceipts: {
    promise: "wrongResponses",
    variant: "",
    test: "test/verification/checkBody.test.ts",
    edits: [
      {
        file: "src/verification/checkReceipts.ts",
        from: "if (isSame(header.receiptsRoot, orderedTrieRoot(encoded))) {",
        to: "if (encoded.length >= 0) {",
      },
    ],
  },
  /** Restored values answer before a check. */
  uncheckedRows: {
    promise: "dataFolder",
    variant: "",
    test: "test/service/stateRows.test.ts",
    testName: "known state survives a restart, and blocks",
    edits: [
      {
        file: "src/state/rows/stateRows.ts",
        from: "values.isChecked = false;",
        to: "values.isChecked = true;",
      },
    ],
  },
};

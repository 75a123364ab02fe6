import { brotliCompressSync } from "node:zlib";
import { decodeFrame } from "../../../src/feed/feedConnection.ts";
import { parseFlashblock } from "../../../src/feed/parseFlashblock.ts";
import { addHead, addMessage } from "../../../src/feed/sequence.ts";
import { emptySequence, type SequenceState } from "../../../src/feed/sequenceState.ts";
import { createFeedServer } from "../../devnet/feedServer.ts";
import type { Flashblock } from "../../devnet/flashblock.ts";
import { rpc } from "../../support/clients/rpc.ts";
import { compareWithNode, startFuzzService } from "../engine/fuzzService.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

const MAX_BYTES = 1024 * 1024;
const LIMITS = { maxDepth: 5 };
const MESSAGES = 24;
const LIVE_EVERY = 20;
const MINE_EVERY = 400;
const MAX_BUFFERED = 1_024;
const WORDS = ['"index":', '"base":', '"diff":', '"metadata":', '"transactions":[', '"0x', "null", '"payload_id":'];

const encode = (message: unknown, choices: Choices): Buffer => {
  const text = JSON.stringify(message) ?? "";
  switch (choices.below(4)) {
    case 0:
      return brotliCompressSync(text);
    case 1:
      return Buffer.concat([Buffer.from([0x1e]), Buffer.from(text)]);
    default:
      return Buffer.from(text);
  }
};

const frameOf = (message: Flashblock | undefined, choices: Choices): Buffer => {
  let value: unknown = message;
  for (let count = choices.below(4); count > 0; count--) {
    value = mutateJson(value, choices);
  }
  const frame = encode(value, choices);
  return choices.chance(0.3) ? mutateBytes(frame, choices, WORDS) : frame;
};

/** Frames of a feed: in the pure functions, and now and then sent to a service. */
export const createTarget: CreateTarget = async (t) => {
  const feed = await createFeedServer("text");
  t.after(() => feed.close());
  const fuzzed = await startFuzzService(t, { chain: { pending: { feeds: [feed.url] } } });
  const { chain, service } = fuzzed;
  const messages: Flashblock[] = [];
  chain.feed.on("message", (message: Flashblock) => {
    messages.push(message);
    messages.splice(0, messages.length - MESSAGES);
    feed.send(message);
  });
  await chain.step(2);
  let state: SequenceState = emptySequence;

  const receiveFrame = (frame: Buffer): void => {
    const decoded = decodeFrame(frame, MAX_BYTES);
    const parsed = "text" in decoded ? parseFlashblock(decoded.text) : decoded;
    if (!("message" in parsed)) {
      return;
    }
    const head = { number: BigInt(chain.head.number), hash: chain.head.hash };
    ({ state } = addMessage(state, parsed.message, head, LIMITS));
    state = addHead(state, head, LIMITS);
    if (state.blocks.length > LIMITS.maxDepth || state.buffered.length > MAX_BUFFERED) {
      throw new Finding("the sequence exceeds its limits", frame.toString("latin1"));
    }
  };

  return {
    run: async (choices, index) => {
      const frame = frameOf(choices.pick<Flashblock>(messages), choices);
      receiveFrame(frame);
      if (index % MINE_EVERY === 0) {
        await chain.step(choices.below(3));
        if (choices.chance(0.3)) {
          await chain.seal();
        }
      }
      if (index % LIVE_EVERY !== 0) {
        return;
      }
      const input = frame.toString("latin1");
      feed.faults.inject(frame);
      const { body, text } = await rpc(service.url, "eth_getBlockByNumber", ["pending", false]);
      if (body.error !== undefined || body.result === null) {
        throw new Finding(`pending: ${text.slice(0, 200)}`, input);
      }
      await compareWithNode(fuzzed, { method: "eth_getBlockByNumber", params: ["0x5", true] }, input);
    },
  };
};

import { connectionHint } from "../core/connectionFault.ts";
import { connectFeed } from "../feed/feedConnection.ts";
import { decodeFrame } from "../feed/frame.ts";
import { parseMessage } from "../feed/parseMessage.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, withHint } from "./checkResult.ts";

/** Connects to a feed and waits for its first message. Never rejects. */
export const checkFeed = (subject: string, url: string, maxMessageBytes: number): Promise<CheckResult> => {
  const startMs = performance.now();
  const { host } = new URL(url);
  const ended = Promise.withResolvers<CheckResult>();
  let isOpen = false;
  const end = (level: CheckResult["level"], text: string): void => ended.resolve({ subject, level, text });
  const disconnect = connectFeed({
    url,
    maxFrameBytes: maxMessageBytes,
    pingMs: CHECK_TIMEOUT_MS,
    pongDeadlineMs: CHECK_TIMEOUT_MS,
    idleMs: () => CHECK_TIMEOUT_MS,
    onOpen: () => {
      isOpen = true;
    },
    onFrame: (bytes) => {
      const frame = decodeFrame(bytes, maxMessageBytes);
      const parsed = "text" in frame ? parseMessage(frame.text) : { fault: frame.refused };
      if (!("message" in parsed)) {
        return false;
      }
      const duration = Math.round(performance.now() - startMs);
      end("ok", `first message after ${duration} ms`);
      return true;
    },
    onEnd: (reason, fault) => {
      end("fault", withHint(`${host}: ${fault ?? `the connection ended: ${reason}`}`, connectionHint(fault ?? "")));
    },
  });
  const timer = setTimeout(() => {
    const problem = isOpen ? "connected, but no valid message" : "no response";
    end(isOpen ? "warn" : "fault", `${host}: ${problem} within ${CHECK_TIMEOUT_MS} ms`);
  }, CHECK_TIMEOUT_MS);
  return ended.promise.finally(() => {
    clearTimeout(timer);
    disconnect();
  });
};

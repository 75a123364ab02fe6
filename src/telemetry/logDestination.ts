import process from "node:process";
import { type DestinationStream, pino } from "pino";

/** Bytes of lines that stdout has not taken yet: a full disk, or a reader that has stopped. Further lines are dropped. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** A retry follows 100 ms after the last. */
const MAX_RETRIES_AT_EXIT = 10;

/**
 * Creates the destination of the log: stdout, written in the background. A line never waits, and no error of stdout ends the
 * process. `onDrop` is called with each line that is lost.
 */
export const createLogDestination = (onDrop: () => void): DestinationStream => {
  let isFailing = false;
  let isEnding = false;
  let retries = 0;
  const destination = pino.destination({
    fd: process.stdout.fd,
    sync: false,
    maxLength: MAX_UNSENT_BYTES,
    retryEAGAIN: () => !isEnding || retries++ < MAX_RETRIES_AT_EXIT,
  });
  destination.on("drop", onDrop);
  // The lines stay in the buffer, and the next line tries again.
  destination.on("error", () => {
    isFailing = true;
  });
  destination.on("write", () => {
    isFailing = false;
  });
  const flushSync = destination.flushSync.bind(destination);
  // Called at the end of the process. On a full disk it would retry for ever.
  destination.flushSync = () => {
    isEnding = true;
    if (isFailing) {
      return;
    }
    try {
      flushSync();
    } catch (error) {
      process.stderr.write(`forebay: the last log lines were not written: ${String(error)}\n`);
    }
  };
  return destination;
};

import { followSubscription } from "../nodes/nodeSubscription.ts";
import { parseSealedBlock, type SealedBlock } from "../nodes/sealedBlock.ts";

export interface NewHeadsOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onHeader: (header: SealedBlock) => void;
  /** Called once for each change. */
  readonly onState: (connected: boolean) => void;
  /** Called once for each series of failed connections, with the error of the first. */
  readonly onUnreachable: (fault: string) => void;
}

/** Subscribes to a node's `newHeads`, and subscribes again after each disconnect, until the signal is aborted. */
export const followNewHeads = ({ onHeader, onState, onUnreachable, ...options }: NewHeadsOptions): void => {
  let connected = false;
  let isUnreachable = false;
  const setConnected = (state: boolean): void => {
    if (state !== connected) {
      connected = state;
      onState(state);
    }
  };
  const subscription = followSubscription({
    ...options,
    params: ["newHeads"],
    onResult: (result) => {
      const header = parseSealedBlock(result);
      if (header) {
        subscription.resetBackoff();
        isUnreachable = false;
        setConnected(true);
        onHeader(header);
      }
    },
    onClosed: (fault) => {
      setConnected(false);
      if (fault !== undefined && !isUnreachable) {
        isUnreachable = true;
        onUnreachable(fault);
      }
    },
  });
};

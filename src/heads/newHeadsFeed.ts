import { followSubscription } from "../nodes/nodeSubscription.ts";
import { parseSealedBlock, type SealedBlock } from "../nodes/sealedBlock.ts";

export interface NewHeadsOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onHeader: (header: SealedBlock) => void;
  /** Called once for each change. */
  readonly onState: (connected: boolean) => void;
}

/** Subscribes to a node's `newHeads`, and subscribes again after each disconnect, until the signal is aborted. */
export const followNewHeads = ({ onHeader, onState, ...options }: NewHeadsOptions): void => {
  let connected = false;
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
        setConnected(true);
        onHeader(header);
      }
    },
    onClosed: () => setConnected(false),
  });
};

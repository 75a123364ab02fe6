import { followSubscription } from "../nodes/nodeSubscription.ts";
import { parseSealedBlock, type SealedBlock } from "../nodes/sealedBlock.ts";

export interface NewHeadsOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onHeader: (header: SealedBlock) => void;
  /** Said once per change. */
  readonly withState: (connected: boolean) => void;
}

/** A node's `newHeads` subscription, made again whenever it is lost, until the signal is aborted. */
export const followNewHeads = ({ onHeader, withState, ...options }: NewHeadsOptions): void => {
  let connected = false;
  const tell = (state: boolean): void => {
    if (state !== connected) {
      connected = state;
      withState(state);
    }
  };
  const subscription = followSubscription({
    ...options,
    params: ["newHeads"],
    onResult: (result) => {
      const header = parseSealedBlock(result);
      if (header) {
        subscription.restored();
        tell(true);
        onHeader(header);
      }
    },
    onClosed: () => tell(false),
  });
};

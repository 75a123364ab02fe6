import type { WebSocket } from "ws";

/** Sends a message in frames of one byte each. */
export const sendInFrames = (socket: WebSocket, text: string): void => {
  for (let at = 0; at < text.length; at++) {
    socket.send(text.slice(at, at + 1), { fin: at === text.length - 1 });
  }
};

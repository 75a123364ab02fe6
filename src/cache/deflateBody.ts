import { constants, crc32, deflateRaw } from "node:zlib";
import type { Deflated } from "../jsonrpc/call.ts";

/** Compresses a body off the event loop. The final flush ends the open stream at a byte boundary (see Deflated). */
export const deflateBody = (body: Uint8Array): Promise<Deflated> =>
  new Promise((resolve, reject) => {
    deflateRaw(body, { finishFlush: constants.Z_SYNC_FLUSH }, (err, bytes) => {
      if (err === null) {
        resolve({ bytes: new Uint8Array(bytes), crc32: crc32(body), length: body.byteLength });
      } else {
        reject(err);
      }
    });
  });

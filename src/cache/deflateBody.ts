import { constants, crc32, deflateRaw } from "node:zlib";
import type { Deflated } from "../jsonrpc/call.ts";

/** Off the event loop. The flush at the end leaves the stream open at a byte boundary. */
export const deflateBody = (body: Uint8Array): Promise<Deflated> =>
  new Promise((resolve, reject) => {
    deflateRaw(body, { finishFlush: constants.Z_SYNC_FLUSH }, (err, bytes) => {
      if (err === null) resolve({ bytes: new Uint8Array(bytes), crc32: crc32(body), length: body.byteLength });
      else reject(err);
    });
  });

/** An event's message, serialised once: only the subscription's id differs from one receiver to the next. */
export interface Notification {
  /** The message for one subscription, as the fragments of one WebSocket message. */
  render(id: Buffer): readonly Buffer[];
}

/** All ids have this length: `0x` and 16 bytes. */
const ID_LENGTH = 34;

const HEAD = Buffer.from('{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"');
const BEFORE_RESULT = Buffer.from('","result":');
const END = Buffer.from("}}");
const EMPTY_ID = Buffer.alloc(ID_LENGTH);

/** A body as large as this is sent as a fragment that all receivers share; a smaller one costs less to copy. */
const SHARED_ABOVE_BYTES = 16 * 1024;

const withId = (template: Buffer, id: Buffer): Buffer => {
  const copy = Buffer.allocUnsafe(template.length);
  template.copy(copy);
  id.copy(copy, HEAD.length);
  return copy;
};

/** `body` is the UTF-8 JSON text of the result. */
export const createNotification = (body: Uint8Array): Notification => {
  if (body.length > SHARED_ABOVE_BYTES) {
    const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT]);
    const shared = Buffer.concat([body, END]);
    return { render: (id) => [withId(template, id), shared] };
  }
  const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT, body, END]);
  return { render: (id) => [withId(template, id)] };
};

/** Sends messages in the order in which they were posted, also if some of them are ready later. */
export class OrderedPosts<Message> {
  readonly #send: (message: Message) => void;
  #last: Promise<void> | undefined;

  constructor(send: (message: Message) => void) {
    this.#send = send;
  }

  /** A promise must not reject. */
  post(message: Message | Promise<Message>): void {
    if (this.#last === undefined && !(message instanceof Promise)) {
      this.#send(message);
      return;
    }
    const sent = this.#sendAfter(this.#last, message).finally(() => {
      if (this.#last === sent) {
        this.#last = undefined;
      }
    });
    this.#last = sent;
  }

  async #sendAfter(before: Promise<void> | undefined, message: Message | Promise<Message>): Promise<void> {
    await before;
    this.#send(await message);
  }
}

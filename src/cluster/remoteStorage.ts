import type { EntryStorage } from "../storage/dataStorage.ts";
import type { EntryChange } from "../storage/entryDatabase.ts";
import type { MainChannel } from "./chainCopy.ts";

/** While the main process cannot use the folder, it is asked again after this time. */
const PAUSE_MS = 1_000;

/** The data folder of the main process. */
export class RemoteStorage implements EntryStorage {
  readonly #main: MainChannel;
  #pausedUntilMs = 0;

  constructor(main: MainChannel) {
    this.#main = main;
  }

  isOpen(): boolean {
    return performance.now() >= this.#pausedUntilMs;
  }

  async read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const values = await this.#main.call("readEntries", keys).catch(() => undefined);
    if (values === undefined) {
      this.#pausedUntilMs = performance.now() + PAUSE_MS;
    }
    return values ?? [];
  }

  async write(changes: readonly EntryChange[]): Promise<void> {
    await this.#main.call("writeEntries", changes).catch(() => undefined);
  }
}

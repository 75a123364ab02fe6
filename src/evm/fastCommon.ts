import { Common } from "@ethereumjs/common";

/** The library's rules with lookups in a Set and a Map. The library itself searches arrays at each opcode. */
export class FastCommon extends Common {
  #eips = new Set<number>();
  /** The library's array from which `#eips` was created. */
  #eipsSource: readonly number[] | undefined;
  #params = new Map<string, bigint>();
  /** The library's object from which `#params` is filled. */
  #paramsSource: object | undefined;

  override isActivatedEIP(eip: number): boolean {
    if (this.#eipsSource !== this._activatedEIPsCache) {
      this.#eipsSource = this._activatedEIPsCache;
      this.#eips = new Set(this._activatedEIPsCache);
    }
    return this.#eips.has(eip);
  }

  override param(name: string): bigint {
    if (this.#paramsSource !== this._paramsCache) {
      this.#paramsSource = this._paramsCache;
      this.#params = new Map();
    }
    const cached = this.#params.get(name);
    if (cached !== undefined) {
      return cached;
    }
    const value = super.param(name);
    this.#params.set(name, value);
    return value;
  }
}

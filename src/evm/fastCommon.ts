import { Common } from "@ethereumjs/common";

/** The library's rules with look-ups by Set and Map: it searches arrays at each opcode. */
export class FastCommon extends Common {
  #eips = new Set<number>();
  #eipsOf: readonly number[] | undefined;
  #params = new Map<string, bigint>();
  #paramsOf: object | undefined;

  override isActivatedEIP(eip: number): boolean {
    if (this.#eipsOf !== this._activatedEIPsCache) {
      this.#eipsOf = this._activatedEIPsCache;
      this.#eips = new Set(this._activatedEIPsCache);
    }
    return this.#eips.has(eip);
  }

  override param(name: string): bigint {
    if (this.#paramsOf !== this._paramsCache) {
      this.#paramsOf = this._paramsCache;
      this.#params = new Map();
    }
    const known = this.#params.get(name);
    if (known !== undefined) return known;
    const value = super.param(name);
    this.#params.set(name, value);
    return value;
  }
}

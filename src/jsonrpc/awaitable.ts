/** A value that is known now, or later. A function that returns it awaits nothing if nothing has to be awaited. */
export type Awaitable<T> = T | Promise<T>;

/** Applies a function to a value: at once if the value is known, else when it is. */
export const whenKnown = <T, U>(value: Awaitable<T>, apply: (value: T) => U): Awaitable<U> =>
  value instanceof Promise ? value.then(apply) : apply(value);

// Velocities of what is plotted live: differences between one state and the next.

export class Rates {
  private readonly last = new Map<string, { value: number; time: number; rate: number | undefined }>();

  /** The rate of a value since the state before; undefined at first.  A state at the same time changes nothing. */
  of(key: string, value: number | undefined, time: number): number | undefined {
    if (value === undefined) return undefined;
    const before = this.last.get(key);
    if (before && before.time === time) return before.rate;
    const isNext = before !== undefined && time > before.time && time - before.time < 1;
    const rate = isNext ? (value - before.value) / (time - before.time) : undefined;
    this.last.set(key, { value, time, rate });
    return rate;
  }
}

// Kernels of Cardan in WebAssembly: one memory, one table of functions, a module for each kernel.

const FIRST = 4096; // number of the first kernel in the table: smaller numbers are codes of primitives
const STACK = 65536; // bytes, at the start of memory
const PAGE = 65536;

/** x y + z with one rounding, but for rare ties: products and sums with their errors [Dekker1971]. */
export function fma(x: number, y: number, z: number): number {
  const product = x * y;
  if (!Number.isFinite(product) || !Number.isFinite(z)) return product + z;
  const [a, b] = split(x);
  const [c, d] = split(y);
  const error = b * d - (product - a * c - b * c - a * d);
  const sum = product + z;
  const part = sum - product;
  return sum + (product - (sum - part) + (z - part) + error);
}

function split(x: number): [number, number] {
  const scaled = 134217729 * x; // 2^27 + 1
  const high = scaled - (scaled - x);
  return [high, x - high];
}

const { sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, exp, expm1, log, log1p, log2, log10, pow, hypot } =
  Math;
const fmod = (x: number, y: number) => x % y;
const named = { sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, exp, expm1, log, log1p, log2, log10, pow };
const MATHS = { ...named, hypot, fma, fmod, cbrt: Math.cbrt, exp2: (x: number) => 2 ** x };

type Run = (op: bigint, ...places: number[]) => bigint;

export class Kernels {
  readonly memory: WebAssembly.Memory;
  private readonly functions: WebAssembly.Table;
  private readonly numbers = new Map<string, number>();
  private readonly runs = new Map<string, Run>();
  private end = STACK;

  /** bytes: of the memory besides the stack; count: of kernels. */
  private constructor(bytes: number, count: number) {
    this.memory = new WebAssembly.Memory({ initial: Math.ceil((STACK + bytes) / PAGE) + 1 });
    this.functions = new WebAssembly.Table({ element: 'anyfunc', initial: FIRST + count });
  }

  /** modules: by the keys of their kernels. */
  static async load(modules: Record<string, Uint8Array>, bytes: number): Promise<Kernels> {
    const entries = Object.entries(modules);
    const made = new Kernels(bytes, entries.length);
    const env = {
      __linear_memory: made.memory,
      __indirect_function_table: made.functions,
      __stack_pointer: new WebAssembly.Global({ value: 'i32', mutable: true }, STACK),
      ...MATHS,
    };
    for (const [key, data] of entries) {
      const { instance } = await WebAssembly.instantiate(data as BufferSource, { env });
      const run = instance.exports.run as unknown as Run;
      const number = FIRST + made.numbers.size;
      made.functions.set(number, run);
      made.numbers.set(key, number);
      made.runs.set(key, run);
    }
    return made;
  }

  /** Room for tables: where they begin in memory. */
  take(bytes: number): number {
    const at = this.end;
    this.end += 16 * Math.ceil(bytes / 16);
    return at;
  }

  /** What is written in place of the address of a kernel. */
  number(key: string): number {
    const found = this.numbers.get(key);
    if (found === undefined) throw new Error(`the file has no kernel ${key}`);
    return found;
  }

  run(key: string): Run {
    this.number(key);
    return this.runs.get(key)!;
  }
}

/** Readers of untrusted JSON: each returns the type it promises or throws a `Damaged` that says where. */

export class Damaged extends Error {}

export type Fields = Record<string, unknown>;

export function fields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Damaged(`${what} is not an object`);
  }
  return value as Fields;
}

/** A text; what is absent is empty. */
export function text(from: Fields, key: string): string {
  const value = from[key];
  if (value === undefined || value === null) {
    return '';
  }
  if (typeof value === 'string') {
    return value;
  }
  if (typeof value === 'number') {
    return String(value);
  }
  throw new Damaged(`${key} is not a text`);
}

export function number(from: Fields, key: string): number {
  const value = from[key];
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new Damaged(`${key} is not a number`);
  }
  return value;
}

export function flag(from: Fields, key: string): boolean {
  return from[key] === true;
}

/** A list of things that `read` understands; what is absent is empty. */
export function list<T>(from: Fields, key: string, read: (item: Fields) => T): T[] {
  return array(from, key).map((item, index) => read(fields(item, `${key}[${index}]`)));
}

/** Texts: a list, or one text with a line each. */
export function texts(from: Fields, key: string): string[] {
  const packed = from[key];
  if (typeof packed === 'string') {
    return packed.split('\n');
  }
  return array(from, key).map((item, index) => {
    if (typeof item !== 'string') {
      throw new Damaged(`${key}[${index}] is not a text`);
    }
    return item;
  });
}

/** Numbers: a list, or one text with blanks between them. */
export function numbers(from: Fields, key: string): number[] {
  const packed = from[key];
  const values: unknown[] =
    typeof packed === 'string' ? packed.split(' ').map(word => (word ? Number(word) : NaN)) : array(from, key);
  return values.map((item, index) => {
    if (typeof item !== 'number' || !Number.isFinite(item)) {
      throw new Damaged(`${key}[${index}] is not a number`);
    }
    return item;
  });
}

function array(from: Fields, key: string): unknown[] {
  const value = from[key];
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw new Damaged(`${key} is not a list`);
  }
  return value;
}

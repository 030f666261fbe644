import assert from 'node:assert/strict';
import { test } from 'node:test';
import { widened } from '../src/axis';

test('an axis contains its values, and rounding does not fill it', () => {
  for (const [low, high] of [
    [0, 1],
    [-3, 400],
    [5, 5],
    [1e-13, 3e-13],
    [1e9, 1e9 + 1e-4],
  ]) {
    const [a, b] = widened(low, high);
    assert.ok(a < low && high < b);
    assert.ok(b - a >= 0.1 * Math.min(1, high - low + 1));
  }
  assert.deepEqual(widened(null, null), [-1, 1]);
});

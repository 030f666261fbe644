import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixed, quantity, show, value, world } from '../src/coordinates';
import type { CoordinateData, Feature } from '../src/wire';

const half = Math.SQRT1_2;
const poses = Float32Array.from([1, 2, 3, half, 0, 0, half]); // a quarter turn about z
const of = (body: number, point: boolean, ...v: [number, number, number]): Feature => ({ body, point, value: v });
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`);

test('a direction turns with its part, a point is also displaced', () => {
  world(of(0, false, 1, 0, 0), poses).forEach((x, k) => {
    near(x, [0, 1, 0][k]);
  });
  world(of(0, true, 1, 0, 0), poses).forEach((x, k) => {
    near(x, [1, 3, 3][k]);
  });
  assert.deepEqual(world(of(-1, true, 4, 5, 6), poses), [4, 5, 6]);
});

test('coordinates of every kind', () => {
  const make = (kind: string, features: Feature[]): CoordinateData => ({
    joint: 'A',
    name: kind,
    kind,
    unit: '',
    features,
  });
  const x = of(-1, false, 1, 0, 0);
  const y = of(-1, false, 0, 1, 0);
  const angle = make('angle', [x, y, of(0, false, 1, 0, 0)]);
  near(value(angle, poses), Math.PI / 2);
  near(value(angle, poses, 7), Math.PI / 2 + 2 * Math.PI);
  near(value(angle, poses, -5), Math.PI / 2 - 2 * Math.PI);
  const points = [of(-1, true, 0, 0, 0), of(0, true, 0, 0, 0)];
  near(value(make('displacement', [y, ...points]), poses), 2);
  near(value(make('distance', points), poses), Math.sqrt(14));
  near(value(make('inclination', [x, of(0, false, 0, 0, 1)]), poses), Math.PI / 2);
});

test('numbers for people', () => {
  assert.equal(show(Math.PI / 6, 'rad'), '30.0°');
  assert.equal(show(0.0123, 'm'), '12.3 mm');
  assert.equal(show(Number.NaN, 'm'), '–');
  assert.equal(quantity(12.345), '12.3');
  assert.equal(quantity(0), '0');
  assert.equal(quantity(1234567), '1.2e+6');
});

test('rounding is not shown as minus zero', () => {
  assert.equal(fixed(-1e-16), '0.00');
  assert.equal(fixed(-0.01), '-0.01');
  assert.equal(show(-1e-9, 'rad'), '0.0°');
  assert.equal(show(-1e-9, 'm'), '0.0 mm');
  assert.equal(show(-1e-3, 'm'), '-1.0 mm');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blend, interval, Player } from '../src/player';
import type { ClipData } from '../src/wire';

const clip = (loop: boolean): ClipData => ({
  kind: 'motion',
  bodies: 1,
  times: [0, 1, 3],
  loop,
  text: '',
  ok: true,
  poses: [0, 1, 5].map((x) => Float32Array.from([x, 0, 0, 1, 0, 0, 0])),
  series: [],
  reactions: new Map(),
  contacts: [],
});

test('the interval of a time', () => {
  assert.deepEqual(
    [-1, 0, 0.5, 1, 2.9, 3, 9].map((t) => interval([0, 1, 3], t)),
    [0, 0, 0, 1, 1, 1, 1],
  );
});

test('a rotation goes the shorter way and stays a rotation', () => {
  const out = new Float32Array(7);
  blend(Float32Array.from([0, 0, 0, 1, 0, 0, 0]), Float32Array.from([2, 0, 0, -0.6, 0, 0, -0.8]), 0.5, out);
  assert.equal(out[0], 1);
  assert.ok(out[3] > 0.89 && out[6] > 0.44);
  assert.ok(Math.abs(Math.hypot(...out.slice(3)) - 1) < 1e-6);
});

test('it plays at its speed, stops at the end, and a loop goes on', () => {
  const player = new Player(clip(false));
  player.speed = 2;
  assert.ok(player.advance(1));
  assert.equal(player.time, 2);
  assert.equal(player.poses[0], 3);
  assert.ok(!player.advance(5));
  assert.equal(player.time, 3);
  assert.ok(!player.playing);
  const round = new Player(clip(true));
  assert.ok(round.advance(3.5));
  assert.ok(Math.abs(round.time - 0.5) < 1e-12);
});

test('steps go from one recorded pose to the next', () => {
  const player = new Player(clip(false));
  player.step(1);
  assert.equal(player.time, 1);
  player.step(1);
  player.step(1);
  assert.equal(player.time, 3);
  player.step(-1);
  assert.equal(player.poses[0], 1);
});

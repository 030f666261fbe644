import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFrame, unshuffle } from '../src/wire';

test('a frame is read, and one of a wrong length is refused', () => {
  const data = new ArrayBuffer(56 + 28);
  const view = new DataView(data);
  view.setUint32(0, 2, true);
  view.setUint32(4, 17, true);
  view.setUint32(12, 1, true);
  view.setFloat32(28, 3.5, true);
  view.setFloat32(56, 0.25, true);
  const frame = readFrame(data);
  assert.equal(frame.ack, 17);
  assert.equal(frame.force[0], 3.5);
  assert.equal(frame.poses[0], 0.25);
  assert.throws(() => readFrame(data.slice(0, 80)));
});

test('byte planes of differences become rows again', () => {
  const rows = [Float32Array.from([1, 1.5, -2]), Float32Array.from([0, 3, 1e-20])];
  const changes = rows.flatMap((row) => {
    const bits = new Uint32Array(row.buffer);
    return Array.from(bits, (b, k) => (k ? (b - bits[k - 1]) >>> 0 : b));
  });
  const bytes = new Uint8Array([0, 8, 16, 24].flatMap((shift) => changes.map((c) => (c >>> shift) & 255)));
  const found = unshuffle(bytes, 3);
  assert.deepEqual(found, rows);
});

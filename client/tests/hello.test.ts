import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REVISION } from 'three';

test('three.js has a revision', () => {
  assert.match(REVISION, /^\d+$/);
});

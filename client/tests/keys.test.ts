import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyActions, press } from '../src/keys';

function recorded(): { done: string[]; actions: KeyActions } {
  const done: string[] = [];
  const note =
    (name: string) =>
    (...given: unknown[]) => {
      done.push([name, ...given].join(' '));
    };
  const names = ['cancel', 'undo', 'play', 'arrow', 'zoom', 'click', 'ofPart'];
  return { done, actions: Object.fromEntries(names.map((name) => [name, note(name)])) as unknown as KeyActions };
}
const key = (k: string, ctrlKey = false, shiftKey = false) => ({
  key: k,
  ctrlKey,
  metaKey: false,
  altKey: false,
  shiftKey,
});

test('keys do what the help says', () => {
  const { done, actions } = recorded();
  for (const k of ['f', 'J', 'h', 'x', ' ', 'ArrowUp', 'Escape', '?', 'q']) press(key(k), false, false, actions);
  press(key('z', true), false, false, actions);
  assert.deepEqual(done, [
    'click fit',
    'click toggle-joints',
    'ofPart hide',
    'ofPart trace',
    'play',
    'arrow 0 1',
    'cancel',
    'click help',
    'undo',
  ]);
});

test('typing in a field, keys of the browser and space on a button are left alone', () => {
  const { done, actions } = recorded();
  assert.equal(press(key('f'), true, false, actions), false);
  assert.equal(press(key('f', true), false, false, actions), false);
  assert.equal(press(key('Z', true, true), false, false, actions), false); // redo elsewhere: it must not undo
  assert.equal(press(key(' '), false, true, actions), false);
  assert.deepEqual(done, []);
  assert.equal(press(key('ArrowLeft'), false, false, actions), true);
});

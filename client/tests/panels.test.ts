import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as THREE from 'three';
import { type DeskData, kindsFor, pickedNext } from '../src/desk';
import { colored, cornersOf, faceOf } from '../src/faces';
import { dofText } from '../src/freedoms';
import { apart } from '../src/joints';
import { available, firstLine, labelled, scaleOf } from '../src/line';
import { farthest } from '../src/parts';
import { Player } from '../src/player';
import { Rates } from '../src/rates';
import { residualText } from '../src/status';
import { Values } from '../src/values';
import type { ClipData, CoordinateData, JointData, Model, SceneData } from '../src/wire';
import { plural, shownIn, title } from '../src/words';

const angle = (joint: string, name = 'angle'): CoordinateData => ({
  joint,
  name,
  kind: 'angle',
  unit: 'rad',
  features: [
    { body: -1, point: false, value: [1, 0, 0] },
    { body: -1, point: false, value: [0, 1, 0] },
    { body: 0, point: false, value: [1, 0, 0] },
  ],
});
const turned = (by: number) => Float32Array.from([0, 0, 0, Math.cos(by / 2), 0, 0, Math.sin(by / 2)]);
const model = (coordinates: CoordinateData[], driven: string[]): Model => ({
  item: 'own',
  title: 'own',
  coordinates,
  drivers: driven.map((of) => ({
    name: `drive ${of}`,
    of,
    unit: 'rad',
    value: 0,
    lower: -1,
    upper: 1,
    coordinate: angle(of),
  })),
  loads: [],
  duration: 1,
  ok: true,
});

test('words', () => {
  assert.equal(title('slider_crank'), 'Slider crank');
  assert.equal(title('rsur'), 'RSUR');
  assert.equal(plural(1, 'degree', 'degrees'), '1 degree');
  assert.equal(plural(0, 'degree', 'degrees'), '0 degrees');
  assert.deepEqual(shownIn('m'), [1000, 'mm']);
  assert.equal(scaleOf('rad/s')[1], '°/s');
});

test('labels are moved down until they cover no other', () => {
  const first = apart([10, 10, 40, 18], []);
  const second = apart([20, 15, 40, 18], [first]);
  const third = apart([15, 12, 40, 18], [first, second]);
  assert.deepEqual(
    [first, second, third].map((box) => box[1]),
    [10, 28, 46],
  );
  assert.deepEqual(apart([60, 12, 40, 18], [first]), [60, 12, 40, 18]);
});

test('a line is labelled with the unit that people read', () => {
  assert.equal(labelled({ key: 'A|rate', label: 'A velocity', unit: 'rad/s' }), 'A velocity [°/s]');
  assert.equal(labelled({ key: 'x|distance', label: 'x distance', unit: 'm' }), 'x distance [mm]');
});

const played = (values: number[], what = 'angle', of = 'A') => {
  const series = [{ of, what, unit: 'rad', values: Float32Array.from(values) }];
  const clip = {
    kind: 'motion',
    bodies: 1,
    loop: false,
    text: '',
    ok: true,
    series,
    reactions: new Map(),
    contacts: [],
  };
  return new Player({ ...clip, times: values.map((_, k) => k), poses: values.map(turned) });
};

test('values count whole turns from state to state, until the server says them', () => {
  const values = new Values();
  values.set([angle('A')]);
  for (const by of [3, 5, 7]) values.update(turned(by), null);
  assert.ok(Math.abs(values.all[0] - 7) < 1e-5);
  assert.equal(values.text('A'), '401.1°');
  values.take([7 - 2 * Math.PI]); // undo: the list says what the driver says
  values.update(turned(7), null);
  assert.ok(Math.abs(values.all[0] - (7 - 2 * Math.PI)) < 1e-5);
});

test('values in a motion have the turns that it has recorded, wherever it is scrubbed to', () => {
  for (const name of ['angle', 'second']) {
    const values = new Values();
    values.set([angle('A', name), angle('A', 'first')]);
    const player = played([0.5, 13], 'angle', name === 'angle' ? 'A' : 'A.second');
    for (const time of [0, 1, 0, 1]) {
      player.seek(time);
      values.update(player.poses, player);
      assert.ok(Math.abs(values.all[0] - [0.5, 13][time]) < 1e-5);
    }
  }
});

test('a joint with several coordinates names each', () => {
  const values = new Values();
  const list = [angle('U', 'first'), angle('U', 'second')];
  values.set(list);
  assert.deepEqual(
    list.map((c) => values.nameOf(c)),
    ['U.first', 'U.second'],
  );
});

test('lines: a clip offers its series, a drag coordinates, velocities, force and energy', () => {
  const values = new Values();
  const own = model([angle('A'), angle('B')], ['A']);
  values.set(own.coordinates);
  const live = available(own, null, values, true).map((line) => line.key);
  assert.deepEqual(live, ['A|angle', 'A|rate', 'B|angle', 'B|rate', 'hand|force', 'energy|total']);
  const clip = {
    series: [{ of: 'A', what: 'rate', unit: 'rad/s', values: new Float32Array(1) }],
  } as unknown as ClipData;
  assert.deepEqual(
    available(own, clip, values, true).map((line) => line.label),
    ['A velocity'],
  );
  // the first line is not what the driver prescribes
  assert.equal(firstLine(available(own, null, values, true), own)?.key, 'B|angle');
});

test('rates are differences; a state at the same time, or after a pause, has none of its own', () => {
  const rates = new Rates();
  assert.equal(rates.of('a', 1, 0), undefined);
  assert.equal(rates.of('a', 3, 0.5), 4);
  assert.equal(rates.of('a', 9, 0.5), 4);
  assert.equal(rates.of('b', undefined, 0.5), undefined);
  assert.equal(rates.of('a', 5, 9), undefined);
});

test('the farthest joint of a part', () => {
  const place = (x: number): JointData['frame_a'] => ({ origin: [x, 0, 0], quaternion: [1, 0, 0, 0] });
  const joint = (bodies: string[], a: number, b: number): JointData => ({
    name: '',
    kind: '',
    bodies,
    frame_a: place(a),
    frame_b: place(b),
    coordinates: {},
  });
  const scene = { joints: [joint(['ground', 'bar'], 9, 1), joint(['bar', 'rod'], -3, 7)] } as SceneData;
  assert.deepEqual(farthest(scene, 'bar'), [-3, 0, 0]);
  assert.deepEqual(farthest(scene, 'rod'), [7, 0, 0]);
  assert.deepEqual(farthest(scene, 'none'), [0, 0, 0]);
});

test('triangles belong to faces in runs', () => {
  const runs: [number, number][] = [
    [0, 2],
    [3, 1],
    [0, 1],
  ];
  assert.deepEqual(
    [-1, 0, 1, 2, 3, 4].map((k) => faceOf(runs, k)),
    [-1, 0, 0, 3, 0, -1],
  );
  const index = Array.from({ length: 12 }, (_, k) => 10 * k);
  assert.deepEqual(cornersOf(runs, 0, index), [0, 10, 20, 30, 40, 50, 90, 100, 110]);
  assert.deepEqual(cornersOf(runs, 1, index), []);
});

test('a coloured face is over its own part and behind what is in front of it', () => {
  const geometry = new THREE.BufferGeometry();
  for (const name of ['position', 'normal']) geometry.setAttribute(name, new THREE.Float32BufferAttribute(9, 3));
  geometry.setIndex([0, 1, 2]);
  const materials = colored(geometry, [[4, 1]], 4, 0xff0000).children.map(
    (mesh) => (mesh as THREE.Mesh).material as THREE.MeshBasicMaterial,
  );
  assert.ok(materials.every((one) => one.depthTest && !one.depthWrite));
  const [seen, hidden] = materials;
  assert.equal(seen.depthFunc, THREE.LessEqualDepth);
  assert.equal(hidden.depthFunc, THREE.GreaterDepth);
  assert.ok(hidden.opacity < 0.2 && seen.opacity > 0.7);
});

test('freedoms are counted in an assembled pose only, and rounding is no residual', () => {
  const found = { dof: 21, undriven: 21, redundant: 0, assembled: false, motions: null };
  assert.equal(dofText(found), 'not assembled');
  assert.equal(dofText({ ...found, assembled: true }), '21 degrees of freedom');
  assert.equal(residualText(Math.fround(6.1e-42)), '0');
  assert.equal(residualText(0), '0');
  assert.equal(residualText(Math.fround(2.5e-13)), '2.5e-13');
  assert.equal(residualText(Number.NaN), '–');
});

test('two faces of two parts make a joint; a third pick begins anew', () => {
  const [a, b, c] = [0, 1, 2].map((part) => ({ part, face: 0 }));
  assert.deepEqual(pickedNext([], a), [a]);
  assert.deepEqual(pickedNext([a], { part: 0, face: 5 }), [{ part: 0, face: 5 }]);
  assert.deepEqual(pickedNext([a], b), [a, b]);
  assert.deepEqual(pickedNext([a, b], c), [c]);
  const part = (kind: string) => ({ part: 1, name: kind, runs: [], faces: [{ kind, text: kind }] });
  const data: DeskData = {
    parts: [part('plane'), part('cylinder'), part('torus')],
    proposals: [],
    kinds: { 'cylinder plane': ['fixed'] },
    text: '',
    ok: true,
  };
  assert.deepEqual(kindsFor(data, [b, a]), ['fixed']);
  assert.deepEqual(kindsFor(data, [a]), []);
  assert.deepEqual(kindsFor(data, [a, c]), []);
});

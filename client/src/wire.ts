// Messages of the server, as cardan/view/protocol.py, scene.py and clip.py write them.

export const SCENE = 1;
export const FRAME = 2;
export const CLIP = 3;
export const GRASPED = 1;
export const STOPPED = 2;
export const SHORT = 4;
export const MOVING = 8;
const HEADER = 56; // bytes of a frame before its poses

export type Color = [number, number, number, number];
export type Triple = [number, number, number];

export interface MeshData {
  vertices: Float32Array;
  normals: Float32Array;
  faces: Uint32Array;
  edges: Uint32Array;
}
export interface Place {
  origin: Triple;
  quaternion: [number, number, number, number]; // w x y z
}
export interface PartData {
  name: string;
  meshes: [number, Color][];
}
export interface StrutData {
  name: string;
  bodies: [number, number];
  points: [Triple, Triple];
  mesh: number;
  color: Color;
}
export interface JointData {
  name: string;
  kind: string;
  bodies: string[];
  frame_a: Place | null;
  frame_b: Place | null;
  coordinates: Record<string, string>;
}
export interface SceneData {
  name: string;
  extent: number;
  center: Triple;
  up: Triple;
  meshes: MeshData[];
  parts: PartData[]; // the first is the ground
  struts: StrutData[];
  joints: JointData[];
  poses: Float32Array; // of all parts, the ground too
}

export interface FrameData {
  ack: number;
  flags: number;
  time: number;
  residual: number;
  milliseconds: number;
  force: Triple;
  point: Triple;
  energy: number;
  poses: Float32Array; // of the movable parts: x y z, w x y z
  contacts: Float32Array; // point, normal, 1 where it is lost, of each contact
}

export interface SeriesData {
  of: string;
  what: string;
  unit: string;
  values: Float32Array;
}
export interface ClipHeader {
  kind: string;
  number?: number;
  bodies: number;
  times: number[];
  loop: boolean;
  text: string;
  ok: boolean;
  series: { of: string; what: string; unit: string }[];
  reactions: string[];
  contacts: number; // how many there are
}
export interface ClipData extends Omit<ClipHeader, 'series' | 'reactions' | 'contacts'> {
  poses: Float32Array[]; // of each time
  series: SeriesData[];
  reactions: Map<string, Float32Array>; // x y z of each time
  contacts: Float32Array[]; // of each time, as in a frame
}

export interface Feature {
  body: number; // of the movable parts; −1 is the ground
  point: boolean;
  value: Triple;
}
export interface CoordinateData {
  joint: string;
  name: string;
  kind: string;
  unit: string;
  features: Feature[];
}
export interface Driver {
  name: string;
  of: string;
  unit: string;
  value: number;
  lower: number;
  upper: number;
  coordinate: CoordinateData;
}
export interface Model {
  item: string;
  title: string;
  drivers: Driver[];
  coordinates: CoordinateData[];
  loads: string[];
  duration: number;
  ok: boolean;
}

const text = new TextDecoder();

/** The kind of a binary message, or 0 where it is too short. */
export function kindOf(data: ArrayBuffer): number {
  return data.byteLength >= 4 ? new DataView(data).getUint32(0, true) : 0;
}

/** Scene.pack(), from a byte offset that is a multiple of four. */
export function readScene(data: ArrayBuffer, offset = 0): SceneData {
  const size = new DataView(data).getUint32(offset, true);
  const header = JSON.parse(text.decode(new Uint8Array(data, offset + 4, size)));
  const blob = offset + 4 + size;
  const floats = ([at, n]: [number, number], width: number) => new Float32Array(data, blob + at, n * width);
  const whole = ([at, n]: [number, number], width: number) => new Uint32Array(data, blob + at, n * width);
  type Packed = Record<'vertices' | 'normals' | 'faces' | 'edges', [number, number]>;
  return {
    ...header,
    meshes: header.meshes.map((m: Packed) => ({
      vertices: floats(m.vertices, 3),
      normals: floats(m.normals, 3),
      faces: whole(m.faces, 3),
      edges: whole(m.edges, 2),
    })),
    poses: floats(header.poses, 7),
  };
}

export function readFrame(data: ArrayBuffer): FrameData {
  const view = new DataView(data);
  const f = (at: number) => view.getFloat32(at, true);
  const bodies = view.getUint32(12, true);
  const rest = data.byteLength - HEADER - 28 * bodies; // contacts
  if (rest < 0 || rest % 28) throw new Error(`a frame of ${data.byteLength} bytes for ${bodies} parts`);
  return {
    ack: view.getUint32(4, true),
    flags: view.getUint32(8, true),
    time: f(16),
    residual: f(20),
    milliseconds: f(24),
    force: [f(28), f(32), f(36)],
    point: [f(40), f(44), f(48)],
    energy: f(52),
    poses: new Float32Array(data, HEADER, 7 * bodies),
    contacts: new Float32Array(data, HEADER + 28 * bodies, rest / 4),
  };
}

/** A frame, as Frame.pack() writes it.  numbers: the ten floats of its header. */
export function writeFrame(ack: number, flags: number, numbers: number[], poses: ArrayLike<number>): ArrayBuffer {
  const data = new DataView(new ArrayBuffer(HEADER + 4 * poses.length));
  [FRAME, ack, flags, poses.length / 7].forEach((value, i) => {
    data.setUint32(4 * i, value, true);
  });
  numbers.forEach((value, i) => {
    data.setFloat32(16 + 4 * i, value, true);
  });
  new Float32Array(data.buffer, HEADER).set(poses);
  return data.buffer;
}

export const fromBase64 = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** Rows of float32 from byte planes of the differences of their bit patterns; see clip.py. */
export function unshuffle(bytes: Uint8Array, columns: number): Float32Array[] {
  const count = bytes.length / 4;
  const bits = new Uint32Array(count);
  for (let k = 0; k < count; k++) {
    bits[k] = bytes[k] | (bytes[count + k] << 8) | (bytes[2 * count + k] << 16) | (bytes[3 * count + k] << 24);
  }
  for (let k = 0; k < count; k++) if (k % columns) bits[k] += bits[k - 1];
  const rows: Float32Array[] = [];
  for (let k = 0; k < count; k += columns) rows.push(new Float32Array(bits.buffer, 4 * k, columns));
  return rows;
}

export async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A clip from its header and its compressed arrays. */
export async function unpackClip(header: ClipHeader, compressed: Uint8Array): Promise<ClipData> {
  const n = header.times.length;
  const width = 7 * header.bodies;
  const rows = unshuffle(await gunzip(compressed), n);
  const poses = header.times.map((_, k) => {
    const pose = new Float32Array(width);
    for (let c = 0; c < width; c++) pose[c] = rows[c][k];
    return pose;
  });
  const series = header.series.map((s, k) => ({ ...s, values: rows[width + k] }));
  const first = width + series.length;
  const reactions = new Map<string, Float32Array>();
  header.reactions.forEach((name, j) => {
    const force = new Float32Array(3 * n);
    for (let k = 0; k < n; k++) for (let c = 0; c < 3; c++) force[3 * k + c] = rows[first + 3 * j + c][k];
    reactions.set(name, force);
  });
  const start = first + 3 * header.reactions.length;
  const wide = 7 * (header.contacts ?? 0);
  const contacts = header.times.map((_, k) => Float32Array.from({ length: wide }, (_, c) => rows[start + c][k]));
  return { ...header, poses, series, reactions, contacts };
}

export function readClip(data: ArrayBuffer): Promise<ClipData> {
  const size = new DataView(data).getUint32(4, true);
  const header = JSON.parse(text.decode(new Uint8Array(data, 8, size))) as ClipHeader;
  return unpackClip(header, new Uint8Array(data, 8 + size));
}

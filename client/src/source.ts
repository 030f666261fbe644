// Where the page gets its scene from.

import type { Socket } from './link';
import * as wire from './wire';

export interface Recording {
  scene: string; // compressed, base64
  model: wire.Model;
  clip: wire.ClipHeader & { data: string };
}

/** How the page reaches a server.  patience: what to do while nobody answers; isAddressed: by the page's address. */
export interface Connection {
  open: () => Socket;
  patience: string;
  isAddressed: boolean;
  keep?: (token: string) => void; // of the server, for the next connection
}

/** A motion in the page itself, or a connection to a server. */
export interface Source {
  recording?: Recording;
  connection?: Connection;
}

/** The scene, and the motion, of a page that carries them. */
export async function unpack(recording: Recording): Promise<{ scene: wire.SceneData; clip: wire.ClipData }> {
  const scene = wire.readScene((await wire.gunzip(wire.fromBase64(recording.scene))).buffer as ArrayBuffer);
  const clip = await wire.unpackClip(recording.clip, wire.fromBase64(recording.clip.data));
  clip.loop = true;
  return { scene, clip };
}

// The drawing: parts, struts, joints, arrows and traces in a three.js scene; the camera; picking.

import * as THREE from 'three';
import { Arrow } from './arrow';
import { Contacts } from './contacts';
import { Floor } from './floor';
import { glyph, pose } from './glyph';
import { merge } from './meshes';
import { isSoftware } from './software';
import { gradient, THEMES, type Theme } from './themes';
import { Traces } from './traces';
import { View } from './view';
import type { Color, JointData, SceneData } from './wire';

const REST = 50; // ms without drawing between two slow drawings of a drag, at most
const HOVER = 0x1c2f45;
const SELECTED = 0x1f7af0; // edges of the selected part

export interface PartView {
  name: string;
  node: THREE.Group;
  faces: THREE.Mesh[];
  edges: THREE.LineSegments[];
  material: THREE.MeshLambertMaterial | THREE.MeshStandardMaterial;
  isShared: boolean; // its material, with other parts
  color: Color;
  visible: boolean;
  ghost: boolean;
}

interface StrutView {
  node: THREE.Group;
  bodies: [number, number];
  points: [THREE.Vector3, THREE.Vector3];
}
export interface JointView {
  data: JointData;
  node: THREE.Object3D;
  part: number; // index of the part that carries the mark
}

const Z = new THREE.Vector3(0, 0, 1);

export class Stage extends View {
  readonly scene = new THREE.Scene();
  readonly renderer: THREE.WebGLRenderer;
  readonly software: boolean;
  readonly parts: PartView[] = [];
  readonly joints: JointView[] = [];
  readonly arrow: Arrow;
  readonly traces: Traces;
  readonly contacts = new Contacts(() => this.extent);
  extent = 1;
  frames = 0;
  onDraw: () => void = () => {};
  onFrame: (now: number) => boolean = () => false; // whether another frame is wanted
  private struts: StrutView[] = [];
  private reactions: Arrow[] = [];
  private readonly world = new THREE.Group();
  private areMarksShown = false;
  private readonly overlay = new THREE.Group();
  private readonly floor = new Floor();
  private theme: Theme = THEMES.light;
  private readonly edgeMaterial = new THREE.LineBasicMaterial({ color: 0x27313d, transparent: true, opacity: 0.85 });
  private readonly selectedEdges = new THREE.LineBasicMaterial({ color: SELECTED });
  private dirty = true;
  private awake = false;
  busy = false; // while answers of the server are awaited: they go before drawing
  private drawn = { began: 0, ended: 1, took: 0 }; // [ms]; ended: 0 until the frame is finished
  private readonly after = new MessageChannel();
  private hovered = -1;
  private selected = -1;

  constructor(canvas: HTMLCanvasElement) {
    super(canvas);
    this.software = isSoftware();
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, powerPreference: 'high-performance' });
    this.renderer.setPixelRatio(this.software ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.arrow = new Arrow(0xf2711c);
    this.overlay.add(this.arrow.node);
    this.traces = new Traces(this, this.overlay);
    this.scene.add(this.floor.node, this.world, this.contacts.node, this.overlay);
    this.shadows = !this.software;
    // A task that runs when the browser has finished the frame: layout, painting and the transfer of the canvas too.
    this.after.port1.onmessage = () => {
      const ended = performance.now();
      this.drawn = { ...this.drawn, ended, took: ended - this.drawn.began };
      if (this.dirty) this.wake();
    };
  }

  // -- building ------------------------------------------------------------------------------------------------------

  /** keepsCamera: of another version of the same mechanism, unless that is no longer in the view. */
  build(data: SceneData, keepsCamera = false): void {
    const before = this.shown;
    this.clear();
    this.extent = data.extent;
    this.up.fromArray(data.up);
    const geometries = new Map<string, { faces: THREE.BufferGeometry; edges: THREE.BufferGeometry | null }>();
    const shared = new Map<number, PartView['material']>(); // one material is set once for all parts that have it
    data.parts.forEach((part, index) => {
      const node = new THREE.Group();
      const color: Color = part.meshes[0]?.[1] ?? [0.6, 0.65, 0.7, 1];
      const opacity = Math.min(1, ...part.meshes.map(([, c]) => c[3]));
      const material = shared.get(opacity) ?? this.material(opacity);
      shared.set(opacity, material);
      const view: PartView = {
        name: part.name,
        node,
        faces: [],
        edges: [],
        material,
        isShared: true,
        color,
        visible: true,
        ghost: false,
      };
      if (part.meshes.length) {
        const key = JSON.stringify(part.meshes);
        let geometry = geometries.get(key);
        if (!geometry) {
          geometry = merge(part.meshes.map(([k, c]) => [data.meshes[k], c]));
          geometries.set(key, geometry);
        }
        const mesh = new THREE.Mesh(geometry.faces, material);
        mesh.castShadow = true;
        mesh.receiveShadow = true;
        mesh.userData.part = index;
        mesh.matrixAutoUpdate = false; // it does not move in its part
        view.faces.push(mesh);
        node.add(mesh);
        if (geometry.edges) {
          const lines = new THREE.LineSegments(geometry.edges, this.edgeMaterial);
          lines.matrixAutoUpdate = false;
          view.edges.push(lines);
          node.add(lines);
        }
      }
      this.parts.push(view);
      this.world.add(node);
    });
    for (const strut of data.struts) {
      const { faces, edges } = merge([[data.meshes[strut.mesh], strut.color]]);
      const node = new THREE.Group();
      const mesh = new THREE.Mesh(faces, this.material(strut.color[3]));
      mesh.castShadow = true;
      mesh.userData.label = strut.name;
      node.add(mesh);
      if (edges) node.add(new THREE.LineSegments(edges, this.edgeMaterial));
      this.world.add(node);
      const points = strut.points.map((p) => new THREE.Vector3(...p)) as [THREE.Vector3, THREE.Vector3];
      this.struts.push({ node, bodies: strut.bodies, points });
    }
    const index = new Map(data.parts.map((part, k) => [part.name, k]));
    for (const joint of data.joints) {
      const place = joint.frame_b ?? joint.frame_a;
      const body = joint.bodies[joint.frame_b ? joint.bodies.length - 1 : 0];
      const part = index.get(body);
      if (!place || part === undefined) continue;
      const node = glyph(joint.kind, 0.035 * this.extent);
      pose(node, place);
      node.updateMatrix();
      node.matrixAutoUpdate = false;
      this.parts[part].node.add(node);
      node.visible = this.areMarksShown;
      this.joints.push({ data: joint, node, part });
    }
    this.place(data.poses.subarray(7));
    this.measure();
    this.floor.fit(this.center, this.radius, this.up, this.low);
    this.setTheme(this.theme);
    const after = this.shown;
    const isLost = after === 'none' || (after === 'some' && before === 'all');
    if (keepsCamera && !isLost) this.project();
    else super.fit();
  }

  /** Show everything where it is now. */
  override fit(direction?: THREE.Vector3): void {
    this.measure();
    super.fit(direction);
  }

  private clear(): void {
    for (const node of [...this.world.children]) {
      this.world.remove(node);
      node.traverse((child) => {
        if (child instanceof THREE.Mesh || child instanceof THREE.LineSegments) child.geometry.dispose();
        if (child instanceof THREE.Mesh) (child.material as THREE.Material).dispose();
      });
    }
    this.parts.length = 0;
    this.joints.length = 0;
    this.struts = [];
    this.traces.clear();
    for (const arrow of this.reactions) this.overlay.remove(arrow.node);
    this.reactions = [];
    this.hovered = this.selected = -1;
    this.contacts.place(null);
    this.arrow.hide();
  }

  private material(opacity: number): THREE.MeshLambertMaterial | THREE.MeshStandardMaterial {
    const options = {
      vertexColors: true,
      polygonOffset: true,
      polygonOffsetFactor: 1,
      polygonOffsetUnits: 1,
      transparent: opacity < 1,
      opacity,
    };
    return this.software
      ? new THREE.MeshLambertMaterial(options)
      : new THREE.MeshStandardMaterial({ ...options, roughness: 0.55, metalness: 0.08 });
  }

  /** The sphere around everything that is drawn. */
  private measure(): void {
    this.scene.updateMatrixWorld(true);
    const box = new THREE.Box3();
    const part = new THREE.Box3();
    for (const view of this.parts) {
      for (const mesh of view.faces) {
        part.setFromObject(mesh);
        box.union(part);
      }
    }
    for (const strut of this.struts) box.union(part.setFromObject(strut.node));
    if (box.isEmpty()) box.setFromCenterAndSize(new THREE.Vector3(), new THREE.Vector3(1, 1, 1));
    this.box.copy(box);
    box.getCenter(this.center);
    this.radius = Math.max(1e-9, 0.5 * box.getSize(new THREE.Vector3()).length());
    this.low = Math.min(
      ...[box.min, box.max].flatMap((a) =>
        [box.min, box.max].flatMap((b) => [box.min, box.max].map((c) => this.up.dot(new THREE.Vector3(a.x, b.y, c.z)))),
      ),
    );
  }
  private low = 0;

  // -- poses ---------------------------------------------------------------------------------------------------------

  /** Poses of the movable parts: x y z, w x y z each. */
  place(poses: Float32Array): void {
    for (let k = 1, o = 0; k < this.parts.length; k++, o += 7) {
      const { node } = this.parts[k];
      node.position.set(poses[o], poses[o + 1], poses[o + 2]);
      node.quaternion.set(poses[o + 4], poses[o + 5], poses[o + 6], poses[o + 3]);
    }
    for (const { node, bodies, points } of this.struts) {
      const [a, b] = points.map((p, k) => this.toWorld(bodies[k], p));
      node.position.copy(a);
      b.sub(a);
      const length = b.length();
      node.visible = length > 0;
      if (length > 0) node.quaternion.setFromUnitVectors(Z, b.divideScalar(length));
      node.scale.set(1, 1, length);
    }
    this.redraw();
  }

  /** Where a joint is in the present pose; matrices of three.js are those of the last drawing. */
  placeOf(joint: JointView): THREE.Vector3 {
    return this.toWorld(joint.part, joint.node.position);
  }

  toWorld(part: number, local: THREE.Vector3): THREE.Vector3 {
    const { node } = this.parts[part];
    return local.clone().applyQuaternion(node.quaternion).add(node.position);
  }

  toLocal(part: number, point: THREE.Vector3): THREE.Vector3 {
    const { node } = this.parts[part];
    return point.clone().sub(node.position).applyQuaternion(node.quaternion.clone().invert());
  }

  redraw(): void {
    this.dirty = true;
    this.wake();
  }

  /** Ask for a frame: nothing runs while nothing changes. */
  wake(): void {
    if (this.awake) return;
    this.awake = true;
    requestAnimationFrame((now) => {
      this.awake = false;
      this.tick(now);
    });
  }

  protected setSize(width: number, height: number): void {
    this.renderer.setSize(width, height, false);
  }

  private tick(now: number): void {
    if (this.turn(now)) this.redraw();
    if (this.onFrame(now)) this.wake();
    const began = performance.now();
    if (!this.dirty) return;
    if (this.busy) {
      const wait = this.rest(began);
      if (wait > 0) {
        if (Number.isFinite(wait)) setTimeout(() => this.wake(), wait); // else the end of the frame wakes it
        return;
      }
    }
    this.dirty = false;
    this.drawn = { ...this.drawn, began, ended: 0 };
    this.onDraw();
    this.renderer.render(this.scene, this.camera);
    this.frames++;
    this.after.port2.postMessage(0);
  }

  /** ms to wait before the next drawing, so that slow drawing leaves time for the messages of a drag. */
  private rest(now: number): number {
    const { ended, took } = this.drawn;
    return ended > 0 ? Math.min(2 * took, REST) - (now - ended) : Number.POSITIVE_INFINITY;
  }

  /** Whether everything that changed is drawn. */
  get settled(): boolean {
    return !this.dirty;
  }

  // -- picking -------------------------------------------------------------------------------------------------------

  /** The part under a place on the canvas, the point in world, and the triangle. */
  pick(x: number, y: number): { part: number; point: THREE.Vector3; face: number } | null {
    this.aim(x, y);
    const meshes = this.parts.filter((p) => p.visible).flatMap((p) => p.faces);
    const hits = this.caster.intersectObjects(meshes, false);
    const solid = hits.find((hit) => !this.parts[hit.object.userData.part].ghost) ?? hits[0];
    return solid
      ? { part: solid.object.userData.part as number, point: solid.point, face: solid.faceIndex ?? -1 }
      : null;
  }

  hover(part: number): void {
    if (part === this.hovered) return;
    const old = this.hovered;
    this.hovered = part;
    this.tint(old);
    this.tint(part);
  }

  select(part: number): void {
    const old = this.selected;
    this.selected = part;
    this.tint(old);
    this.tint(part);
  }

  /** A material of its own, for a part that shall look different. */
  private own(view: PartView): PartView['material'] {
    if (view.isShared) {
      view.material = view.material.clone();
      view.isShared = false;
      for (const mesh of view.faces) mesh.material = view.material;
    }
    return view.material;
  }

  private tint(part: number): void {
    const view = this.parts[part];
    if (!view) return;
    this.own(view);
    const isSelected = part === this.selected;
    const [red, green, blue] = view.color;
    if (isSelected) view.material.emissive.setRGB(red, green, blue, THREE.SRGBColorSpace);
    else view.material.emissive.setHex(part === this.hovered ? HOVER : 0);
    view.material.emissiveIntensity = isSelected ? 0.3 : 0.9;
    for (const lines of view.edges) lines.material = isSelected ? this.selectedEdges : this.edgeMaterial;
    this.redraw();
  }

  show(part: number, visible: boolean): void {
    const view = this.parts[part];
    view.visible = visible;
    for (const object of [...view.faces, ...view.edges]) object.visible = visible;
    this.redraw();
  }

  ghost(part: number, on: boolean): void {
    const view = this.parts[part];
    view.ghost = on;
    this.own(view);
    view.material.transparent = on || view.color[3] < 1;
    view.material.opacity = on ? 0.22 : view.color[3];
    view.material.depthWrite = !on;
    for (const mesh of view.faces) mesh.castShadow = !on;
    view.material.needsUpdate = true;
    this.redraw();
  }

  // -- what can be switched on and off ---------------------------------------------------------------------------------

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.scene.background = gradient(theme.top, theme.bottom);
    this.edgeMaterial.color.setHex(theme.edge);
    this.floor.setTheme(theme);
    this.redraw();
  }

  get shadows(): boolean {
    return this.renderer.shadowMap.enabled;
  }
  set shadows(on: boolean) {
    this.renderer.shadowMap.enabled = on;
    this.floor.shadows = on;
    for (const part of this.parts) part.material.needsUpdate = true;
    this.redraw();
  }

  get gridShown(): boolean {
    return this.floor.gridShown;
  }
  set gridShown(on: boolean) {
    this.floor.gridShown = on;
    this.redraw();
  }

  get edgesShown(): boolean {
    return this.edgeMaterial.visible;
  }
  set edgesShown(on: boolean) {
    this.edgeMaterial.visible = on;
    this.redraw();
  }

  get marksShown(): boolean {
    return this.areMarksShown;
  }
  set marksShown(on: boolean) {
    this.areMarksShown = on;
    for (const joint of this.joints) joint.node.visible = on;
    this.redraw();
  }

  /** Arrows of forces at points; the longest is a fifth of the extent. */
  showReactions(forces: { at: THREE.Vector3; force: THREE.Vector3 }[], largest: number): void {
    while (this.reactions.length < forces.length) {
      const arrow = new Arrow(0x2a78d6);
      this.reactions.push(arrow);
      this.overlay.add(arrow.node);
    }
    this.reactions.forEach((arrow, k) => {
      const one = forces[k];
      if (!one || !(largest > 0)) arrow.hide();
      else {
        const tip = one.at.clone().addScaledVector(one.force, (0.2 * this.extent) / largest);
        arrow.set(one.at, tip, this.pixel(one.at));
      }
    });
    this.redraw();
  }
}

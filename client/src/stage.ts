// The drawing: parts, struts, joints, arrows and traces in a three.js scene; the camera; picking.

import * as THREE from 'three';
import { OrbitControls } from 'three/addons/controls/OrbitControls.js';
import type { Color, JointData, MeshData, Place, SceneData, Triple } from './wire';

const FOV = 32;
const REST = 50; // ms without drawing between two slow drawings of a drag, at most
const HOVER = 0x1c2f45;
const SELECTED = 0x2f6fb5;
const JOINT_COLORS: Record<string, number> = {
  revolute: 0xe8833a,
  prismatic: 0x3a9d7c,
  cylindrical: 0x3a8fb0,
  screw: 0x3a8fb0,
  spherical: 0x8a63c9,
  universal: 0xb0569b,
  planar: 0x5a7fb8,
  fixed: 0x7b8794,
};

export interface Theme {
  top: string;
  bottom: string;
  grid: number;
  line: number;
  edge: number;
  hemisphere: [number, number, number];
  sun: number;
  shadow: number;
}
export const THEMES: Record<'light' | 'dark', Theme> = {
  light: {
    top: '#dfe6ee',
    bottom: '#f7f9fb',
    grid: 0xd3dae3,
    line: 0xbac4d0,
    edge: 0x27313d,
    hemisphere: [0xffffff, 0xc3ccd6, 2.0],
    sun: 1.7,
    shadow: 0.2,
  },
  dark: {
    top: '#12171e',
    bottom: '#1f2731',
    grid: 0x2b3541,
    line: 0x3a4653,
    edge: 0x0c1116,
    hemisphere: [0xdfe9f5, 0x39434f, 1.9],
    sun: 1.6,
    shadow: 0.45,
  },
};

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
interface Trace {
  part: number;
  local: THREE.Vector3;
  line: THREE.Line;
  count: number;
}

const Z = new THREE.Vector3(0, 0, 1);
const Y = new THREE.Vector3(0, 1, 0);
const TRACE_POINTS = 4000;

export class Stage {
  readonly scene = new THREE.Scene();
  readonly renderer: THREE.WebGLRenderer;
  readonly software: boolean;
  camera: THREE.PerspectiveCamera | THREE.OrthographicCamera;
  readonly orbit: OrbitControls;
  readonly parts: PartView[] = [];
  readonly joints: JointView[] = [];
  readonly arrow: Arrow;
  extent = 1;
  up = new THREE.Vector3(0, 0, 1);
  frames = 0;
  onDraw: () => void = () => {};
  private struts: StrutView[] = [];
  private traces: Trace[] = [];
  private reactions: Arrow[] = [];
  private readonly world = new THREE.Group();
  private readonly marks = new THREE.Group();
  private readonly overlay = new THREE.Group();
  private readonly hemisphere = new THREE.HemisphereLight();
  private readonly sun = new THREE.DirectionalLight(0xffffff, 1);
  private readonly floor: THREE.Mesh<THREE.PlaneGeometry, THREE.ShadowMaterial>;
  private grid: THREE.Object3D | null = null;
  private gridVisible = true;
  private theme: Theme = THEMES.light;
  private readonly edgeMaterial = new THREE.LineBasicMaterial({ color: 0x27313d, transparent: true, opacity: 0.85 });
  private dirty = true;
  busy = false; // while answers of the server are awaited: they go before drawing
  private drawn = { began: 0, ended: 1, took: 0 }; // [ms]; ended: 0 until the frame is finished
  private readonly after = new MessageChannel();
  private hovered = -1;
  private selected = -1;
  private readonly caster = new THREE.Raycaster();
  private size = { width: 1, height: 1 };
  private corner = { x: 0, y: 0 };
  private center = new THREE.Vector3();
  private radius = 1;
  private glide: { from: THREE.Vector3; to: THREE.Vector3; began: number } | null = null;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.software = isSoftware();
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, powerPreference: 'high-performance' });
    this.renderer.setPixelRatio(this.software ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.camera = new THREE.PerspectiveCamera(FOV, 1, 0.01, 100);
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = false;
    this.orbit.addEventListener('change', () => this.redraw());
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 6;
    this.sun.shadow.normalBias = 0.02;
    this.floor = new THREE.Mesh(new THREE.PlaneGeometry(1, 1), new THREE.ShadowMaterial({ opacity: 0.2 }));
    this.floor.receiveShadow = true;
    this.arrow = new Arrow(0xf2711c);
    this.overlay.add(this.arrow.node);
    this.scene.add(this.hemisphere, this.sun, this.sun.target, this.world, this.floor, this.marks, this.overlay);
    this.marks.visible = false;
    this.shadows = !this.software;
    // A task that runs when the browser has finished the frame: layout, painting and the transfer of the canvas too.
    this.after.port1.onmessage = () => {
      const ended = performance.now();
      this.drawn = { ...this.drawn, ended, took: ended - this.drawn.began };
    };
    const loop = (now: number) => {
      requestAnimationFrame(loop);
      this.tick(now);
    };
    requestAnimationFrame(loop);
  }

  // -- building ------------------------------------------------------------------------------------------------------

  /** keepsCamera: of another version of the same mechanism. */
  build(data: SceneData, keepsCamera = false): void {
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
      node.visible = this.marks.visible;
      this.joints.push({ data: joint, node, part });
    }
    this.place(data.poses.subarray(7));
    this.measure();
    this.ground();
    this.setTheme(this.theme);
    if (keepsCamera) this.project();
    else this.fit();
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
    this.clearTraces();
    for (const arrow of this.reactions) this.overlay.remove(arrow.node);
    this.reactions = [];
    this.hovered = this.selected = -1;
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
  private readonly box = new THREE.Box3();

  private ground(): void {
    if (this.grid) this.scene.remove(this.grid);
    const cell = 10 ** Math.round(Math.log10(this.radius / 4));
    const span = 2 * Math.ceil((3.2 * this.radius) / cell / 2) * cell;
    const node = new THREE.Group();
    const lines: number[] = [];
    const half = span / 2;
    for (let k = 0; k <= Math.round(span / cell); k++) {
      const x = k * cell - half;
      const reach = Math.sqrt(Math.max(0, half * half - x * x)); // a round grid has no hard corners
      lines.push(x, -reach, 0, x, reach, 0, -reach, x, 0, reach, x, 0);
    }
    const geometry = new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(lines, 3));
    node.add(new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: this.theme.grid })));
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.up);
    const at = this.center.clone().addScaledVector(this.up, this.low - 0.01 * this.radius - this.center.dot(this.up));
    node.quaternion.copy(turn);
    node.position.copy(at);
    node.visible = this.gridVisible;
    this.grid = node;
    this.scene.add(node);
    this.floor.quaternion.copy(turn);
    this.floor.position.copy(at).addScaledVector(this.up, -0.002 * this.radius);
    this.floor.scale.setScalar(8 * this.radius);
    const side = new THREE.Vector3(-0.45, -0.6, 0.95).applyQuaternion(turn).normalize();
    this.sun.target.position.copy(this.center);
    this.sun.position.copy(this.center).addScaledVector(side, 4 * this.radius);
    const r = 1.7 * this.radius;
    Object.assign(this.sun.shadow.camera, {
      left: -r,
      right: r,
      top: r,
      bottom: -r,
      near: 0.1 * r,
      far: 6 * this.radius,
    });
    this.sun.shadow.camera.updateProjectionMatrix();
    this.sun.shadow.normalBias = 0.004 * this.radius;
  }

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
  }

  private tick(now: number): void {
    if (this.glide) {
      const u = Math.min(1, (now - this.glide.began) / 260);
      const eased = u * u * (3 - 2 * u);
      const distance = this.camera.position.distanceTo(this.orbit.target);
      const direction = this.glide.from.clone().lerp(this.glide.to, eased);
      if (direction.lengthSq() < 1e-6) direction.copy(this.glide.to);
      this.camera.position.copy(this.orbit.target).addScaledVector(direction.normalize(), distance);
      this.orbit.update();
      if (u >= 1) this.glide = null;
      this.dirty = true;
    }
    const began = performance.now();
    if (!this.dirty || (this.busy && !this.isRested(began))) return;
    this.dirty = false;
    this.drawn = { ...this.drawn, began, ended: 0 };
    this.onDraw();
    this.renderer.render(this.scene, this.camera);
    this.frames++;
    this.after.port2.postMessage(0);
  }

  /** Whether time was left for messages since the last drawing, so that slow drawing does not delay a drag. */
  private isRested(now: number): boolean {
    const { ended, took } = this.drawn;
    return ended > 0 && now - ended >= Math.min(2 * took, REST);
  }

  /** Whether everything that changed is drawn. */
  get settled(): boolean {
    return !this.dirty;
  }

  // -- camera --------------------------------------------------------------------------------------------------------

  resize(width: number, height: number): void {
    this.size = { width: Math.max(1, width), height: Math.max(1, height) };
    this.renderer.setSize(this.size.width, this.size.height, false);
    const box = this.canvas.getBoundingClientRect();
    this.corner = { x: box.left, y: box.top };
    this.project();
  }

  /** What the panels leave free of the canvas [CSS pixels]: its size, and how far its middle is from the middle. */
  private free(): { width: number; height: number; right: number; down: number } {
    const { width, height } = this.size;
    const [left, right, top, bottom] = width > 900 ? [284, 350, 64, 110] : [0, 0, 64, 130];
    const low = Math.max(0.4 * height, height - top - bottom);
    return {
      width: Math.max(0.4 * width, width - left - right),
      height: low,
      right: 0.5 * (left - right),
      down: low > 0.4 * height ? 0.5 * (top - bottom) : 0,
    };
  }

  private project(): void {
    const { width, height } = this.size;
    const { right, down } = this.free();
    this.camera.setViewOffset(width, height, -right, -down, width, height);
    const aspect = this.size.width / this.size.height;
    const distance = this.camera.position.distanceTo(this.orbit.target);
    if (this.camera instanceof THREE.PerspectiveCamera) {
      this.camera.aspect = aspect;
      this.camera.near = Math.max(1e-4 * this.radius, 0.02 * distance);
      this.camera.far = distance + 20 * this.radius;
    } else {
      const half = this.halfHeight;
      Object.assign(this.camera, { left: -half * aspect, right: half * aspect, top: half, bottom: -half });
      this.camera.near = -20 * this.radius;
      this.camera.far = distance + 20 * this.radius;
    }
    this.camera.updateProjectionMatrix();
    this.redraw();
  }
  private halfHeight = 1;

  /** Show everything, from the present direction or from a given one. */
  fit(direction?: THREE.Vector3): void {
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.up);
    const now = this.camera.position.clone().sub(this.orbit.target);
    const from =
      direction ??
      (this.parts.length && now.lengthSq() > 1e-12 && this.fitted
        ? now
        : new THREE.Vector3(0.5, -1, 0.42).applyQuaternion(turn));
    this.fitted = true;
    this.camera.up.copy(this.up);
    this.orbit.target.copy(this.center);
    const toward = from.clone().normalize();
    const right = new THREE.Vector3().crossVectors(this.up, toward);
    if (right.lengthSq() < 1e-9) right.crossVectors(Y, toward);
    right.normalize();
    const upward = new THREE.Vector3().crossVectors(toward, right);
    const { height } = this.size;
    const free = { x: (0.94 * this.free().width) / height, y: (0.94 * this.free().height) / height };
    const tan = Math.tan((FOV * Math.PI) / 360);
    let distance = 0;
    let half = 0;
    for (let k = 0; k < 8; k++) {
      const { min, max } = this.box;
      const corner = new THREE.Vector3(k & 1 ? min.x : max.x, k & 2 ? min.y : max.y, k & 4 ? min.z : max.z).sub(
        this.center,
      );
      const needed = Math.max(Math.abs(corner.dot(right)) / free.x, Math.abs(corner.dot(upward)) / free.y);
      distance = Math.max(distance, corner.dot(toward) + needed / tan);
      half = Math.max(half, needed);
    }
    this.camera.position.copy(this.center).addScaledVector(toward, Math.max(distance, 1e-6));
    this.halfHeight = Math.max(half, 1e-6);
    if (this.camera instanceof THREE.OrthographicCamera) this.camera.zoom = 1;
    this.orbit.minDistance = 0.05 * this.radius;
    this.orbit.maxDistance = 30 * this.radius;
    this.orbit.update();
    this.project();
  }
  private fitted = false;

  /** Forget the direction of the last mechanism. */
  unfit(): void {
    this.fitted = false;
  }

  /** Turn to a direction, given in axes whose z is up. */
  look(direction: Triple): void {
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.up);
    const to = new THREE.Vector3(...direction).applyQuaternion(turn).normalize();
    const from = this.camera.position.clone().sub(this.orbit.target).normalize();
    this.glide = { from, to, began: performance.now() };
  }

  get orthographic(): boolean {
    return this.camera instanceof THREE.OrthographicCamera;
  }

  set orthographic(on: boolean) {
    if (on === this.orthographic) return;
    const old = this.camera;
    const distance = old.position.distanceTo(this.orbit.target);
    if (on) {
      this.halfHeight = distance * Math.tan((FOV * Math.PI) / 360);
      this.camera = new THREE.OrthographicCamera();
    } else {
      this.camera = new THREE.PerspectiveCamera(FOV, 1, 0.01, 100);
    }
    this.camera.up.copy(old.up);
    this.camera.position.copy(old.position);
    if (!on && old instanceof THREE.OrthographicCamera) {
      const seen = this.halfHeight / old.zoom / Math.tan((FOV * Math.PI) / 360);
      this.camera.position.sub(this.orbit.target).setLength(seen).add(this.orbit.target);
    }
    this.orbit.object = this.camera;
    this.orbit.update();
    this.project();
  }

  /** Metres of one pixel at a point. */
  pixel(at: THREE.Vector3): number {
    if (this.camera instanceof THREE.OrthographicCamera) {
      return (2 * this.halfHeight) / this.camera.zoom / this.size.height;
    }
    const depth = at.clone().sub(this.camera.position).dot(this.camera.getWorldDirection(new THREE.Vector3()));
    return (2 * Math.tan((FOV * Math.PI) / 360) * Math.max(depth, 1e-9)) / this.size.height;
  }

  /** Place on the canvas [CSS pixels], or null behind the camera. */
  screen(at: THREE.Vector3): [number, number] | null {
    const v = at.clone().project(this.camera);
    if (v.z > 1) return null;
    return [((v.x + 1) / 2) * this.size.width, ((1 - v.y) / 2) * this.size.height];
  }

  // -- picking -------------------------------------------------------------------------------------------------------

  /** The place of a pointer event on the canvas [CSS pixels]. */
  at(event: PointerEvent): [number, number] {
    return [event.clientX - this.corner.x, event.clientY - this.corner.y];
  }

  aim(x: number, y: number): THREE.Ray {
    const ndc = new THREE.Vector2((x / this.size.width) * 2 - 1, 1 - (y / this.size.height) * 2);
    this.caster.setFromCamera(ndc, this.camera);
    return this.caster.ray;
  }

  /** The part under a place on the canvas, and the point in world. */
  pick(x: number, y: number): { part: number; point: THREE.Vector3 } | null {
    this.aim(x, y);
    const meshes = this.parts.filter((p) => p.visible).flatMap((p) => p.faces);
    const hits = this.caster.intersectObjects(meshes, false);
    const solid = hits.find((hit) => !this.parts[hit.object.userData.part].ghost) ?? hits[0];
    return solid ? { part: solid.object.userData.part as number, point: solid.point } : null;
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
    view.material.emissive.setHex(part === this.selected ? SELECTED : part === this.hovered ? HOVER : 0);
    view.material.emissiveIntensity = part === this.selected ? 0.45 : 0.9;
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
    this.hemisphere.color.setHex(theme.hemisphere[0]);
    this.hemisphere.groundColor.setHex(theme.hemisphere[1]);
    this.hemisphere.intensity = theme.hemisphere[2];
    this.sun.intensity = theme.sun;
    this.floor.material.opacity = theme.shadow;
    if (this.parts.length) this.ground();
    this.redraw();
  }

  get shadows(): boolean {
    return this.renderer.shadowMap.enabled;
  }
  set shadows(on: boolean) {
    this.renderer.shadowMap.enabled = on;
    this.sun.castShadow = on;
    this.floor.visible = on;
    for (const part of this.parts) part.material.needsUpdate = true;
    this.redraw();
  }

  get gridShown(): boolean {
    return this.gridVisible;
  }
  set gridShown(on: boolean) {
    this.gridVisible = on;
    if (this.grid) this.grid.visible = on;
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
    return this.marks.visible;
  }
  set marksShown(on: boolean) {
    this.marks.visible = on;
    for (const joint of this.joints) joint.node.visible = on;
    this.redraw();
  }

  // -- traces and reactions --------------------------------------------------------------------------------------------

  traced(part: number): boolean {
    return this.traces.some((trace) => trace.part === part);
  }

  /** Draw the path of a point of a part from now on; false to end it. */
  trace(part: number, local: THREE.Vector3 | null): void {
    for (const old of this.traces.filter((t) => t.part === part)) {
      this.overlay.remove(old.line);
      old.line.geometry.dispose();
    }
    this.traces = this.traces.filter((t) => t.part !== part);
    if (local) {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute('position', new THREE.BufferAttribute(new Float32Array(3 * TRACE_POINTS), 3));
      geometry.setDrawRange(0, 0);
      const hue = (this.traces.length * 0.61803 + 0.02) % 1;
      const color = new THREE.Color().setHSL(hue, 0.75, 0.5);
      const line = new THREE.Line(
        geometry,
        new THREE.LineBasicMaterial({ color, depthTest: false, transparent: true }),
      );
      line.frustumCulled = false;
      line.renderOrder = 5;
      this.overlay.add(line);
      this.traces.push({ part, local, line, count: 0 });
    }
    this.redraw();
  }

  clearTraces(): void {
    for (const trace of [...this.traces]) this.trace(trace.part, null);
  }

  /** Empty the paths, to draw them anew. */
  restartTraces(): void {
    for (const trace of this.traces) {
      trace.count = 0;
      trace.line.geometry.setDrawRange(0, 0);
    }
  }

  /** Add the present places to the paths. */
  growTraces(): void {
    for (const trace of this.traces) {
      const p = this.toWorld(trace.part, trace.local);
      const positions = trace.line.geometry.getAttribute('position') as THREE.BufferAttribute;
      const array = positions.array as Float32Array;
      const last = 3 * (trace.count - 1);
      if (
        trace.count &&
        Math.hypot(array[last] - p.x, array[last + 1] - p.y, array[last + 2] - p.z) < 1e-4 * this.extent
      )
        continue;
      if (trace.count === TRACE_POINTS) {
        array.copyWithin(0, 3);
        trace.count--;
      }
      p.toArray(array, 3 * trace.count++);
      positions.needsUpdate = true;
      trace.line.geometry.setDrawRange(0, trace.count);
      this.redraw();
    }
  }

  traceLength(part: number): number {
    return this.traces.find((t) => t.part === part)?.count ?? 0;
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

/** An arrow over everything else; head and shaft keep their size in pixels. */
export class Arrow {
  readonly node = new THREE.Group();
  readonly from = new THREE.Vector3();
  readonly to = new THREE.Vector3();
  private readonly shaft: THREE.Mesh;
  private readonly head: THREE.Mesh;
  private readonly material: THREE.MeshBasicMaterial;

  constructor(color: number) {
    this.material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true, opacity: 0.95 });
    this.shaft = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 12).translate(0, 0.5, 0), this.material);
    this.head = new THREE.Mesh(new THREE.ConeGeometry(1, 1, 20).translate(0, -0.5, 0), this.material);
    this.shaft.renderOrder = this.head.renderOrder = 10;
    this.node.add(this.shaft, this.head);
    this.node.visible = false;
  }

  set(from: THREE.Vector3, to: THREE.Vector3, pixel: number): void {
    this.from.copy(from);
    this.to.copy(to);
    const along = to.clone().sub(from);
    const length = along.length();
    this.node.visible = length > 1.5 * pixel;
    if (!this.node.visible) return;
    const head = Math.min(15 * pixel, 0.6 * length);
    this.node.position.copy(from);
    this.node.quaternion.setFromUnitVectors(Y, along.divideScalar(length));
    this.shaft.scale.set(1.6 * pixel, length - 0.8 * head, 1.6 * pixel);
    this.head.position.set(0, length, 0);
    this.head.scale.set(5.5 * pixel, head, 5.5 * pixel);
  }

  color(hex: number): void {
    this.material.color.setHex(hex);
  }

  hide(): void {
    this.node.visible = false;
  }
}

function merge(meshes: [MeshData, Color][]): { faces: THREE.BufferGeometry; edges: THREE.BufferGeometry | null } {
  const vertices = meshes.reduce((n, [m]) => n + m.vertices.length, 0);
  const corners = meshes.reduce((n, [m]) => n + m.faces.length, 0);
  const ends = meshes.reduce((n, [m]) => n + m.edges.length, 0);
  const position = new Float32Array(vertices);
  const normal = new Float32Array(vertices);
  const color = new Float32Array(vertices);
  const index = new Uint32Array(corners);
  const lines = new Uint32Array(ends);
  const tint = new THREE.Color();
  let v = 0;
  let f = 0;
  let e = 0;
  for (const [mesh, rgba] of meshes) {
    position.set(mesh.vertices, v);
    normal.set(mesh.normals, v);
    tint.setRGB(rgba[0], rgba[1], rgba[2], THREE.SRGBColorSpace);
    for (let k = v; k < v + mesh.vertices.length; k += 3) tint.toArray(color, k);
    for (const k of mesh.faces) index[f++] = k + v / 3;
    for (const k of mesh.edges) lines[e++] = k + v / 3;
    v += mesh.vertices.length;
  }
  const faces = new THREE.BufferGeometry();
  const positions = new THREE.BufferAttribute(position, 3);
  faces.setAttribute('position', positions);
  faces.setAttribute('normal', new THREE.BufferAttribute(normal, 3));
  faces.setAttribute('color', new THREE.BufferAttribute(color, 3));
  faces.setIndex(new THREE.BufferAttribute(index, 1));
  faces.computeBoundingSphere();
  if (!ends) return { faces, edges: null };
  const edges = new THREE.BufferGeometry();
  edges.setAttribute('position', positions);
  edges.setIndex(new THREE.BufferAttribute(lines, 1));
  return { faces, edges };
}

function pose(node: THREE.Object3D, place: Place): void {
  const [w, x, y, z] = place.quaternion;
  node.position.set(...place.origin);
  node.quaternion.set(x, y, z, w);
}

/** The mark of a joint: axes, rings and arrows that show what it leaves free; z is its axis. */
function glyph(kind: string, size: number): THREE.Object3D {
  const points: number[] = [];
  const line = (...p: number[]) => points.push(...p.map((x) => x * size));
  const ring = (radius: number, at: (c: number, s: number) => Triple) => {
    for (let k = 0; k < 32; k++) {
      const [a, b] = [k, k + 1].map((i) => (2 * Math.PI * i) / 32);
      line(...at(radius * Math.cos(a), radius * Math.sin(a)), ...at(radius * Math.cos(b), radius * Math.sin(b)));
    }
  };
  const tip = (z: number, s: number) => {
    for (const [x, y] of [
      [0.25, 0],
      [-0.25, 0],
      [0, 0.25],
      [0, -0.25],
    ])
      line(0, 0, z, x, y, z - 0.4 * s);
  };
  const flat = (c: number, s: number): Triple => [c, s, 0];
  if (kind === 'revolute' || kind === 'cylindrical' || kind === 'screw') {
    ring(0.8, flat);
    line(0, 0, -1.4, 0, 0, 1.4);
  }
  if (kind === 'prismatic' || kind === 'cylindrical' || kind === 'screw') {
    line(0, 0, -1.6, 0, 0, 1.6);
    tip(1.6, 1);
    tip(-1.6, -1);
  }
  if (kind === 'spherical') {
    ring(0.8, flat);
    ring(0.8, (c, s) => [c, 0, s]);
    ring(0.8, (c, s) => [0, c, s]);
  }
  if (kind === 'universal') {
    line(-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0);
    ring(0.6, (c, s) => [c, 0, s]);
    ring(0.6, (c, s) => [0, c, s]);
  }
  if (kind === 'planar' || kind === 'point_in_plane') {
    line(-1, -1, 0, 1, -1, 0, 1, -1, 0, 1, 1, 0, 1, 1, 0, -1, 1, 0, -1, 1, 0, -1, -1, 0);
  }
  if (!points.length) {
    for (const [x, y] of [
      [-0.6, -0.6],
      [0.6, -0.6],
      [0.6, 0.6],
      [-0.6, 0.6],
    ]) {
      line(x, y, -0.6, x, y, 0.6, x, y, -0.6, -y, x, -0.6, x, y, 0.6, -y, x, 0.6);
    }
  }
  const geometry = new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(points, 3));
  const color = JOINT_COLORS[kind] ?? 0x7b8794;
  const node = new THREE.LineSegments(
    geometry,
    new THREE.LineBasicMaterial({ color, depthTest: false, transparent: true }),
  );
  node.renderOrder = 8;
  return node;
}

function gradient(top: string, bottom: string): THREE.Texture {
  const canvas = document.createElement('canvas');
  canvas.width = 2;
  canvas.height = 256;
  const context = canvas.getContext('2d')!;
  const fill = context.createLinearGradient(0, 0, 0, 256);
  fill.addColorStop(0, top);
  fill.addColorStop(1, bottom);
  context.fillStyle = fill;
  context.fillRect(0, 0, 2, 256);
  const texture = new THREE.CanvasTexture(canvas);
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}

/** Whether the drawing is computed on the processor: then shadows are off and materials are simple. */
function isSoftware(): boolean {
  const forced = new URLSearchParams(location.search).get('quality');
  if (forced === 'high' || forced === 'light') return forced === 'light';
  const context = document.createElement('canvas').getContext('webgl2');
  const info = context?.getExtension('WEBGL_debug_renderer_info');
  const name = info && context ? String(context.getParameter(info.UNMASKED_RENDERER_WEBGL)) : '';
  context?.getExtension('WEBGL_lose_context')?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

// The page: what the server says goes to the panels and the drawing, and what people do goes to the server.

import type * as THREE from 'three';
import { Desk, type DeskData } from './desk';
import { block, h } from './dom';
import { Drivers } from './drivers';
import { largest, reactions } from './forces';
import { type FreedomData, Freedoms } from './freedoms';
import { Gallery, type Item } from './gallery';
import { type Grab, Hand } from './hand';
import { Joints } from './joints';
import { type KeyActions, press } from './keys';
import { available } from './line';
import { Lines } from './lines';
import { Link } from './link';
import { Lists } from './lists';
import { Messages, type Work } from './messages';
import { Parts } from './parts';
import type { Player } from './player';
import type { Plots } from './plots';
import { Poses } from './poses';
import { Pull } from './pull';
import { Rates } from './rates';
import { save } from './save';
import { type Connection, type Recording, type Source, unpack } from './source';
import { Stage } from './stage';
import { Status } from './status';
import { Toolbar, toggle } from './toolbar';
import { Transport } from './transport';
import { Values } from './values';
import { ViewCube } from './viewcube';
import * as wire from './wire';

/** Values of all coordinates of joints, and the drivers, in the state of the server. */
interface ValueData {
  values: number[];
  drivers: wire.Driver[];
}

const TEXTS = 80; // ms between changes of the numbers that people read

const waiting = (text: string): Work => ({ text, part: null, stoppable: false, waits: true });

export class App {
  readonly stage: Stage;
  readonly hand: Hand;
  link: Link | null = null;
  scene: wire.SceneData | null = null;
  model: wire.Model | null = null;
  freedoms: FreedomData | null = null;
  frame: wire.FrameData | null = null;
  poses: Float32Array = new Float32Array(0); // that are drawn
  problems: string[] = [];
  framesApplied = 0;
  private readonly isRecorded: boolean;
  private isAddressed = false;
  private keep: ((token: string) => void) | undefined;
  private clipNumber = 0;
  private live = false;
  private keepsCamera = false; // the next scene is another version of this one
  private stops: string[] = []; // limits that hold and contacts that are lost, in words
  private reactionsShown = false;
  private told: ValueData | null = null;
  private restoring: { item: string; poses: number[] } | null = null;
  private nextTexts = 0;
  private largestReaction = 0;
  private readonly valuesNow = new Values();
  private readonly rates = new Rates();

  private readonly canvas = h('canvas', { id: 'stage', tabindex: 0, 'aria-label': 'The mechanism; drag its parts' });
  private readonly tip = h('div', { class: 'tip', id: 'tip', hidden: true });
  private readonly gallery = new Gallery((item) => this.load(item));
  private readonly messages = new Messages(
    () => this.send('stop'),
    () => this.gate(),
  );
  private readonly freedomList = new Freedoms((freedom) => this.send('wiggle', { freedom }));
  private readonly drivers = new Drivers((driver, value) => this.drive(driver, value));
  private readonly namedPoses = new Poses({
    keep: (name) => {
      this.leaveClip();
      this.send('keep', { name });
    },
    pose: (name) => {
      this.transport.close(false);
      this.send('pose', { name });
    },
  });
  private readonly lines = new Lines();
  private readonly status = new Status();
  private readonly parts: Parts;
  private readonly joints: Joints;
  private readonly lists: Lists;
  private readonly desk: Desk;
  private readonly tools: Toolbar;
  private readonly cube: ViewCube;
  private readonly pull: Pull;
  private readonly transport: Transport;
  private readonly liveButton = toggle(
    'live',
    'weight',
    'Gravity, live: parts fall, and a drag pulls with a force (L)',
    () => this.live,
    (on) => this.setLive(on),
  );
  private gated: string | null = null; // why controls wait
  private offers: { commands: string[]; reason: string } | null = null; // of a connection that does not do everything

  constructor(
    private readonly root: HTMLElement,
    source: Source,
  ) {
    this.isRecorded = Boolean(source.recording);
    this.stage = new Stage(this.canvas);
    this.joints = new Joints(this.stage, this.valuesNow);
    this.parts = new Parts(this.stage, {
      pin: (part, on) => this.send('pin', { body: part - 1, on }),
      traced: () => {
        this.traceClip();
        this.stage.traces.grow();
      },
    });
    this.desk = new Desk(this.stage, (what, values) => this.send(what, values));
    this.lists = new Lists(this.gallery, this.parts, this.joints, () => this.root.classList.toggle('panels'));
    this.pull = new Pull(this.stage);
    this.cube = new ViewCube(this.stage);
    this.tools = new Toolbar(
      this.stage,
      this.joints,
      {
        undo: () => this.undo(),
        reset: () => {
          this.transport.close(false);
          this.send('reset');
        },
        showReactions: (on) => {
          this.reactionsShown = on;
          this.drawReactions();
        },
        themed: () => this.lines.show(),
      },
      this.isRecorded,
    );
    this.transport = new Transport(
      {
        compute: (mode, duration) => this.send(mode === 'move' ? 'play' : 'simulate', { duration }),
        shown: (player) => this.showPlayer(player),
        restarted: () => this.stage.traces.restart(),
        closed: (back) => this.clipClosed(back),
        wake: () => this.stage.wake(),
      },
      this.isRecorded,
      this.isRecorded ? null : this.liveButton,
    );
    this.liveButton.dataset.asks = '';
    this.layout();
    this.root.classList.add('empty');
    this.gate();
    this.stage.onDraw = () => this.beforeDraw();
    this.stage.onFrame = (now) => this.transport.advance(now);
    this.hand = new Hand(this.stage, {
      canDrag: (part) => part > 0 && !this.isRecorded,
      grab: (grab) => this.grab(grab),
      drag: (grab, stamp) => this.drag(grab, stamp),
      drop: (grab) => this.drop(grab),
      hover: (part, x, y) => this.hover(part, x, y),
      select: (part, point, face) => this.pick(part, point, face),
    });
    const resize = () => this.stage.resize(innerWidth, innerHeight);
    addEventListener('resize', resize);
    resize();
    addEventListener('keydown', (event) => this.key(event));
    root.addEventListener('click', (event) => this.leaveButton(event));
    setInterval(() => this.showTexts(performance.now()), TEXTS); // also while nothing is drawn
    if (source.recording) void this.replay(source.recording);
    else if (source.connection) this.connect(source.connection);
    else {
      const way = 'Open the address that “cardan view” prints; each works once.';
      this.messages.show('The address is not complete', way, 'error');
    }
  }

  // names by which tests and the console reach what panels hold
  get player(): Player | null {
    return this.transport.player;
  }
  get plots(): Plots {
    return this.lines.plots;
  }
  get values(): number[] {
    return this.valuesNow.all;
  }
  get selected(): number {
    return this.parts.selected;
  }
  get pins(): Set<number> {
    return this.parts.pins;
  }
  get kept(): string[] {
    return this.namedPoses.names;
  }
  farthest(part: number): THREE.Vector3 {
    return this.parts.local(part);
  }
  select(part: number, point: THREE.Vector3 | null): void {
    this.parts.select(part, point);
  }

  // -- layout --------------------------------------------------------------------------------------------------------

  private layout(): void {
    const live = this.isRecorded ? [] : [this.freedomList.node, this.drivers.node];
    this.root.append(
      this.canvas,
      h('div', { id: 'labels', 'aria-hidden': 'true' }, this.joints.labels, this.tip, this.pull.label),
      this.lists.node,
      h(
        'aside',
        { id: 'side', class: 'card', 'aria-label': 'Properties' },
        this.parts.card,
        this.desk.node,
        ...live,
        this.lines.node,
        this.isRecorded ? null : this.namedPoses.node,
      ),
      this.tools.node,
      this.cube.node,
      this.transport.node,
      this.messages.progress,
      this.messages.node,
      this.tools.help,
    );
    this.lists.node.append(this.status.node);
    this.status.node.hidden = this.isRecorded;
  }

  // -- connection ----------------------------------------------------------------------------------------------------

  private connect({ open, patience, isAddressed, keep }: Connection): void {
    this.isAddressed = isAddressed;
    this.keep = keep;
    this.messages.setWork(waiting('Connecting to the server'));
    this.link = new Link(open, {
      open: () => {
        this.status.connected(true);
        this.messages.clear('lost');
        this.messages.setWork(waiting('Waiting for the server'));
      },
      closed: () => {
        this.status.connected(false);
        this.hand.cancel();
        this.messages.setWork(null);
        this.status.prepare(null);
        this.gate();
        if (this.model && this.poses.length) this.restoring = { item: this.model.item, poses: Array.from(this.poses) };
        if (!this.messages.has('lost')) this.messages.show('The server does not answer', patience, 'warning', 'lost');
      },
      text: (message) => this.receive(message),
      binary: (data) => this.receiveBinary(data),
    });
  }

  private send(what: string, values: Record<string, unknown> = {}): void {
    this.link?.send({ do: what, ...values });
  }

  private readonly receivers: Record<string, (message: Record<string, unknown>) => void> = {
    token: (message) => this.keep?.(message.token as string),
    reloading: () => {
      this.keepsCamera = true;
    },
    gallery: (message) => this.gallery.fill(message.items as Item[]),
    model: (message) => this.setModel(message as unknown as wire.Model),
    freedoms: (message) => {
      this.freedoms = message as unknown as FreedomData;
      this.freedomList.show(this.freedoms);
      this.showTexts(performance.now(), true);
    },
    values: (message) => {
      this.told = message as unknown as ValueData;
      this.takeValues();
    },
    pins: (message) => this.parts.setPins((message.bodies as number[]).map((b) => b + 1)),
    poses: (message) => this.namedPoses.show(message.names as string[]),
    stops: (message) => {
      this.stops = message.texts as string[];
      this.stage.redraw();
    },
    desk: (message) => this.desk.show(message as unknown as DeskData),
    file: (message) => save(String(message.name), String(message.text)),
    progress: (message) => this.messages.setWork(message.text ? (message as unknown as Work) : null),
    preparing: (message) => this.status.prepare(message.text as string | null),
    offers: (message) => {
      this.offers = { commands: message.commands as string[], reason: String(message.reason) };
    },
    undo: (message) => this.tools.canUndo(message.possible as boolean),
    live: (message) => {
      this.live = message.on as boolean;
      this.liveButton.setAttribute('aria-pressed', String(this.live));
    },
    problem: (message) => this.problem(message),
    refused: (message) => this.messages.show('A request was refused', String(message.text), 'warning'),
  };

  private receive(message: Record<string, unknown>): void {
    this.receivers[String(message.is)]?.(message);
    this.gate();
  }

  /** Disable what asks the server while it cannot answer, with the reason; also controls that are new. */
  private gate(): void {
    if (this.isRecorded) return;
    if (this.offers) {
      const { commands, reason } = this.offers;
      for (const node of this.root.querySelectorAll<HTMLButtonElement>('[data-asks]')) {
        block(node, 'offers', commands.includes(node.dataset.asks!) ? null : reason);
      }
    }
    let reason = this.messages.busy;
    if (!this.link?.connected) reason ??= 'the server does not answer';
    else if (!this.model) reason ??= 'no mechanism is open yet';
    if (reason === null && this.gated === null) return;
    this.gated = reason;
    for (const node of this.root.querySelectorAll<HTMLButtonElement>('[data-asks]')) block(node, 'server', reason);
  }

  private problem(message: Record<string, unknown>): void {
    const text = String(message.text);
    this.problems.push(`${message.title}: ${text}`);
    this.messages.show(String(message.title), text, String(message.level));
    if (message.ack) this.link?.answered(Number(message.ack));
  }

  private receiveBinary(data: ArrayBuffer): void {
    switch (wire.kindOf(data)) {
      case wire.SCENE:
        this.setScene(wire.readScene(data, 4));
        break;
      case wire.FRAME:
        this.applyFrame(wire.readFrame(data));
        break;
      case wire.CLIP:
        void wire.readClip(data).then((clip) => this.startClip(clip));
        break;
    }
  }

  private setScene(scene: wire.SceneData): void {
    this.hand.cancel();
    this.transport.close(false);
    this.scene = scene;
    this.frame = null;
    this.told = null;
    this.freedoms = null;
    this.stops = [];
    this.lines.clear();
    this.parts.select(-1, null);
    this.parts.setPins([]);
    this.namedPoses.show([]);
    this.desk.clear();
    if (!this.keepsCamera) this.stage.unfit();
    this.stage.build(scene, this.keepsCamera);
    this.keepsCamera = false;
    this.poses = scene.poses.slice(7);
    this.messages.clear('lost', true);
    this.problems = [];
    this.clipNumber = 0;
  }

  private setModel(model: wire.Model): void {
    this.model = model;
    this.root.classList.remove('empty');
    this.valuesNow.set(model.coordinates);
    this.gallery.show(model, this.isRecorded);
    this.transport.reset(model.duration, model.drivers.length > 0);
    this.parts.list(this.scene!);
    this.joints.list(this.scene!);
    this.lists.count(this.stage.parts.length - 1, this.scene!.joints.length);
    this.drivers.show(model.drivers);
    this.freedomList.show(this.freedoms);
    this.offerLines();
    if (this.isAddressed) {
      const query = new URLSearchParams(location.search);
      query.set('item', model.item);
      history.replaceState(null, '', `?${query}`);
    }
    if (this.restoring) {
      const { item, poses } = this.restoring;
      this.restoring = null;
      if (item === model.item && poses.length === this.poses.length) this.send('restore', { poses });
    }
  }

  private applyFrame(frame: wire.FrameData): void {
    if (frame.poses.length !== 7 * (this.stage.parts.length - 1)) return; // of the scene before
    this.frame = frame;
    this.framesApplied++;
    if (!this.player) {
      this.draw(frame.poses);
      this.stage.contacts.place(frame.contacts);
    }
    this.link?.answered(frame.ack);
    if (frame.ack && this.hand.retarget()) this.drag(this.hand.grab!, performance.now());
    this.stage.traces.grow();
    this.stage.redraw(); // which shows the force and the numbers
    if (this.model && !this.player) this.plotLive(frame);
  }

  /** Place the parts, and remember where they are. */
  private draw(poses: Float32Array): void {
    this.poses = poses;
    this.stage.place(poses);
  }

  load(item: string): void {
    this.gallery.toggle(false);
    this.restoring = null;
    this.send('load', { item });
    this.canvas.focus();
  }

  // -- plots ---------------------------------------------------------------------------------------------------------

  private offerLines(): void {
    const clip = this.player?.clip ?? null;
    this.lines.offer(available(this.model, clip, this.valuesNow, Boolean(this.link)), clip, this.model);
  }

  private plotLive(frame: wire.FrameData): void {
    const now = performance.now() / 1000;
    const time = this.live || this.hand.grab?.push ? frame.time : now; // of dynamics, or of the hand
    this.plots.push(now, (key) => {
      if (key === 'hand|force') return frame.flags & wire.GRASPED ? Math.hypot(...frame.force) : 0;
      if (key === 'energy|total') return Number.isFinite(frame.energy) ? frame.energy : undefined;
      const value = (of: string) => this.valuesNow.live(of, frame.poses);
      return key.endsWith('|rate') ? this.rates.of(key, this.valuesNow.ofRate(key, value), time) : value(key);
    });
  }

  // -- the hand ------------------------------------------------------------------------------------------------------

  private hover(part: number, x: number, y: number): void {
    this.parts.hover(part);
    this.canvas.classList.toggle('over', part > 0 && Boolean(this.link));
    this.tip.hidden = part < 0;
    if (part >= 0) {
      this.tip.textContent = this.stage.parts[part].name;
      this.tip.style.transform = `translate(${x + 14}px, ${y + 16}px)`;
    }
  }

  private pick(part: number, point: THREE.Vector3 | null, face: number): void {
    this.parts.select(part, point);
    this.desk.pick(part, face);
  }

  private grab(grab: Grab): void {
    this.stage.busy = true;
    this.tip.hidden = true;
    this.stage.hover(grab.part);
  }

  private drag(grab: Grab, stamp: number): void {
    this.leaveClip();
    this.link?.stream(
      { do: 'drag', body: grab.part - 1, point: grab.local.toArray(), target: grab.target.toArray(), push: grab.push },
      stamp,
    );
    this.stage.redraw();
  }

  private drop(grab: Grab): void {
    this.link?.clear();
    this.stage.busy = false;
    if (grab.moved) this.send('drop');
    this.pull.hide();
    this.stage.redraw();
  }

  private drive(driver: string, value: number): void {
    this.leaveClip();
    this.link?.stream({ do: 'drive', driver, value }, performance.now());
  }

  /** Arrow keys: move the selected part, step through a motion, or turn the view. */
  private arrow(x: number, y: number): void {
    const part = this.selected;
    if (part > 0 && this.link) {
      this.leaveClip();
      const local = this.parts.local(part);
      const target = this.pull.step(part, local, x, y);
      this.parts.point?.fromArray(target);
      this.send('drag', { body: part - 1, point: local.toArray(), target, push: false });
      this.send('drop');
    } else if (this.player) {
      if (x) this.transport.step(x);
    } else this.stage.orbitBy(x, y);
  }

  private readonly keyActions: KeyActions = {
    cancel: () => {
      this.hand.cancel();
      this.gallery.toggle(false);
    },
    undo: () => {
      if (this.gated === null) this.undo();
    },
    play: () => this.transport.toggle(),
    arrow: (x, y) => this.arrow(x, y),
    zoom: (factor) => this.stage.zoomBy(factor),
    click: (id) => this.root.querySelector<HTMLButtonElement>(`#${id}`)?.click(),
    ofPart: (action) => {
      if (this.selected >= 0) this.parts[action](this.selected);
    },
  };

  /** A button that was clicked by the mouse does not keep the focus: the space bar then plays, as everywhere else. */
  private leaveButton(event: MouseEvent): void {
    const button = (event.target as Element).closest('button');
    if (event.detail && button && button === document.activeElement) this.canvas.focus({ preventScroll: true });
  }

  private key(event: KeyboardEvent): void {
    const target = event.composedPath()[0];
    const typing =
      target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type !== 'checkbox');
    if (event.key === 'Tab') document.body.classList.add('keys');
    if (press(event, typing, target instanceof HTMLButtonElement, this.keyActions)) event.preventDefault();
  }

  // -- motions -------------------------------------------------------------------------------------------------------

  private undo(): void {
    this.transport.close(true); // to the state of the server
    this.send('undo');
  }

  /** Take the values that the server has told last: whole turns are counted from these. */
  private takeValues(): void {
    if (!this.told || !this.model) return;
    this.valuesNow.take([...this.told.values]);
    this.model.drivers = this.told.drivers.map((driver) => ({ ...driver }));
    this.drivers.show(this.model.drivers);
  }

  private setLive(on: boolean): void {
    this.transport.close(false);
    this.live = on;
    this.send('live', { on });
  }

  private startClip(clip: wire.ClipData): void {
    if (clip.bodies !== this.stage.parts.length - 1) return;
    this.clipNumber = clip.number ?? 0;
    this.largestReaction = largest(clip.reactions);
    this.tools.hasForces(clip.reactions.size > 0);
    this.transport.start(clip);
    this.traceClip();
    if (clip.kind !== 'wiggle') this.offerLines();
    this.showPlayer(this.player!);
  }

  /** Paths of traced points over a whole clip. */
  private traceClip(): void {
    if (!this.player || this.player.clip.kind === 'wiggle') return;
    this.stage.traces.restart();
    for (const poses of this.player.clip.poses) {
      this.stage.place(poses);
      this.stage.traces.grow();
    }
    this.stage.place(this.poses);
  }

  private showPlayer(player: Player): void {
    this.draw(player.poses);
    this.stage.contacts.place(player.clip.contacts[player.index] ?? null);
    this.drawReactions();
    this.plots.seek(player.time);
  }

  /** Go on from the pose that a clip shows. */
  private leaveClip(): void {
    const { player } = this;
    if (!player) return;
    if (player.clip.kind !== 'wiggle' && this.link) this.send('at', { clip: this.clipNumber, index: player.index });
    this.transport.close(false);
  }

  private clipClosed(back: boolean): void {
    this.stage.showReactions([], 0);
    this.tools.hasForces(false);
    if (this.model) this.offerLines();
    if (back && this.frame) {
      this.draw(this.frame.poses);
      this.stage.contacts.place(this.frame.contacts);
      this.takeValues();
    }
  }

  private drawReactions(): void {
    const { player } = this;
    const forces = player && this.reactionsShown ? reactions(player, this.stage) : [];
    this.stage.showReactions(forces, this.largestReaction);
  }

  private async replay(recording: Recording): Promise<void> {
    const { scene, clip } = await unpack(recording);
    this.setScene(scene);
    this.setModel(recording.model);
    this.startClip(clip);
  }

  // -- texts ---------------------------------------------------------------------------------------------------------

  private beforeDraw(): void {
    this.joints.place();
    this.cube.update();
    this.pull.show(this.hand, this.frame, this.stops, this.live);
    this.showTexts(performance.now());
  }

  /** Values, numbers and plots: at most every 80 ms, and less often where drawing is slow. */
  private showTexts(now: number, atOnce = false): void {
    if (now < this.nextTexts && !atOnce) return;
    this.nextTexts = now + (this.stage.software && this.stage.busy ? 3 : 1) * TEXTS;
    if (this.model && this.poses.length === 7 * (this.stage.parts.length - 1)) {
      this.valuesNow.update(this.poses, this.player);
      const recorded = (c: wire.CoordinateData) => this.valuesNow.recorded(c, this.player);
      if (this.link) this.drivers.follow(this.model.drivers, this.poses, recorded);
      this.joints.show();
    }
    this.status.show(this.freedoms, this.frame, this.stops);
    this.plots.update();
  }
}

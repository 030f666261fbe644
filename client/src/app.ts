// The page: panels around the drawing, and what they do.

import * as THREE from 'three';
import * as coordinates from './coordinates';
import { h, icon, iconButton } from './dom';
import { type Grab, Hand } from './hand';
import { Link } from './link';
import { Player } from './player';
import { keyOf, type Line, MOST_LINES, Plots } from './plots';
import { Stage, THEMES } from './stage';
import * as wire from './wire';

const TITLE = (name: string) =>
  name === 'rsur' ? 'RSUR' : name.replace(/_/g, ' ').replace(/^./, (c) => c.toUpperCase());
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const MOST_LABELS = 40;
const TEXTS = 80; // ms between changes of the numbers that people read
const SEEN = 3; // pixels: a shorter arrow is not seen, so its force is not shown either
const LATE = 100; // ms after which they are shown although nothing is drawn

export interface Recording {
  scene: string; // compressed, base64
  model: wire.Model;
  clip: wire.ClipHeader & { data: string };
}

interface Freedoms {
  dof: number;
  undriven: number;
  redundant: number;
  assembled: boolean;
  motions: string[] | null;
}

export class App {
  readonly stage: Stage;
  readonly hand: Hand;
  readonly plots: Plots;
  link: Link | null = null;
  scene: wire.SceneData | null = null;
  model: wire.Model | null = null;
  player: Player | null = null;
  freedoms: Freedoms | null = null;
  frame: wire.FrameData | null = null;
  poses: Float32Array = new Float32Array(0); // that are drawn
  values: number[] = []; // of the coordinates, in the poses drawn
  selected = -1;
  problems: string[] = [];
  framesApplied = 0;
  private item = new URLSearchParams(location.search).get('item') ?? '';
  private clipNumber = 0;
  private mode: 'move' | 'simulate' = 'move';
  private duration = 2;
  private lines: Line[] = [];
  private readonly ofJoint = new Map<string, number[]>(); // numbers of the coordinates of a joint
  private byKey = new Map<string, number>(); // number of a coordinate by the key of its line
  private pins = new Set<number>();
  private kept: string[] = [];
  private live = false;
  private keepsCamera = false; // the next scene is another version of this one
  private stops: string[] = []; // limits that hold, in words
  private reactionsShown = false;
  private labelsShown = false;
  private restoring: { item: string; poses: number[] } | null = null;
  private pickPoint: THREE.Vector3 | null = null;
  private last = performance.now();
  private nextValues = 0;
  private cubeLook = '';
  private largestReaction = 0;
  private theme: 'light' | 'dark';
  private hovered = -1;

  // elements that change
  private readonly canvas = h('canvas', { id: 'stage', tabindex: 0, 'aria-label': 'The mechanism; drag its parts' });
  private readonly picker = h('button', {
    id: 'picker',
    type: 'button',
    'aria-haspopup': 'listbox',
    click: () => this.toggleGallery(),
  });
  private readonly gallery = h('div', { id: 'gallery', class: 'card', hidden: true, role: 'listbox' });
  private readonly partRows = h('div', { class: 'rows', id: 'parts' });
  private readonly jointRows = h('div', { class: 'rows', id: 'joints', hidden: true });
  private readonly partTab = h('button', {
    type: 'button',
    role: 'tab',
    'aria-selected': true,
    click: () => this.tab(true),
  });
  private readonly jointTab = h('button', {
    type: 'button',
    role: 'tab',
    'aria-selected': false,
    click: () => this.tab(false),
  });
  private readonly freedomList = h('section', { id: 'freedoms' });
  private readonly driverList = h('section', { id: 'drivers', hidden: true });
  private readonly partCard = h('section', { id: 'part', hidden: true });
  private readonly poseList = h('section', { id: 'poses' });
  private readonly plotChips = h('div', { class: 'chips', id: 'chips' });
  private readonly plotChoice = h('select', {
    id: 'plot-choice',
    'aria-label': 'Add a line to the plot',
    change: () => this.addLine(),
  });
  private readonly plotHolder = h('div', { id: 'plot' });
  private readonly status = h('div', { id: 'status', class: 'card', role: 'status' });
  private readonly lamp = h('span', { id: 'lamp', title: 'not connected' });
  private readonly dofText = h('span', { id: 'dof' });
  private readonly residualText = h('span', { id: 'residual' });
  private readonly stepText = h('span', { id: 'step' });
  private readonly stopText = h('span', { id: 'stops', hidden: true });
  private readonly playButton = iconButton('play', 'Play (space)', () => this.togglePlay(), { id: 'play' });
  private readonly stopButton = iconButton('stop', 'Back to the pose before', () => this.endClip(), {
    id: 'end',
    disabled: true,
  });
  private readonly moveButton = h(
    'button',
    { type: 'button', role: 'radio', id: 'mode-move', click: () => this.setMode('move') },
    'Drive',
  );
  private readonly simulateButton = h(
    'button',
    { type: 'button', role: 'radio', id: 'mode-simulate', click: () => this.setMode('simulate') },
    'Simulate',
  );
  private readonly scrub = h('input', {
    id: 'scrub',
    type: 'range',
    min: 0,
    max: 1000,
    value: 0,
    disabled: true,
    'aria-label': 'Time',
    input: () => this.scrubbed(),
  });
  private readonly timeText = h('span', { id: 'time' });
  private readonly durationField = h('input', {
    id: 'duration',
    type: 'number',
    min: 0.1,
    max: 600,
    step: 0.1,
    value: 2,
    'aria-label': 'Duration in seconds',
    change: () => this.setDuration(),
  });
  private readonly speedField = h('select', { id: 'speed', 'aria-label': 'Speed', change: () => this.setSpeed() });
  private readonly labels = h('div', { id: 'labels', 'aria-hidden': 'true' });
  private readonly tip = h('div', { class: 'tip', id: 'tip', hidden: true });
  private readonly forceTip = h('div', { class: 'tip force', id: 'force', hidden: true });
  private readonly messages = h('div', { id: 'messages', role: 'alert' });
  private readonly progressCard = h('div', { id: 'progress', class: 'card', hidden: true });
  private readonly progressBar = h('progress', { max: 1, 'aria-label': 'Progress' });
  private readonly cube = h('div');
  private readonly toggles: Record<string, HTMLButtonElement> = {};
  private marks: { joint: number; node: HTMLElement }[] = [];
  private jointValues: HTMLElement[] = [];

  constructor(root: HTMLElement, recording: Recording | null) {
    const wanted = localStorageGet('cardan-theme');
    this.theme =
      wanted === 'dark' || wanted === 'light'
        ? wanted
        : matchMedia('(prefers-color-scheme: dark)').matches
          ? 'dark'
          : 'light';
    document.documentElement.dataset.theme = this.theme;
    root.append(this.canvas, this.labels);
    this.labels.append(this.tip, this.forceTip);
    this.stage = new Stage(this.canvas);
    this.plots = new Plots(this.plotHolder);
    this.layout(root, recording !== null);
    this.stage.setTheme(THEMES[this.theme]);
    this.stage.onDraw = () => this.beforeDraw();
    this.hand = new Hand(this.stage, {
      canDrag: (part) => part > 0 && !recording,
      grab: (grab) => this.grab(grab),
      drag: (grab, stamp) => this.drag(grab, stamp),
      drop: (grab) => this.drop(grab),
      hover: (part, x, y) => this.hover(part, x, y),
      select: (part, point) => this.select(part, point),
    });
    const resize = () => this.stage.resize(innerWidth, innerHeight);
    addEventListener('resize', resize);
    resize();
    addEventListener('keydown', (event) => this.key(event));
    addEventListener('pointerdown', (event) => {
      if (!this.gallery.hidden && !(event.target as Element).closest('#gallery, #picker')) this.toggleGallery(false);
    });
    const loop = (now: number) => {
      requestAnimationFrame(loop);
      this.tick(now);
    };
    requestAnimationFrame(loop);
    if (recording) void this.replay(recording);
    else this.connect();
  }

  // -- layout --------------------------------------------------------------------------------------------------------

  private layout(root: HTMLElement, recorded: boolean): void {
    const toggle = (name: string, mark: string, label: string, get: () => boolean, set: (on: boolean) => void) => {
      const button = iconButton(
        mark,
        label,
        () => {
          set(!get());
          button.setAttribute('aria-pressed', String(get()));
        },
        { id: `toggle-${name}`, 'aria-pressed': String(get()) },
      );
      this.toggles[name] = button;
      return button;
    };
    const { stage } = this;
    const tools = h(
      'div',
      { id: 'tools', class: 'card', role: 'toolbar', 'aria-label': 'View' },
      recorded ? null : iconButton('undo', 'Undo (Ctrl+Z)', () => this.send('undo'), { id: 'undo' }),
      recorded ? null : iconButton('reset', 'Back to the first pose (R)', () => this.send('reset'), { id: 'reset' }),
      recorded ? null : h('hr'),
      iconButton('fit', 'Show everything (F)', () => stage.fit(), { id: 'fit' }),
      toggle(
        'ortho',
        'box',
        'Orthographic view (O)',
        () => stage.orthographic,
        (on) => {
          stage.orthographic = on;
        },
      ),
      toggle(
        'joints',
        'joint',
        'Joints (J)',
        () => stage.marksShown,
        (on) => {
          stage.marksShown = on;
        },
      ),
      toggle(
        'labels',
        'tag',
        'Names and values of joints (N)',
        () => this.labelsShown,
        (on) => {
          this.labelsShown = on;
          this.labelJoints();
        },
      ),
      toggle(
        'reactions',
        'arrow',
        'Forces in the joints, while a motion is shown',
        () => this.reactionsShown,
        (on) => {
          this.reactionsShown = on;
          this.drawReactions();
        },
      ),
      toggle(
        'grid',
        'grid',
        'Grid (G)',
        () => stage.gridShown,
        (on) => {
          stage.gridShown = on;
        },
      ),
      toggle(
        'shadows',
        'shade',
        'Shadows',
        () => stage.shadows,
        (on) => {
          stage.shadows = on;
        },
      ),
      h('hr'),
      iconButton(this.theme === 'dark' ? 'sun' : 'moon', 'Dark or light', () => this.switchTheme(), { id: 'theme' }),
      iconButton('help', 'Help (?)', () => help.showModal(), { id: 'help' }),
    );
    const help = this.helpDialog();
    for (const [label, direction, turn] of FACES) {
      const face = h('button', { type: 'button', tabindex: -1, click: () => stage.look(direction) }, label);
      face.style.transform = `${turn} translateZ(26px)`;
      this.cube.append(face);
    }
    for (const speed of SPEEDS)
      this.speedField.append(h('option', { value: speed, selected: speed === 1 }, `${speed}×`));
    this.status.append(this.lamp, this.dofText, this.residualText, this.stepText, this.stopText);
    this.lamp.hidden = recorded;
    this.progressCard.append(
      'Computing',
      this.progressBar,
      h('button', { type: 'button', class: 'button small', id: 'cancel', click: () => this.send('stop') }, 'Stop'),
    );
    this.partTab.append('Parts ', h('em', {}));
    this.jointTab.append('Joints ', h('em', {}));
    root.append(
      h('div', { id: 'title', class: 'card' }, this.picker),
      this.gallery,
      h(
        'nav',
        { id: 'tree', class: 'card', 'aria-label': 'Parts and joints' },
        h('div', { class: 'tabs', role: 'tablist' }, this.partTab, this.jointTab),
        this.partRows,
        this.jointRows,
      ),
      h(
        'aside',
        { id: 'side', class: 'card', 'aria-label': 'Properties' },
        this.partCard,
        this.freedomList,
        this.driverList,
        h(
          'section',
          {},
          h('h2', {}, 'Plot', h('span', { class: 'push' }), this.plotChoice),
          this.plotChips,
          this.plotHolder,
        ),
        recorded ? null : this.poseList,
      ),
      tools,
      h('div', { id: 'cube', 'aria-hidden': 'true' }, this.cube),
      h(
        'div',
        { id: 'transport', class: 'card', role: 'toolbar', 'aria-label': 'Time' },
        this.playButton,
        this.stopButton,
        recorded ? null : h('div', { class: 'segments', role: 'radiogroup' }, this.moveButton, this.simulateButton),
        recorded ? null : h('label', { class: 'field' }, this.durationField, 's'),
        this.scrub,
        this.timeText,
        this.speedField,
        recorded
          ? null
          : toggle(
              'live',
              'weight',
              'Gravity, live: parts fall, and a drag pulls with a force (L)',
              () => this.live,
              (on) => this.setLive(on),
            ),
      ),
      this.status,
      this.progressCard,
      this.messages,
      help,
    );
    if (recorded) this.stopButton.hidden = true;
    this.setMode('move');
    this.showTime();
  }

  private helpDialog(): HTMLDialogElement {
    const rows: [string, string][] = [
      ['Drag a part', 'it follows as far as its joints allow; the camera stays still'],
      ['Ctrl + drag', 'pull it with a force, under gravity'],
      ['Drag the background', 'turn the view; right button: shift it; wheel: zoom'],
      ['Click a part', 'select it: hide, see through, pin, trace'],
      ['Arrow keys', 'move the selected part, or step through a motion'],
      ['Space', 'play or pause'],
      ['Ctrl + Z · R · F', 'undo · first pose · show everything'],
      ['H · T · P · X', 'of the selected part: hide · see through · pin · trace'],
      ['J · N · G · O · L', 'joints · names · grid · orthographic · live gravity'],
    ];
    const list = h('dl');
    for (const [key, text] of rows) list.append(h('dt', {}, h('kbd', {}, key)), h('dd', {}, text));
    const dialog = h('dialog', { id: 'help-text' }, h('h3', {}, 'How to use it'), list);
    dialog.addEventListener('click', () => dialog.close());
    return dialog;
  }

  private switchTheme(): void {
    this.theme = this.theme === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = this.theme;
    localStorageSet('cardan-theme', this.theme);
    this.stage.setTheme(THEMES[this.theme]);
    const button = document.querySelector('#theme')!;
    button.replaceChildren(icon(this.theme === 'dark' ? 'sun' : 'moon'));
    this.plots.show(this.lines, this.player?.clip ?? null);
  }

  private tab(parts: boolean): void {
    this.partTab.setAttribute('aria-selected', String(parts));
    this.jointTab.setAttribute('aria-selected', String(!parts));
    this.partRows.hidden = !parts;
    this.jointRows.hidden = parts;
    if (!parts) this.nextValues = 0;
  }

  // -- connection ----------------------------------------------------------------------------------------------------

  private connect(): void {
    const token = new URLSearchParams(location.search).get('token') ?? '';
    const address = () =>
      `ws://${location.host}/ws?token=${encodeURIComponent(token)}&item=${encodeURIComponent(this.item)}`;
    if (!token) {
      this.message(
        'The address is not complete',
        'Open the address that “cardan view” prints; it ends in a token.',
        'error',
      );
      return;
    }
    this.link = new Link(address, {
      open: () => {
        this.lamp.classList.add('on');
        this.lamp.title = 'connected';
        document.querySelector('.message.lost')?.remove();
      },
      closed: () => {
        this.lamp.classList.remove('on');
        this.lamp.title = 'not connected';
        this.hand.cancel();
        this.setProgress(null);
        if (this.model && this.poses.length) this.restoring = { item: this.model.item, poses: Array.from(this.poses) };
        if (!document.querySelector('.message.lost')) {
          this.message(
            'The server does not answer',
            'The page connects again by itself when “cardan view” runs.',
            'warning',
            'lost',
          );
        }
      },
      text: (message) => this.receive(message),
      binary: (data) => this.receiveBinary(data),
    });
  }

  private send(what: string, values: Record<string, unknown> = {}): void {
    this.link?.send({ do: what, ...values });
  }

  private receive(message: Record<string, unknown>): void {
    switch (message.is) {
      case 'reloading':
        this.keepsCamera = true;
        break;
      case 'gallery':
        this.fillGallery(message.items as { name: string; title: string }[]);
        break;
      case 'model':
        this.setModel(message as unknown as wire.Model);
        break;
      case 'freedoms':
        this.freedoms = message as unknown as Freedoms;
        this.showFreedoms();
        break;
      case 'drivers':
        if (this.model) this.model.drivers = message.drivers as wire.Driver[];
        this.showDrivers();
        break;
      case 'pins':
        this.pins = new Set((message.bodies as number[]).map((b) => b + 1));
        this.markRows();
        this.showPart();
        break;
      case 'poses':
        this.kept = message.names as string[];
        this.showPoses();
        break;
      case 'stops':
        this.stops = message.texts as string[];
        this.stage.redraw();
        break;
      case 'progress':
        this.setProgress(message.part as number | null);
        break;
      case 'live':
        this.live = message.on as boolean;
        this.toggles.live?.setAttribute('aria-pressed', String(this.live));
        break;
      case 'problem':
        this.problem(message);
        break;
      case 'refused':
        this.message('A request was refused', String(message.text), 'warning');
        break;
    }
  }

  private problem(message: Record<string, unknown>): void {
    const text = String(message.text);
    this.problems.push(`${message.title}: ${text}`);
    this.message(String(message.title), text, String(message.level));
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
    this.scene = scene;
    this.player = null;
    this.frame = null;
    this.freedoms = null;
    this.lines = [];
    this.pins.clear();
    this.kept = [];
    this.select(-1, null);
    if (!this.keepsCamera) this.stage.unfit();
    this.stage.build(scene, this.keepsCamera);
    this.keepsCamera = false;
    this.stage.marksShown = this.toggles.joints.getAttribute('aria-pressed') === 'true';
    this.poses = scene.poses.slice(7);
    for (const message of [...document.querySelectorAll('.message:not(.lost)')]) message.remove();
    this.problems = [];
    this.clipNumber = 0;
  }

  private setModel(model: wire.Model): void {
    this.model = model;
    this.item = model.item;
    this.values = [];
    this.ofJoint.clear();
    model.coordinates.forEach((c, k) => {
      this.ofJoint.set(c.joint, [...(this.ofJoint.get(c.joint) ?? []), k]);
    });
    this.byKey = new Map(model.coordinates.map((c, k) => [keyOf(this.nameOf(c), c.kind), k]));
    document.title = `${TITLE(model.item === 'own' ? model.title : model.item)} · Cardan`;
    this.picker.replaceChildren(
      h('b', {}, TITLE(model.item === 'own' ? model.title : model.item)),
      h('small', {}, model.item === 'own' ? (this.link ? 'your mechanism' : 'recorded motion') : model.title),
      icon('down'),
    );
    this.duration = model.duration || 2;
    this.durationField.value = String(this.duration);
    this.setMode(model.drivers.length ? 'move' : 'simulate');
    this.moveButton.disabled = !model.drivers.length;
    this.listParts();
    this.listJoints();
    this.showDrivers();
    this.showFreedoms();
    this.showPoses();
    this.choosePlots();
    this.endClip(false);
    this.labelJoints();
    if (this.link) {
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
    if (!this.player) this.draw(frame.poses);
    this.link?.answered(frame.ack);
    if (frame.ack && this.hand.retarget()) this.drag(this.hand.grab!, performance.now());
    this.stage.growTraces();
    this.stage.redraw(); // which shows the force and the numbers
    if (this.model && !this.player) this.plots.push(performance.now() / 1000, (key) => this.liveValue(key));
  }

  /** Place the parts, and remember where they are. */
  private draw(poses: Float32Array): void {
    this.poses = poses;
    this.stage.place(poses);
  }

  private liveValue(key: string): number | undefined {
    if (key === 'hand|force')
      return this.frame && this.frame.flags & wire.GRASPED ? Math.hypot(...this.frame.force) : 0;
    const found = this.byKey.get(key);
    if (found === undefined) return undefined;
    return coordinates.value(this.model!.coordinates[found], this.poses, this.values[found]);
  }

  private nameOf(coordinate: wire.CoordinateData): string {
    const several = this.ofJoint.get(coordinate.joint)!.length > 1;
    return several && coordinate.name !== 'angle' ? `${coordinate.joint}.${coordinate.name}` : coordinate.joint;
  }

  // -- gallery -------------------------------------------------------------------------------------------------------

  private fillGallery(items: { name: string; title: string }[]): void {
    this.gallery.replaceChildren(
      ...items.map(({ name, title }) =>
        h(
          'button',
          { type: 'button', role: 'option', 'data-item': name, click: () => this.load(name) },
          h('b', {}, TITLE(name === 'own' ? title : name)),
          h('span', {}, name === 'own' ? 'your mechanism' : title),
        ),
      ),
    );
  }

  private toggleGallery(open = this.gallery.hidden): void {
    this.gallery.hidden = !open;
    this.picker.setAttribute('aria-expanded', String(open));
    for (const button of this.gallery.querySelectorAll('button')) {
      button.setAttribute('aria-current', String(button.dataset.item === this.model?.item));
    }
    if (open)
      (
        this.gallery.querySelector<HTMLElement>('[aria-current="true"]') ??
        this.gallery.querySelector<HTMLElement>('button')
      )?.focus();
  }

  load(item: string): void {
    this.toggleGallery(false);
    this.restoring = null;
    this.send('load', { item });
    this.canvas.focus();
  }

  // -- lists ---------------------------------------------------------------------------------------------------------

  private listParts(): void {
    const { parts } = this.stage;
    this.partTab.querySelector('em')!.textContent = String(parts.length - 1);
    this.partRows.replaceChildren(
      ...parts.map((part, k) => {
        const dot = h('span', { class: 'dot' });
        dot.style.background = `rgb(${part.color.slice(0, 3).map((c) => Math.round(255 * c))})`;
        return h(
          'div',
          {
            class: 'row',
            'data-part': k,
            pointerenter: () => this.stage.hover(k),
            pointerleave: () => this.stage.hover(-1),
          },
          h(
            'button',
            { type: 'button', class: 'name', click: () => this.select(this.selected === k ? -1 : k, null) },
            dot,
            h('span', {}, part.name),
          ),
          k
            ? iconButton('pin', `Pin ${part.name}`, () => this.pin(k), {
                class: 'icon-button small pin',
                'aria-pressed': 'false',
              })
            : null,
          iconButton('ghost', `See through ${part.name}`, () => this.setGhost(k), {
            class: 'icon-button small ghost',
            'aria-pressed': 'false',
          }),
          iconButton('eye', `Hide ${part.name}`, () => this.setVisible(k), {
            class: 'icon-button small eye',
            'aria-pressed': 'false',
          }),
        );
      }),
    );
  }

  private markRows(): void {
    this.partRows.querySelectorAll<HTMLElement>('.row').forEach((row, k) => {
      const part = this.stage.parts[k];
      if (!part) return;
      row.classList.toggle('on', k === this.selected);
      row.classList.toggle('over', k === this.hovered);
      row.classList.toggle('off', !part.visible);
      row.querySelector('.ghost')?.setAttribute('aria-pressed', String(part.ghost));
      row.querySelector('.pin')?.setAttribute('aria-pressed', String(this.pins.has(k)));
      const eye = row.querySelector('.eye')!;
      eye.setAttribute('aria-pressed', String(!part.visible));
      eye.replaceChildren(icon(part.visible ? 'eye' : 'hidden'));
    });
  }

  private setVisible(part: number): void {
    this.stage.show(part, !this.stage.parts[part].visible);
    this.markRows();
    this.showPart();
  }

  private setGhost(part: number): void {
    this.stage.ghost(part, !this.stage.parts[part].ghost);
    this.markRows();
    this.showPart();
  }

  private pin(part: number): void {
    this.send('pin', { body: part - 1, on: !this.pins.has(part) });
  }

  private setTrace(part: number): void {
    if (this.stage.traced(part)) this.stage.trace(part, null);
    else {
      const local = this.pickPoint ? this.stage.toLocal(part, this.pickPoint) : this.farthest(part);
      this.stage.trace(part, local);
      this.traceClip();
      this.stage.growTraces();
    }
    this.showPart();
  }

  /** The place of a joint that is farthest from the origin of a part. */
  private farthest(part: number): THREE.Vector3 {
    const { name } = this.stage.parts[part];
    const places = this.scene!.joints.flatMap((joint) => [
      joint.frame_a && joint.bodies[0] === name ? joint.frame_a.origin : null,
      joint.frame_b && joint.bodies[joint.bodies.length - 1] === name ? joint.frame_b.origin : null,
    ]).filter((p): p is wire.Triple => p !== null);
    const found = places.sort((a, b) => Math.hypot(...b) - Math.hypot(...a))[0];
    return new THREE.Vector3(...(found ?? [0, 0, 0]));
  }

  private listJoints(): void {
    const joints = this.scene!.joints;
    this.jointTab.querySelector('em')!.textContent = String(joints.length);
    this.jointValues = [];
    this.jointRows.replaceChildren(
      ...joints.map((joint) => {
        const value = h('span', { class: 'value', 'data-joint': joint.name });
        this.jointValues.push(value);
        return h(
          'div',
          { class: 'row', title: `${joint.kind} ${joint.name}: ${joint.bodies.join(' – ')}` },
          h(
            'span',
            { class: 'name' },
            h('span', {}, joint.name, ' ', h('span', { class: 'kind' }, joint.kind.replace(/_/g, ' '))),
          ),
          value,
        );
      }),
    );
  }

  private showFreedoms(): void {
    const found = this.freedoms;
    const recorded = !this.link;
    const rows: Node[] = [];
    if (!found) rows.push(h('p', { class: 'hint' }, recorded ? 'A recorded motion.' : 'Computing …'));
    else if (found.motions === null)
      rows.push(h('p', { class: 'hint' }, 'Too many parts for a list. Drag a part to see how it moves.'));
    else if (!found.motions.length) rows.push(h('p', { class: 'hint' }, 'Nothing can move: it is a structure.'));
    else {
      found.motions.slice(0, 12).forEach((text, k) => {
        const [first] = text.split('; ');
        rows.push(
          h(
            'div',
            { class: 'freedom', title: text },
            h('span', {}, first),
            h(
              'button',
              { type: 'button', class: 'button small wiggle', click: () => this.send('wiggle', { freedom: k }) },
              'Wiggle',
            ),
          ),
        );
      });
      if (found.motions.length > 12) rows.push(h('p', { class: 'hint' }, `and ${found.motions.length - 12} more`));
    }
    if (found?.redundant) rows.push(h('p', { class: 'hint' }, `${found.redundant} of its equations are redundant.`));
    this.freedomList.hidden = recorded;
    this.freedomList.replaceChildren(
      h('h2', {}, found ? plural(found.dof, 'degree of freedom', 'degrees of freedom') : 'Degrees of freedom'),
      ...rows,
    );
    this.showNumbers();
  }

  private showDrivers(): void {
    const drivers = this.model?.drivers ?? [];
    this.driverList.hidden = !drivers.length || !this.link;
    if (this.driverList.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement) {
      for (const driver of drivers) this.updateDriver(driver); // the user holds a slider: keep the elements
      return;
    }
    this.driverList.replaceChildren(
      h('h2', {}, drivers.length === 1 ? 'Driver' : 'Drivers'),
      ...drivers.map((driver) => {
        const scale = driver.unit === 'rad' ? 180 / Math.PI : 1000;
        const unit = driver.unit === 'rad' ? '°' : 'mm';
        const range = h('input', {
          type: 'range',
          min: driver.lower * scale,
          max: driver.upper * scale,
          step: 'any',
          value: driver.value * scale,
          'data-driver': driver.name,
          'aria-label': `${driver.name} in ${unit}`,
          input: () => {
            field.value = Number(range.value).toFixed(2);
            this.drive(driver.name, Number(range.value) / scale);
          },
        });
        const field = h('input', {
          type: 'number',
          step: 'any',
          value: coordinates.fixed(driver.value * scale),
          'data-driver-value': driver.name,
          'aria-label': `${driver.name} in ${unit}`,
          change: () => {
            range.value = field.value;
            this.drive(driver.name, Number(field.value) / scale);
          },
        });
        return h(
          'div',
          { class: 'driver' },
          h(
            'span',
            {},
            driver.name,
            ' ',
            h('span', { class: 'hint' }, !driver.of || driver.of === driver.name ? '' : `drives ${driver.of}`),
          ),
          h('label', { class: 'field' }, field, unit),
          range,
        );
      }),
    );
  }

  private updateDriver(driver: wire.Driver): void {
    const scale = driver.unit === 'rad' ? 180 / Math.PI : 1000;
    for (const [key, value] of [
      ['data-driver', driver.value * scale],
      ['data-driver-value', coordinates.fixed(driver.value * scale)],
    ]) {
      const element = this.driverList.querySelector<HTMLInputElement>(`[${key}=${JSON.stringify(driver.name)}]`);
      if (element && element !== document.activeElement) element.value = String(value);
    }
  }

  private drive(driver: string, value: number): void {
    if (!Number.isFinite(value)) return;
    this.leaveClip();
    this.link?.stream({ do: 'drive', driver, value }, performance.now());
  }

  private showPoses(): void {
    const name = h('input', {
      type: 'text',
      id: 'pose-name',
      placeholder: 'name',
      maxlength: 40,
      'aria-label': 'Name of the pose',
      size: 12,
    });
    const keep = () => {
      const given = name.value.trim() || `pose ${this.kept.length + 1}`;
      this.leaveClip();
      this.send('keep', { name: given });
    };
    name.addEventListener('keydown', (event) => event.key === 'Enter' && keep());
    this.poseList.replaceChildren(
      h(
        'h2',
        {},
        'Poses',
        h('span', { class: 'push' }),
        name,
        iconButton('plus', 'Keep this pose', keep, { id: 'keep', class: 'icon-button small' }),
      ),
      this.kept.length
        ? h(
            'div',
            { class: 'chips' },
            ...this.kept.map((kept) =>
              h(
                'button',
                { type: 'button', class: 'chip plain', 'data-pose': kept, click: () => this.pose(kept) },
                kept,
              ),
            ),
          )
        : h('p', { class: 'hint' }, 'Keep a pose, and return to it with one click.'),
    );
  }

  private pose(name: string): void {
    this.endClip(false);
    this.send('pose', { name });
  }

  private showPart(): void {
    const part = this.stage.parts[this.selected];
    this.partCard.hidden = !part;
    if (!part) return;
    const k = this.selected;
    const mark = (name: string, label: string, on: boolean, click: () => void) =>
      iconButton(name, label, click, { 'aria-pressed': String(on), 'data-action': name });
    const joints = this.scene!.joints.filter((joint) => joint.bodies.includes(part.name));
    this.partCard.replaceChildren(
      h(
        'h2',
        {},
        part.name,
        h('span', { class: 'push' }),
        k ? mark('pin', 'Pin it to the ground (P)', this.pins.has(k), () => this.pin(k)) : null,
        k ? mark('trace', 'Trace the picked point (X)', this.stage.traced(k), () => this.setTrace(k)) : null,
        mark('ghost', 'See through (T)', part.ghost, () => this.setGhost(k)),
        mark(part.visible ? 'eye' : 'hidden', 'Hide (H)', !part.visible, () => this.setVisible(k)),
      ),
      h(
        'p',
        { class: 'hint' },
        joints.length
          ? `joints: ${joints
              .map((joint) => joint.name)
              .slice(0, 8)
              .join(', ')}${joints.length > 8 ? ' …' : ''}`
          : 'no joints',
      ),
    );
  }

  // -- plots ---------------------------------------------------------------------------------------------------------

  private choosePlots(): void {
    const options: Line[] = [];
    const add = (of: string, what: string, unit: string) =>
      options.push({ key: keyOf(of, what), label: what === 'rate' ? `${of} velocity` : `${of} ${what}`, unit });
    if (this.player?.clip.series.length) for (const s of this.player.clip.series) add(s.of, s.what, s.unit);
    else {
      for (const c of this.model?.coordinates ?? []) add(this.nameOf(c), c.kind, c.unit);
      if (this.link) add('hand', 'force', 'N');
    }
    const known = new Set(options.map((o) => o.key));
    this.lines = this.lines.filter((line) => known.has(line.key));
    const first = options.find((o) =>
      this.model?.drivers.every((d) => keyOf(d.of, 'angle') !== o.key && keyOf(d.of, 'displacement') !== o.key),
    );
    if (!this.lines.length && first) this.lines = [first];
    this.plotChoice.replaceChildren(
      h('option', { value: '' }, 'add …'),
      ...options
        .filter((o) => !this.lines.some((l) => l.key === o.key))
        .map((o) => h('option', { value: o.key, 'data-unit': o.unit }, o.label)),
    );
    this.plotChips.replaceChildren(
      ...this.lines.map((line, k) => {
        const dot = h('span', { class: 'dot' });
        dot.style.background = this.plots.colorOf(k);
        const remove = h(
          'button',
          { type: 'button', 'aria-label': `Remove ${line.label}`, click: () => this.removeLine(line.key) },
          icon('close'),
        );
        return h('span', { class: 'chip' }, dot, line.label, remove);
      }),
    );
    this.plots.show(this.lines, this.player?.clip.series.length ? this.player.clip : null);
  }

  addLine(): void {
    const option = this.plotChoice.selectedOptions[0];
    if (option?.value && this.lines.length < MOST_LINES) {
      this.lines.push({ key: option.value, label: option.textContent ?? '', unit: option.dataset.unit ?? '' });
    }
    this.choosePlots();
  }

  private removeLine(key: string): void {
    this.lines = this.lines.filter((line) => line.key !== key);
    if (this.lines.length) this.choosePlots();
    else {
      this.plotChips.replaceChildren();
      this.plots.show([], null);
      this.plotChoice.value = '';
    }
  }

  // -- the hand ------------------------------------------------------------------------------------------------------

  private hover(part: number, x: number, y: number): void {
    for (const [row, over] of [
      [this.hovered, false],
      [part, true],
    ] as const)
      this.partRows.children[row]?.classList.toggle('over', over);
    this.hovered = part;
    this.stage.hover(part);
    this.canvas.classList.toggle('over', part > 0 && Boolean(this.link));
    this.tip.hidden = part < 0;
    if (part >= 0) {
      this.tip.textContent = this.stage.parts[part].name;
      this.tip.style.transform = `translate(${x + 14}px, ${y + 16}px)`;
    }
  }

  private select(part: number, point: THREE.Vector3 | null): void {
    this.selected = part;
    this.pickPoint = point;
    this.stage.select(part);
    this.markRows();
    this.showPart();
    if (part >= 0) this.partRows.children[part]?.scrollIntoView({ block: 'nearest' });
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
    this.stage.arrow.hide();
    this.forceTip.hidden = true;
    this.stage.redraw();
  }

  /** The arrow from the grasped point to the pointer, with the force. */
  private showForce(): void {
    const { grab } = this.hand;
    if (!grab?.moved) {
      this.stage.arrow.hide();
      this.forceTip.hidden = true;
      return;
    }
    const from = this.stage.toWorld(grab.part, grab.local);
    this.stage.arrow.set(from, grab.target, this.stage.pixel(from));
    const { frame } = this;
    const isFar = from.distanceTo(grab.target) > SEEN * this.stage.pixel(from);
    const isShort = isFar && Boolean(frame && frame.flags & wire.SHORT);
    const force = frame && frame.flags & wire.GRASPED ? Math.hypot(...frame.force) : 0;
    this.stage.arrow.color(isShort && !grab.push && !this.live ? 0xd23b45 : 0xf2711c);
    const at = this.stage.screen(grab.target);
    this.forceTip.hidden = !at || !((isFar && force > 0) || this.stops.length);
    this.forceTip.classList.toggle('short', isShort && !grab.push && !this.live);
    setText(this.forceTip, [`${coordinates.quantity(force)} N`, ...this.stops].join('\n'));
    if (at) this.forceTip.style.transform = `translate(${at[0] + 16}px, ${at[1] - 30}px)`;
  }

  /** Move the selected part by keys, in the plane of the view. */
  private nudge(x: number, y: number): void {
    const part = this.selected;
    if (part <= 0 || !this.link) return;
    this.leaveClip();
    const local = this.pickPoint ? this.stage.toLocal(part, this.pickPoint) : this.farthest(part);
    const at = this.stage.toWorld(part, local);
    const step = 12 * this.stage.pixel(at);
    const right = new THREE.Vector3().setFromMatrixColumn(this.stage.camera.matrixWorld, 0);
    const up = new THREE.Vector3().setFromMatrixColumn(this.stage.camera.matrixWorld, 1);
    const target = at.addScaledVector(right, x * step).addScaledVector(up, y * step);
    if (this.pickPoint) this.pickPoint.copy(target);
    this.send('drag', { body: part - 1, point: local.toArray(), target: target.toArray(), push: false });
    this.send('drop');
  }

  private key(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === 'Tab') document.body.classList.add('keys');
    if (event.key === 'Escape') {
      this.hand.cancel();
      this.toggleGallery(false);
      return;
    }
    if (typing) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'z') {
      event.preventDefault();
      this.endClip(false);
      this.send('undo');
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const arrow = arrows[event.key];
    const onButton = event.target instanceof HTMLButtonElement;
    if (arrow) {
      event.preventDefault();
      if (this.selected > 0) this.nudge(...arrow);
      else if (this.player && arrow[0]) {
        this.player.step(arrow[0]);
        this.showPlayer();
      }
      return;
    }
    const part = this.selected;
    const click = (id: string) => document.querySelector<HTMLButtonElement>(`#${id}`)?.click();
    const actions: Record<string, () => void> = {
      f: () => this.stage.fit(),
      r: () => click('reset'),
      o: () => click('toggle-ortho'),
      j: () => click('toggle-joints'),
      n: () => click('toggle-labels'),
      g: () => click('toggle-grid'),
      l: () => click('toggle-live'),
      '?': () => click('help'),
      h: () => part >= 0 && this.setVisible(part),
      t: () => part >= 0 && this.setGhost(part),
      p: () => part > 0 && this.pin(part),
      x: () => part > 0 && this.setTrace(part),
    };
    if (event.key === ' ' && !onButton) {
      event.preventDefault();
      this.togglePlay();
    } else actions[event.key]?.();
  }

  // -- time ----------------------------------------------------------------------------------------------------------

  private setMode(mode: 'move' | 'simulate'): void {
    if (this.mode !== mode) this.endClip(false);
    this.mode = mode;
    this.moveButton.setAttribute('aria-checked', String(mode === 'move'));
    this.simulateButton.setAttribute('aria-checked', String(mode === 'simulate'));
  }

  private setDuration(): void {
    const value = Number(this.durationField.value);
    if (value > 0 && value <= 600) this.duration = value;
    this.durationField.value = String(this.duration);
    this.endClip(false);
  }

  private setSpeed(): void {
    if (this.player) this.player.speed = Number(this.speedField.value);
  }

  private setLive(on: boolean): void {
    this.endClip(false);
    this.live = on;
    this.send('live', { on });
  }

  togglePlay(): void {
    if (this.player && this.player.clip.kind !== 'wiggle') {
      if (!this.player.playing && this.player.time >= this.player.last) this.player.seek(this.player.first);
      this.player.playing = !this.player.playing;
      if (this.player.playing) this.stage.restartTraces();
      this.showTime();
      return;
    }
    this.endClip(false);
    this.send(this.mode === 'move' ? 'play' : 'simulate', { duration: this.duration });
  }

  private startClip(clip: wire.ClipData): void {
    if (clip.bodies !== this.stage.parts.length - 1) return;
    this.clipNumber = clip.number ?? 0;
    this.player = new Player(clip);
    this.player.speed = clip.kind === 'wiggle' ? 1 : Number(this.speedField.value);
    this.scrub.disabled = false;
    this.stopButton.disabled = false;
    this.values = [];
    this.largestReaction = 0;
    for (const force of clip.reactions.values()) {
      for (let k = 0; k < force.length; k += 3)
        this.largestReaction = Math.max(this.largestReaction, Math.hypot(force[k], force[k + 1], force[k + 2]));
    }
    this.traceClip();
    if (clip.kind !== 'wiggle') this.choosePlots();
    this.last = performance.now();
    this.showTime();
  }

  /** Paths of traced points over a whole clip. */
  private traceClip(): void {
    if (!this.player || this.player.clip.kind === 'wiggle') return;
    this.stage.restartTraces();
    for (const poses of this.player.clip.poses) {
      this.stage.place(poses);
      this.stage.growTraces();
    }
    this.stage.place(this.poses);
  }

  private tick(now: number): void {
    const seconds = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    const { player } = this;
    if (player) {
      const was = player.playing;
      player.advance(seconds);
      if (was || this.poses !== player.poses) {
        this.showPlayer();
      }
    }
    if (now >= this.nextValues + LATE) this.showTexts(now);
  }

  /** Values, numbers and plots: at most every 80 ms, in frames that are drawn anyway; at rest without a drawing. */
  private showTexts(now: number): void {
    if (now < this.nextValues) return;
    this.nextValues = now + (this.stage.software && this.stage.busy ? 3 : 1) * TEXTS;
    this.showValues();
    this.showNumbers();
    this.plots.update();
  }

  private scrubbed(): void {
    const { player } = this;
    if (!player) return;
    player.playing = false;
    player.seek(player.first + (Number(this.scrub.value) / 1000) * (player.last - player.first));
    this.showPlayer();
  }

  /** Draw the pose of the player, with its time. */
  private showPlayer(): void {
    if (!this.player) return;
    this.draw(this.player.poses);
    this.showTime();
    this.drawReactions();
    this.plots.seek(this.player.time);
  }

  private showTime(): void {
    const { player } = this;
    const playing = Boolean(player?.playing);
    if (this.playButton.dataset.playing !== String(playing)) {
      this.playButton.dataset.playing = String(playing);
      this.playButton.replaceChildren(icon(playing ? 'pause' : 'play'));
    }
    this.timeText.textContent = player
      ? `${(player.time - player.first).toFixed(2)} / ${(player.last - player.first).toFixed(2)} s`
      : '';
    this.scrub.value =
      player && player.last > player.first
        ? String((1000 * (player.time - player.first)) / (player.last - player.first))
        : '0';
  }

  /** Go on from the pose that a clip shows. */
  private leaveClip(): void {
    const { player } = this;
    if (!player) return;
    if (player.clip.kind !== 'wiggle' && this.link) this.send('at', { clip: this.clipNumber, index: player.index });
    this.closePlayer();
  }

  /** Return to the pose before a clip. */
  private endClip(redraw = true): void {
    if (!this.player) return;
    this.closePlayer();
    if (redraw && this.frame) this.draw(this.frame.poses);
  }

  private closePlayer(): void {
    this.player = null;
    this.scrub.disabled = true;
    this.stopButton.disabled = true;
    this.stage.showReactions([], 0);
    this.choosePlots();
    this.showTime();
  }

  private drawReactions(): void {
    const { player } = this;
    if (!player || !this.reactionsShown || !player.clip.reactions.size) {
      this.stage.showReactions([], 0);
      return;
    }
    const k = player.index;
    const forces = [...player.clip.reactions].flatMap(([name, values]) => {
      const joint = this.stage.joints.find((j) => j.data.name === name);
      if (!joint) return [];
      const at = joint.node.getWorldPosition(new THREE.Vector3());
      return [{ at, force: new THREE.Vector3().fromArray(values, 3 * k) }];
    });
    this.stage.showReactions(forces, this.largestReaction);
  }

  private async replay(recording: Recording): Promise<void> {
    const bytes = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    this.setScene(wire.readScene((await wire.gunzip(bytes(recording.scene))).buffer as ArrayBuffer));
    this.setModel(recording.model);
    this.gallery.remove();
    this.picker.disabled = true;
    const clip = await wire.unpackClip(recording.clip, bytes(recording.clip.data));
    clip.loop = true;
    this.startClip(clip);
  }

  // -- numbers and labels ----------------------------------------------------------------------------------------------

  private showNumbers(): void {
    const { freedoms, frame } = this;
    this.status.hidden = !this.link;
    setText(this.dofText, freedoms ? plural(freedoms.dof, 'degree of freedom', 'degrees of freedom') : '–');
    setText(
      this.residualText,
      `residual ${frame && Number.isFinite(frame.residual) ? frame.residual.toExponential(1) : '–'}`,
    );
    setText(this.stepText, `step ${frame?.milliseconds ? `${frame.milliseconds.toFixed(2)} ms` : '–'}`);
    setText(this.stopText, this.stops.join('; '));
    this.stopText.hidden = !this.stops.length;
  }

  private showValues(): void {
    const { model } = this;
    if (!model || this.poses.length !== 7 * (this.stage.parts.length - 1)) return;
    model.coordinates.forEach((c, k) => {
      this.values[k] = coordinates.value(c, this.poses, this.values[k]);
    });
    for (const driver of this.link ? model.drivers : []) {
      const own = this.ofJoint.get(driver.of) ?? [];
      if (own.length === 1 && !this.player) this.updateDriver({ ...driver, value: this.values[own[0]] });
    }
    if (!this.jointRows.hidden) {
      this.scene!.joints.forEach((joint, k) => {
        const text = this.valuesOf(joint.name);
        if (this.jointValues[k].textContent !== text) this.jointValues[k].textContent = text;
      });
    }
    for (const { joint, node } of this.marks) {
      const { data } = this.stage.joints[joint];
      node.textContent = [data.name, this.valuesOf(data.name)].filter(Boolean).join('  ');
    }
  }

  private valuesOf(joint: string): string {
    return (this.ofJoint.get(joint) ?? [])
      .map((k) => coordinates.show(this.values[k], this.model!.coordinates[k].unit))
      .filter(Boolean)
      .join(', ');
  }

  private labelJoints(): void {
    for (const { node } of this.marks) node.remove();
    this.marks = [];
    if (this.labelsShown) {
      this.marks = this.stage.joints
        .slice(0, MOST_LABELS)
        .map((_, joint) => ({ joint, node: h('div', { class: 'tip mark' }) }));
      this.labels.append(...this.marks.map(({ node }) => node));
      this.nextValues = 0;
    }
    this.stage.redraw();
  }

  private beforeDraw(): void {
    const { camera } = this.stage;
    if (this.marks.length) this.stage.scene.updateMatrixWorld();
    for (const { joint, node } of this.marks) {
      const at = this.stage.screen(this.stage.joints[joint].node.getWorldPosition(new THREE.Vector3()));
      node.hidden = !at;
      if (at) node.style.transform = `translate(${at[0] + 10}px, ${at[1] - 9}px)`;
    }
    const turn = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), this.stage.up);
    const view = new THREE.Matrix4().makeRotationFromQuaternion(camera.quaternion.clone().invert().multiply(turn));
    const e = view.elements; // CSS has y down
    const look = `matrix3d(${[e[0], -e[1], e[2], 0, -e[4], e[5], -e[6], 0, e[8], -e[9], e[10], 0, 0, 0, 0, 1].join(',')})`;
    if (look !== this.cubeLook) this.cube.style.transform = this.cubeLook = look;
    this.showForce();
    this.showTexts(performance.now());
  }

  private setProgress(part: number | null): void {
    this.progressCard.hidden = part === null;
    if (part !== null) this.progressBar.value = part;
  }

  message(title: string, text: string, level: string, mark = ''): void {
    const node = h(
      'div',
      { class: `message ${level} ${mark}` },
      h('b', {}, title),
      iconButton('close', 'Close', () => node.remove(), { class: 'icon-button small' }),
      h('p', {}, text),
    );
    const shown = [...this.messages.children];
    for (const old of shown) if (old.querySelector('b')?.textContent === title) old.remove();
    this.messages.append(node);
    while (this.messages.children.length > 3) this.messages.firstChild!.remove();
  }
}

const FACES: [string, wire.Triple, string][] = [
  ['front', [0, -1, 0.001], 'rotateX(-90deg)'],
  ['back', [0, 1, 0.001], 'rotateX(90deg) rotateZ(180deg)'],
  ['right', [1, 0, 0.001], 'rotateY(90deg) rotateZ(-90deg)'],
  ['left', [-1, 0, 0.001], 'rotateY(-90deg) rotateZ(90deg)'],
  ['top', [0, -0.001, 1], ''],
  ['under', [0, -0.001, -1], 'rotateX(180deg)'],
];

/** Change a text only where it differs: each change costs a layout. */
function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

const plural = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`;

function localStorageGet(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a file from disk may have none
  }
}

function localStorageSet(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // as above: the theme is then not remembered
  }
}

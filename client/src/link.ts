// The connection to the server: one drag in flight, the newest target wins; it reconnects by itself.

export type Message = { do: string; seq?: number; [key: string]: unknown };

const PATIENCE = 400; // ms after which an unanswered request no longer holds back the next
const RETRY = [250, 500, 1000, 2000]; // ms

/** What a connection needs of a WebSocket, so that another channel can take its place. */
export type Socket = Pick<WebSocket, 'send' | 'readyState' | 'binaryType' | 'onopen' | 'onmessage' | 'onclose'>;

const OPEN = 1; // WebSocket.OPEN

export interface Events {
  open(isFirst: boolean): void;
  closed(): void;
  text(message: Record<string, unknown>): void;
  binary(data: ArrayBuffer): void;
}

export class Link {
  private socket: Socket | null = null;
  private seq = 0;
  private flying = 0; // number of the request that is not answered
  private since = 0;
  private waiting: { message: Message; stamp: number } | null = null;
  private attempts = 0;
  private opened = false;
  private stamps = new Map<number, number>();
  readonly latencies: number[] = []; // ms from the event to the poses applied

  constructor(
    private readonly make: () => Socket,
    private readonly events: Events,
  ) {
    this.connect();
    setInterval(() => this.flush(), PATIENCE);
  }

  get connected(): boolean {
    return this.socket?.readyState === OPEN;
  }

  private connect(): void {
    const socket = this.make();
    this.socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.attempts = 0;
      this.flying = 0;
      this.waiting = null;
      this.events.open(!this.opened);
      this.opened = true;
    };
    socket.onmessage = (event) => {
      if (typeof event.data === 'string') this.events.text(JSON.parse(event.data));
      else this.events.binary(event.data);
    };
    socket.onclose = () => {
      this.events.closed();
      setTimeout(() => this.connect(), RETRY[Math.min(this.attempts++, RETRY.length - 1)]);
    };
  }

  /** Send at once; returns the number of the request. */
  send(message: Message): number {
    if (!this.connected) return 0;
    this.seq += 1;
    this.socket!.send(JSON.stringify({ ...message, seq: this.seq }));
    return this.seq;
  }

  /** Send when the request before is answered; a newer one replaces one that waits. stamp: time of the event. */
  stream(message: Message, stamp: number): void {
    this.waiting = { message, stamp };
    this.flush();
  }

  /** Forget what waits. */
  clear(): void {
    this.waiting = null;
    this.flying = 0;
  }

  private flush(): void {
    if (!this.waiting || (this.flying && performance.now() - this.since < PATIENCE)) return;
    const { message, stamp } = this.waiting;
    this.waiting = null;
    this.flying = this.send(message);
    this.since = performance.now();
    if (this.flying) this.stamps.set(this.flying, stamp);
  }

  /** The server has answered a request; called after the poses were applied. */
  answered(ack: number): void {
    const stamp = this.stamps.get(ack);
    if (stamp !== undefined) {
      this.latencies.push(performance.now() - stamp);
      if (this.latencies.length > 5000) this.latencies.shift();
    }
    for (const key of this.stamps.keys()) if (key <= ack) this.stamps.delete(key);
    if (ack >= this.flying) {
      this.flying = 0;
      this.flush();
    }
  }
}

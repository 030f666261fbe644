// What lets the page talk to its server: a code of the address, which is valid once, then a token.

const CODE = 'cardan-code';
const TOKEN = 'cardan-token';

/** Kept for this tab alone, so that a reload connects again; neither stays in the address bar or the history. */
export class Pass {
  private code = recalled(CODE);
  private token = recalled(TOKEN);

  constructor() {
    const address = new URL(location.href);
    const code = address.searchParams.get('code');
    if (!code) return;
    address.searchParams.delete('code');
    history.replaceState(history.state, '', address);
    this.code = code;
    this.token = null; // of another server, perhaps
    recall(CODE, code);
    recall(TOKEN, null);
  }

  get isThere(): boolean {
    return !!(this.code || this.token);
  }

  /** For the address of the WebSocket. */
  get query(): string {
    return this.token ? `token=${encodeURIComponent(this.token)}` : `code=${encodeURIComponent(this.code ?? '')}`;
  }

  /** The server has given its token. */
  keep(token: string): void {
    this.token = token;
    this.code = null;
    recall(TOKEN, token);
    recall(CODE, null);
  }
}

function recalled(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null; // no storage: then a reload needs a new address
  }
}

function recall(key: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
  } catch {
    // see above
  }
}

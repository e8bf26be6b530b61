/** The tokens of callers as HMAC keys: a handshake is checked against all of them, and remembers whose one was right. */
import { type FrameKeys, frameKeysFrom, type FrameMessages } from './frame_keys.ts';
import { importKey, type SecretKeys } from './secret_keys.ts';

interface TokenKey {
  readonly owner: number;
  readonly key: CryptoKey;
}

export class TokenKeys {
  readonly #keys: readonly TokenKey[];

  private constructor(keys: readonly TokenKey[]) {
    this.#keys = keys;
  }

  /** `tokens[i]` are those of owner `i`. */
  static async import(tokens: readonly (readonly string[])[]): Promise<TokenKeys> {
    const keys = tokens.flatMap((texts, owner) => texts.map(async (text) => ({ owner, key: await importKey(text) })));
    return new TokenKeys(await Promise.all(keys));
  }

  /** For one handshake. */
  proof(): TokenProof {
    return new TokenProof(this.#keys);
  }
}

export class TokenProof implements SecretKeys {
  readonly #keys: readonly TokenKey[];
  #proven: TokenKey | undefined;

  constructor(keys: readonly TokenKey[]) {
    this.#keys = keys;
  }

  /** Whose token the other side has proved to hold. */
  get owner(): number | undefined {
    return this.#proven?.owner;
  }

  async sign(message: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    if (this.#proven === undefined) throw new Error('nothing has been proved yet');
    return new Uint8Array(await crypto.subtle.sign('HMAC', this.#proven.key, message));
  }

  /** As in `SecretKeys`. */
  async verify(message: Uint8Array<ArrayBuffer>, mac: Uint8Array): Promise<number> {
    const copy = Uint8Array.from(mac);
    const right = await Promise.all(this.#keys.map(({ key }) => crypto.subtle.verify('HMAC', key, copy, message)));
    const index = right.indexOf(true);
    this.#proven = this.#keys[index];
    return index;
  }

  /** From the token that has been proved. */
  async frameKeys(_token: number, messages: FrameMessages): Promise<FrameKeys> {
    if (this.#proven === undefined) throw new Error('nothing has been proved yet');
    return await frameKeysFrom(this.#proven.key, messages);
  }
}

/**
 * What the actors of this node hold of what other nodes told them: counted when it is put into a mailbox, and until it has been
 * handled or given up. A slow actor that is told faster than it handles costs bounded memory, whoever tells it.
 */
import { MailShare } from '../actor/mailbox.ts';
import { limits } from '../limits.ts';

interface Account {
  messages: number;
  bytes: number;
}

/** Of all peers together, and of one. */
export interface MailBounds {
  readonly messages: number;
  readonly bytes: number;
  readonly peerMessages: number;
  readonly peerBytes: number;
}

const defaults: MailBounds = {
  messages: limits.remoteMailMessages,
  bytes: limits.remoteMailBytes,
  peerMessages: limits.remoteMailPeerMessages,
  peerBytes: limits.remoteMailPeerBytes,
};

export class RemoteMail {
  private readonly all: Account = { messages: 0, bytes: 0 };
  private readonly peers = new Map<string, PeerMail>();
  private readonly bounds: MailBounds;

  constructor(bounds: MailBounds = defaults) {
    this.bounds = bounds;
  }

  get messages(): number {
    return this.all.messages;
  }

  get bytes(): number {
    return this.all.bytes;
  }

  /** Room for a message of the process `uid`; undefined when there is none. */
  share(uid: string, bytes: number): MailShare | undefined {
    const { all, bounds } = this;
    if (all.messages >= bounds.messages || all.bytes >= bounds.bytes) return undefined;
    let peer = this.peers.get(uid);
    if (peer === undefined) this.peers.set(uid, peer = new PeerMail(all, bounds, () => void this.peers.delete(uid)));
    return peer.share(bytes);
  }
}

class PeerMail {
  private readonly own: Account = { messages: 0, bytes: 0 };
  private readonly all: Account;
  private readonly bounds: MailBounds;
  private readonly emptied: () => void;
  /** Messages of one frame are counted with the same size each, and share this. */
  private latest: Share;

  constructor(all: Account, bounds: MailBounds, emptied: () => void) {
    this.all = all;
    this.bounds = bounds;
    this.emptied = emptied;
    this.latest = new Share(this, 0);
  }

  share(bytes: number): MailShare | undefined {
    const { own, bounds } = this;
    if (own.messages >= bounds.peerMessages || own.bytes >= bounds.peerBytes) return undefined;
    this.add(1, bytes);
    if (this.latest.bytes !== bytes) this.latest = new Share(this, bytes);
    return this.latest;
  }

  release(bytes: number): void {
    this.add(-1, -bytes);
    if (this.own.messages === 0) this.emptied();
  }

  private add(messages: number, bytes: number): void {
    const { own, all } = this;
    own.messages += messages;
    own.bytes += bytes;
    all.messages += messages;
    all.bytes += bytes;
  }
}

class Share extends MailShare {
  readonly bytes: number;
  private readonly peer: PeerMail;

  constructor(peer: PeerMail, bytes: number) {
    super();
    this.peer = peer;
    this.bytes = bytes;
  }

  override release(): void {
    this.peer.release(this.bytes);
  }
}

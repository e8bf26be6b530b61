/** What goes wrong on the wire: at the sender (`SerializationError`) and at the receiver (`FrameError`, `DecodeError`). */

/** A value that cannot be sent. Nothing was sent. */
export class SerializationError extends Error {
  override readonly name = 'SerializationError';
  /** Where in the value: `a.items[3].fn`; empty for the value itself. */
  readonly field: string;
  /** What is wrong with it, as a sentence fragment: `is a function, …`. */
  readonly rule: string;
  constructor(field: string, rule: string, cause?: unknown) {
    super(
      `cannot send: ${field === '' ? 'the value' : `field '${field}'`} ${rule}`,
      cause === undefined ? undefined : { cause },
    );
    this.field = field;
    this.rule = rule;
  }
}

/** A message above the limit, refused at the sender; before it is encoded where its size shows early. */
export class MessageTooLargeError extends SerializationError {
  constructor(bytes: number, limit: number) {
    super('', `takes at least ${bytes} bytes encoded; one message is at most ${limit}`);
  }
}

export type FrameErrorCode =
  /** Not one of our frames, or of a version we do not speak. */
  | 'header'
  | 'frame-too-large'
  | 'message-too-large'
  | 'truncated'
  | 'too-deep'
  | 'too-many-items'
  /** A length that does not fit what was received. */
  | 'length'
  /** Indefinite lengths, reserved encodings. */
  | 'encoding'
  /** A CBOR tag that no sender of ours writes. */
  | 'tag'
  | 'simple-value'
  /** An envelope that is not an array starting with an integer. */
  | 'envelope'
  /** Parts of a large message in an impossible order. */
  | 'parts';

/** Bytes from outside that are not a frame. Whoever sent them speaks another language: the link should be closed. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
  readonly code: FrameErrorCode;
  constructor(code: FrameErrorCode, detail: string) {
    super(`malformed frame (${code}): ${detail}`);
    this.code = code;
  }
}

/** Well-formed CBOR whose content cannot become a value here (an unknown class, a bad URL): one message is lost, no more. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

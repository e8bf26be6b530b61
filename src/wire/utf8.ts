/** How many bytes `text` takes on the wire, without encoding it. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // Each half of a pair is two of its four bytes; a half alone becomes U+FFFD, which has three.
    if (unit < 0x800 || isPaired(text, i)) bytes += 1;
    else bytes += 2;
  }
  return bytes;
}

function isPaired(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  if (isHigh(unit)) return isLow(text.charCodeAt(at + 1));
  return isLow(unit) && isHigh(text.charCodeAt(at - 1));
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

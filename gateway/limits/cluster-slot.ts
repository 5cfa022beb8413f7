/** Slot of a Redis Cluster that holds every key with the hash tag `{tag}`: CRC-16 (XMODEM) modulo 16,384. */
export function clusterSlot(tag: string): number {
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % 16_384
}

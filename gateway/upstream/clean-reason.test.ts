import { describe, expect, it } from 'vitest'
import { cleanReason } from './backend-error.ts'

const NAMES = { askedName: 'fast', upstreamModel: 'org/Llama-3' }

describe('the text of a backend', () => {
  it.each([
    ['connect to 10.0.0.7:8000 failed', 'connect to [host] failed'],
    ['see http://llama.shop.svc:8000/v1/x?y for more', 'see [host] for more'],
    ['host llama-0.llama.shop.svc.cluster.local is down', 'host [host] is down'],
    ['at [fd00::1:2:3]:8000 or fe80::a:b:c:d', 'at [host] or [host]'],
    ['at localhost:8000 and gpu-1.example.com:443', 'at [host] and [host]'],
    ['<p>bad <b>value</b></p>', 'bad value'],
    ['model org/Llama-3 has no tools', 'model fast has no tools'],
    ['value must be < 2 and > 0', 'value must be < 2 and > 0'],
    ['top_p 0.95 is fine, version 1.2.3 too', 'top_p 0.95 is fine, version 1.2.3 too'],
    ['at 12:30:15 it failed', 'at 12:30:15 it failed'],
  ])('%j reaches the client as %j', (text, clean) => {
    expect(cleanReason(text, NAMES)).toBe(clean)
  })

  it('is at most 2 KiB and never cut inside a character', () => {
    const clean = cleanReason('é'.repeat(5000), NAMES) ?? ''
    expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(2048)
    expect(clean).not.toContain('\uFFFD')
  })

  it('that contains only tags is dropped', () => {
    expect(cleanReason('<br/>', NAMES)).toBeUndefined()
  })

  it('cannot block the process', () => {
    for (const hostile of ['a.', 'a-', '<a', '1.', ':', 'a:/', '[', 'a.svc']) cleanReason(hostile.repeat(500_000), NAMES)
  })
})

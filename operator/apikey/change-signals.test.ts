import { describe, expect, test } from 'vitest'
import { ChangeSignals } from './change-signals.ts'

const BOT = { namespace: 'shop', name: 'bot' }

describe('ChangeSignals', () => {
  test('a change aborts the signal of its own object, and no other', () => {
    const changes = new ChangeSignals()
    const [bot, other] = [changes.since(BOT), changes.since({ namespace: 'shop', name: 'other' })]
    changes.changed(BOT)
    expect([bot.aborted, other.aborted]).toEqual([true, false])
  })

  test('a change before it is no news, and neither is one after the end', () => {
    const changes = new ChangeSignals()
    changes.changed(BOT)
    const signal = changes.since(BOT)
    expect(signal.aborted).toBe(false)
    changes.done(BOT)
    changes.changed(BOT)
    expect(signal.aborted).toBe(false)
  })
})

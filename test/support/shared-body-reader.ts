import { BodyReader } from '../../gateway/dialects/body-reader.ts'
import { systemClock } from '#platform/clock.ts'

const drop = (): void => undefined
const reader = new BodyReader({
  log: { debug: drop, info: drop, warn: drop, error: drop },
  clock: systemClock,
  maxBodyBytes: 32 * 2 ** 20,
})
let whenStarted: Promise<void> | undefined

/** One reader for all gateways of a test process: its worker takes a while to start, and keeps no process alive. */
export const sharedBodyReader: Pick<BodyReader, 'start' | 'read' | 'translate' | 'answer' | 'stop'> = {
  start: () => (whenStarted ??= reader.start()),
  read: (...call) => reader.read(...call),
  translate: (...call) => reader.translate(...call),
  answer: (...call) => reader.answer(...call),
  stop: () => Promise.resolve(),
}

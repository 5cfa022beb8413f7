/** Preload (`node --import`): a wall clock that is wrong by CLOCK_SHIFT_MS. The monotonic clock is left as it is. */
const RealDate = Date
const realNow = Date.now.bind(Date)
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0)
const now = (): number => realNow() + shiftMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
  get: (target, name, receiver) => (name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown)),
})

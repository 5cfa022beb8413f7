/** What a person asks of a key: the body of a request, parsed once. */
import { z } from 'zod'
import { parseMicros } from '#contract/values/micros.ts'
import { MODEL_PATTERN } from '#contract/values/name-patterns.ts'
import { Refused } from '../http/refused.ts'
import type { KeyForm } from '../page-data/keys.ts'

const MAX_NAME = 63
const MAX_MODELS = 256
const MAX_RATE = 1_000_000_000
const MAX_TOKENS = 1_000_000_000_000
/** Drawn by the page for each dialog. */
const ATTEMPT = /^[\w-]{16,64}$/

const rate = (most: number) =>
  z.int({ error: 'Write a whole number.' }).min(1, 'Write 1 or more.').max(most, 'This number is too large.').optional()

const NAME = z
  .string({ error: 'Write a name.' })
  .trim()
  .min(1, 'Write a name.')
  .refine((text) => Array.from(text).length <= MAX_NAME, `Write at most ${MAX_NAME} characters.`)
  .refine((text) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text), 'Write the name on one line.')

const form = z.strictObject({
  name: NAME,
  models: z
    .array(z.string().regex(new RegExp(MODEL_PATTERN), 'This is not a model name.').max(253), { error: 'Choose the models.' })
    .min(1, 'Choose at least one model.')
    .max(MAX_MODELS, `Choose at most ${MAX_MODELS} models.`),
  budget: z
    .strictObject({
      amount: z
        .string({ error: 'Write an amount.' })
        .refine((text) => parseMicros(text) !== undefined, 'Write an amount like 25 or 2.50.')
        .refine((text) => parseMicros(text) !== 0, 'Write an amount above 0.'),
      window: z.enum(['Lifetime', 'Day', 'Week', 'Month'], { error: 'Choose when the budget starts again.' }),
    })
    .optional(),
  requestsPerMinute: rate(MAX_RATE),
  tokensPerMinute: rate(MAX_TOKENS),
  expiresAt: z.iso.datetime({ error: 'Write a date.' }).optional(),
})

const newKey = form.extend({ attempt: z.string().regex(ATTEMPT, 'Open the form again.') })

export type NewKeyForm = KeyForm & { readonly attempt: string }

/** @throws Refused with a message for each wrong field */
export function readKeyForm(body: unknown, nowMs: number): KeyForm {
  return inTheFuture(read(form, body), nowMs)
}

/** @throws Refused with a message for each wrong field */
export function readNewKey(body: unknown, nowMs: number): NewKeyForm {
  return inTheFuture(read(newKey, body), nowMs)
}

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const errors = parsed.error.issues.map(({ path, message, code }) => {
    const field = String(path[0] ?? (code === 'unrecognized_keys' ? 'form' : ''))
    return [field, message] as const
  })
  throw refusedFields(Object.fromEntries(errors.toReversed())) // the first error of a field counts
}

function inTheFuture<T extends KeyForm>(asked: T, nowMs: number): T {
  if (asked.expiresAt === undefined || Date.parse(asked.expiresAt) > nowMs) return asked
  throw refusedFields({ expiresAt: 'Choose a time in the future.' })
}

/** @param fields messages by name of the field */
export function refusedFields(fields: Readonly<Record<string, string>>): Refused {
  return new Refused('invalid', 'The key was not saved. Some fields need another value.', { fields })
}

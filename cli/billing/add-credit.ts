/** `headgate credit add`: creates a Credit in a cluster, or writes it into a folder of manifests. */
import { join } from 'node:path'
import { parse } from 'yaml'
import { formatSignedAmount } from '#contract/values/signed-micros.ts'
import { contextArgs, type Kubectl } from '../access/kubectl.ts'
import type { LocalState } from '../access/local-state.ts'
import { Unusable } from '../command-line.ts'
import { manifestText } from '../manifest-text.ts'
import { bookedIn, type Credit, type CreditCommand, differences, manifestOf, readStored, type StoredCredit } from './credit.ts'

/** What the command needs from outside. */
export interface CreditSurroundings {
  readonly print: (text: string) => void
  readonly report: (text: string) => void
  readonly kubectl: Kubectl
  readonly local: Pick<LocalState, 'manifests'>
  /** @throws Error if there is no such file */
  readonly readFile: (path: string) => Promise<string>
  /** Writes a file that must not exist. @returns false if it exists @throws Error of the file system */
  readonly createFile: (path: string, content: string) => Promise<boolean>
  readonly sleep: (ms: number) => Promise<unknown>
}

/** The operator books a Credit within a second; a new leader takes some. */
const BOOKED_WITHIN_MS = 10_000
const STEP_MS = 500

/** @returns whether the Credit counts, or is written where only `make run` knows whether it counts @throws Unusable */
export async function addCredit({ credit, place }: CreditCommand, around: CreditSurroundings): Promise<boolean> {
  if (place === 'local') return await addToFolder(credit, await around.local.manifests(), around)
  return await addToCluster(credit, contextArgs(place.context), around)
}

async function addToCluster(credit: Credit, context: readonly string[], around: CreditSurroundings): Promise<boolean> {
  const answer = await around.kubectl([...context, 'create', '-f', '-'], JSON.stringify(manifestOf(credit)))
  if (!answer.isDone && !answer.why.includes('(AlreadyExists)')) throw new Unusable(`kubectl create: ${answer.why}`)
  const read = async (): Promise<StoredCredit> => await readCredit(credit, context, around.kubectl)
  const stored = await read()
  if (answer.isDone) around.report(`Credit ${credit.id} is created\n`)
  else reportSame(credit, stored, `Credit ${credit.id}`, around)
  return await untilBooked(credit, stored, read, around)
}

async function readCredit({ id }: Credit, context: readonly string[], kubectl: Kubectl): Promise<StoredCredit> {
  const answer = await kubectl([...context, 'get', 'credits.headgate.dev', id, '-o', 'json'])
  if (!answer.isDone) throw new Unusable(`Credit ${id} exists, and cannot be read (kubectl get: ${answer.why}); run the command again`)
  const stored = readStored(JSON.parse(answer.output))
  if (stored === undefined) throw new Unusable(`Credit ${id} has another form than this version knows; use the version of the operator`)
  return stored
}

/** @returns whether the operator has booked the Credit in time */
async function untilBooked(
  credit: Credit,
  first: StoredCredit,
  read: () => Promise<StoredCredit>,
  around: CreditSurroundings,
): Promise<boolean> {
  let stored = first
  for (let waitedMs = 0; ; waitedMs += STEP_MS) {
    const booked = bookedIn(stored)
    if (booked?.status === 'True') {
      around.print(`${credit.id}: ${formatSignedAmount(credit.micros)} for ${credit.account}, booked\n`)
      return true
    }
    const isDecided = booked !== undefined && booked.reason !== 'Pending'
    if (isDecided || waitedMs >= BOOKED_WITHIN_MS) {
      const why = booked === undefined ? 'no operator has seen it in 10 s; see its log' : `${booked.reason}: ${booked.message}`
      around.report(`Credit ${credit.id} does not count (${why})\n`)
      return false
    }
    await around.sleep(STEP_MS)
    stored = await read()
  }
}

async function addToFolder(credit: Credit, folder: string, around: CreditSurroundings): Promise<boolean> {
  const path = join(folder, `credit-${credit.id}.yaml`)
  const isNew = await around.createFile(path, manifestText(manifestOf(credit))).catch((error: unknown) => {
    throw new Unusable(
      `${path} cannot be written (${codeOf(error)}); \`make run\` reads the folder ${folder}, so make it one that you may write`,
    )
  })
  if (!isNew) {
    reportSame(credit, await storedIn(path, around), path, around)
    return true
  }
  around.print(`${path}\n`)
  around.report(`\`make run\` books it within a second; headgate balance ${credit.account} --local shows the balance\n`)
  return true
}

async function storedIn(path: string, { readFile }: CreditSurroundings): Promise<StoredCredit> {
  try {
    const stored = readStored(parse(await readFile(path), { logLevel: 'silent' }))
    if (stored !== undefined) return stored
  } catch (error) {
    throw new Unusable(`${path} exists, and cannot be read (${codeOf(error)}); correct the file, or use another --id`)
  }
  throw new Unusable(`${path} exists, and is not a Credit; rename the file, or use another --id`)
}

/** @throws Unusable if the Credit is another payment */
function reportSame(credit: Credit, stored: StoredCredit, name: string, { report }: CreditSurroundings): void {
  const found = differences(credit, stored)
  if (found.length > 0)
    throw new Unusable(
      `${name} exists and is another payment: it has ${found.join(' and ')}; nothing was added. Use another --id for this one`,
    )
  report(`${name} exists with this account, amount and reference: it is the same payment, and counts once\n`)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
